//! The guard: who may change what a profile reads from namespaces.

use kube::{Client, api::DeleteParams};
use palisade_api::names::{self, Part};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, tool_pod};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    only_who_may_assign_changes_what_a_profile_reads: Oldest 210, Answers 200;
}

const UID: i64 = 50_001;
/// The annotation that is the source of the uid.
const SOURCE: &str = "toolforge.org/uid";

fn denied_by_guard(profile: &str, verdict: &Verdict) -> Result<(), String> {
    let by = format!("ValidatingAdmissionPolicy '{}'", names::policy(profile, Part::Guard));
    match verdict.denial() {
        Some(text) if text.contains(&by) && text.contains("requires the verb assign on") => Ok(()),
        _ => Err(format!("not denied by the guard: {verdict:?}")),
    }
}

/// May do anything with namespaces, and nothing with profiles.
async fn editor(cluster: &Cluster, user: &str) -> Result<Client, Box<dyn std::error::Error + Send + Sync>> {
    let verbs = "--verb=get,create,update,patch,delete";
    let resource = "--resource=namespaces,namespaces/status,namespaces/finalize";
    cluster.kubectl(&["create", "clusterrole", user, verbs, resource])?;
    cluster.kubectl(&[
        "create",
        "clusterrolebinding",
        user,
        &format!("--clusterrole={user}"),
        &format!("--user={user}"),
    ])?;
    cluster.client_of_tenant(user).await
}

fn metadata(labels: &Json, annotations: &Json) -> Json {
    json!({"metadata": {"labels": labels, "annotations": annotations}})
}

/// Every way in which somebody could change what the profile reads.
async fn attacks(cluster: &Cluster, test: &str, user: &Client) -> TestResult {
    let path = format!("/api/v1/namespaces/{test}");
    let stored = cluster.answer("GET", &path, "application/json", &json!(null)).await?;
    for (labels, annotations) in [
        (json!({}), json!({SOURCE: "0"})),
        (json!({}), json!({SOURCE: null})),
        (json!({}), json!({SOURCE: ""})),
        (json!({"tenancy": "other"}), json!({})),
        (json!({"tenancy": null}), json!({})),
        (json!(null), json!({"other": "x"})),
    ] {
        let patch = metadata(&labels, &annotations);
        for at in [path.clone(), format!("{path}/status")] {
            let verdict = cluster.ask_as(user, "PATCH", &at, &patch).await;
            denied_by_guard(test, &verdict).map_err(|error| format!("PATCH {at} {patch}: {error}"))?;
        }
    }
    for (pointer, at) in [("annotations", ""), ("annotations", "/status"), ("annotations", "/finalize"), ("labels", "")]
    {
        let mut object = stored.clone();
        object["metadata"].as_object_mut().ok_or("no metadata")?.remove(pointer);
        let verdict = cluster.ask_as(user, "PUT", &format!("{path}{at}"), &object).await;
        denied_by_guard(test, &verdict).map_err(|error| format!("PUT {pointer} {at}: {error}"))?;
    }
    for patch in [metadata(&json!({"tenancy": test}), &json!({})), metadata(&json!({}), &json!({SOURCE: "0"}))] {
        let mut born = patch;
        born["apiVersion"] = "v1".into();
        born["kind"] = "Namespace".into();
        born["metadata"]["name"] = format!("{test}-born").into();
        let verdict = cluster.ask_as(user, "POST", "/api/v1/namespaces", &born).await;
        denied_by_guard(test, &verdict).map_err(|error| format!("POST {born}: {error}"))?;
    }
    Ok(())
}

/// What a namespace's editor may do as before.
async fn passes(cluster: &Cluster, test: &str, user: &Client) -> TestResult {
    let path = format!("/api/v1/namespaces/{test}");
    for (what, labels, annotations) in [
        ("another label", json!({"team": "a"}), json!({"note": "x"})),
        ("its removal", json!({"team": null}), json!({"note": null})),
        ("the same values", json!({"tenancy": test}), json!({SOURCE: UID.to_string()})),
    ] {
        for at in [path.clone(), format!("{path}/status")] {
            let verdict = cluster.ask_as(user, "PATCH", &at, &metadata(&labels, &annotations)).await;
            ensure!(verdict == Verdict::Admitted, "{what} at {at}: {verdict:?}");
        }
    }
    let finalizers = |all: Json| json!({"metadata": {"finalizers": all}});
    for all in [json!(["example.org/a"]), json!(null)] {
        let verdict = cluster.ask_as(user, "PATCH", &path, &finalizers(all)).await;
        ensure!(verdict == Verdict::Admitted, "finalizers: {verdict:?}");
    }
    Ok(())
}

pub(crate) async fn only_who_may_assign_changes_what_a_profile_reads(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "guarded");
    cluster.create_tool(test, test, UID).await?;
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["guardSources"] = true.into();
    cluster.enforce(&profile).await?;
    let user = editor(cluster, "guarded-editor").await?;
    let path = format!("/api/v1/namespaces/{test}");
    // What is admitted must not change anything: the next attempt would be no change, and pass.
    let dry = format!("{path}?dryRun=All");
    let in_force = || async {
        eventually("the guard is in force", || async {
            let verdict = cluster.ask_as(&user, "PATCH", &dry, &metadata(&json!({}), &json!({SOURCE: "0"}))).await;
            denied_by_guard(test, &verdict)
        })
        .await
    };
    in_force().await?;
    attacks(cluster, test, &user).await?;
    passes(cluster, test, &user).await?;
    let plain = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "guarded-plain"}});
    let verdict = cluster.ask_as(&user, "POST", "/api/v1/namespaces", &plain).await;
    ensure!(verdict == Verdict::Admitted, "a namespace without any of it: {verdict:?}");
    let warnings = cluster.policies().get(&names::policy(test, Part::Guard)).await?.status;
    let warnings = warnings.and_then(|status| status.type_checking).and_then(|types| types.expression_warnings);
    ensure!(warnings.is_none_or(|all| all.is_empty()), "type checks");

    // What an admin deletes or edits, the controller restores.
    let guard = names::policy(test, Part::Guard);
    cluster.bindings().delete(&guard, &DeleteParams::default()).await?;
    eventually("the binding is back", || async { cluster.bindings().get(&guard).await.map_err(|e| e.to_string()) })
        .await?;
    cluster.policies().delete(&guard, &DeleteParams::default()).await?;
    eventually("the policy is back", || async { cluster.policies().get(&guard).await.map_err(|e| e.to_string()) })
        .await?;
    let edit = json!({"spec": {"validationActions": ["Audit"]}});
    let at = format!("/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings/{guard}");
    ensure!(cluster.patch_at(&at, &edit).await == Verdict::Admitted, "the edit of an admin");
    eventually("the binding denies again", || async {
        let found = cluster.bindings().get(&guard).await.map_err(|error| error.to_string())?;
        let actions = found.spec.validation_actions;
        if actions == ["Deny"] { Ok(()) } else { Err(format!("{actions:?}")) }
    })
    .await?;
    in_force().await?;

    // Who has the verb on this profile may; on another one is not enough.
    let assigner = editor(cluster, "guarded-assigner").await?;
    let change = metadata(&json!({}), &json!({SOURCE: (UID + 1).to_string()}));
    let role = |name: &str, of: &str| {
        let (of, user) = (format!("--resource-name={of}"), "--user=guarded-assigner");
        let resource = "--resource=toolsecurityprofiles.toolsecurity.dev";
        cluster.kubectl(&["create", "clusterrole", name, "--verb=assign", resource, &of])?;
        cluster.kubectl(&["create", "clusterrolebinding", name, &format!("--clusterrole={name}"), user])
    };
    role("assign-another", "another")?;
    denied_by_guard(test, &cluster.ask_as(&assigner, "PATCH", &path, &change).await)?;
    role("assign-guarded", test)?;
    eventually("who may assign changes a source", || async {
        match cluster.ask_as(&assigner, "PATCH", &path, &change).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cluster.wait_admitted(test, &tool_pod("job", UID + 1)).await?;
    let born = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "guarded-born", "labels": {"tenancy": test}, "annotations": {SOURCE: "50009"}},
    });
    let verdict = cluster.ask_as(&assigner, "POST", "/api/v1/namespaces", &born).await;
    ensure!(verdict == Verdict::Admitted, "who may assign creates a namespace: {verdict:?}");

    // A namespace can always be deleted, by whoever may delete namespaces.
    let verdict = cluster.ask_as(&user, "DELETE", "/api/v1/namespaces/guarded-born", &json!({})).await;
    ensure!(verdict == Verdict::Admitted, "it can be deleted: {verdict:?}");
    eventually("the namespace goes", || async {
        match cluster.kubectl(&["get", "namespace", "guarded-born", "-o", "name", "--ignore-not-found"]) {
            Ok(found) if found.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;

    // Turned off, it is gone, and so is the denial; deleted with the profile, nothing is left.
    profile["spec"]["guardSources"] = false.into();
    cluster.apply_profile(&profile).await?;
    eventually("anybody who may edit the namespace changes it", || async {
        let change = metadata(&json!({}), &json!({SOURCE: UID.to_string()}));
        match cluster.ask_as(&user, "PATCH", &path, &change).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    eventually("the guard goes", || async {
        let found = cluster.policies().get_opt(&guard).await.map_err(|error| error.to_string())?;
        if found.is_none() { Ok(()) } else { Err("it is still there".to_owned()) }
    })
    .await?;
    profile["spec"]["guardSources"] = true.into();
    cluster.enforce(&profile).await?;
    cluster.delete_profile(test).await?;
    let left = cluster.left_of(test)?;
    ensure!(left.is_empty(), "left: {left}");
    Ok(())
}
