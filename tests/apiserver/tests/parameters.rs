//! `ToolSecurityParams` belong to the controller: a tenant with `*` in its namespace can neither delete, hold nor starve them,
//! and what it tries changes nothing of what is enforced. A namespace and a profile can be deleted all the same.

use kube::{
    Api, Client,
    api::{DeleteParams, Patch, PatchParams},
};
use palisade_api::{NamespaceCounts, ToolSecurityParams, names};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, tool_pod};
use serde_json::{Value as Json, json};

use crate::{history::printed, privilege::tamper};

crate::groups::scenarios! {
    tenants_can_neither_delete_nor_hold_nor_starve_parameters: Unprivileged 40, Confined 30;
    a_quota_for_parameters_is_reported_and_denies: Maintained 100;
    a_profile_that_is_being_deleted_is_not_reported_as_enforced: Maintained 110;
    labels_of_the_installation_come_back_after_a_probe: Maintained 120;
}

const UID: i64 = 50_001;
const POLICY: &str = "confine-toolsecurityparams";
const FORBIDDEN: &str = "evil.example/rootkit:1";
const HOLD: &str = "example.com/hold";

/// A profile whose updates of pods are judged by parameters.
fn profile(test: &str) -> Json {
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["exceptionRequests"] = json!({"checks": ["imageRegistries"], "message": "ask"});
    profile
}

/// What many clusters give their tenants.
pub(crate) async fn tenant(cluster: &Cluster, namespace: &str) -> TestResult<Client> {
    let user = format!("tenant-of-{namespace}");
    cluster.kubectl(&["create", "role", "everything", "--verb=*", "--resource=*.*,*/*", "-n", namespace])?;
    let user_flag = format!("--user={user}");
    cluster.kubectl(&["create", "rolebinding", "everything", "--role=everything", &user_flag, "-n", namespace])?;
    cluster.client_of_tenant(&user).await
}

fn params_path(namespace: &str) -> String {
    format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{namespace}/toolsecurityparams")
}

fn denied(what: &str, verdict: &Verdict) -> TestResult {
    let by = format!("ValidatingAdmissionPolicy '{POLICY}'");
    ensure!(verdict.denial().is_some_and(|text| text.contains(&by)), "{what} is not denied by {POLICY}: {verdict:?}");
    Ok(())
}

/// Another image for the container of a pod.
fn another_image() -> Json {
    json!([{"op": "replace", "path": "/spec/containers/0/image", "value": FORBIDDEN}])
}

async fn image(cluster: &Cluster, namespace: &str, pod: &str) -> TestResult<String> {
    let pod = cluster.answer_to("GET", &format!("/api/v1/namespaces/{namespace}/pods/{pod}"), &Json::Null).await?;
    Ok(pod["spec"]["containers"][0]["image"].as_str().unwrap_or_default().to_owned())
}

async fn namespace_goes(cluster: &Cluster, namespace: &str) -> TestResult {
    cluster.delete_namespace(namespace).await?;
    eventually("the namespace goes", || async {
        match cluster.kubectl(&["get", "namespace", namespace, "-o", "name", "--ignore-not-found"]) {
            Ok(found) if found.is_empty() => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

pub(crate) async fn tenants_can_neither_delete_nor_hold_nor_starve_parameters(cluster: &mut Cluster) -> TestResult {
    let (test, before) = ("belongs", "belongs-before");
    cluster.create_tool(test, test, UID).await?;
    cluster.create_namespace(before, &json!({}), &json!({"toolforge.org/uid": UID.to_string()})).await?;
    cluster.enforce(&profile(test)).await?;
    cluster.wait_admitted(test, &tool_pod("job", UID)).await?;
    let created = cluster.create_pod(test, &tool_pod("job", UID)).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    let tenant = tenant(cluster, test).await?;
    let (all, one) = (params_path(test), format!("{}/{test}", params_path(test)));

    for metadata in [
        json!({"finalizers": [HOLD]}),
        json!({"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "a"}]}),
        json!({"labels": {"a": "b"}}),
        json!({"annotations": {"filled": "x".repeat(200_000)}}),
        // Each manager of fields makes the object larger.
        json!({}),
    ] {
        let verdict = cluster.ask_as(&tenant, "PATCH", &one, &json!({"metadata": metadata})).await;
        denied("a change of metadata", &verdict)?;
    }
    let api: Api<ToolSecurityParams> = Api::namespaced(tenant.clone(), test);
    let mut same = cluster.params(test, test).await?;
    same.metadata = kube::core::ObjectMeta { name: Some(test.to_owned()), ..Default::default() };
    let applied = api.patch(test, &PatchParams::apply("filler").force(), &Patch::Apply(&same)).await;
    denied("an apply without a change", &Verdict::of(applied.map(|_| json!({}))))?;
    let foreground = json!({"propagationPolicy": "Foreground"});
    for (path, options) in [(&one, json!({})), (&one, foreground), (&all, json!({}))] {
        denied("deletion", &cluster.ask_as(&tenant, "DELETE", path, &options).await)?;
        // As finding: delete, and change an image before the parameters are back.
        let changed = cluster.json_patch_pod(test, "job", &another_image()).await;
        ensure!(changed.denial().is_some(), "another image: {changed:?}");
    }
    ensure!(image(cluster, test, "job").await? != FORBIDDEN, "the pod runs another image");

    // Not in advance, either: the namespace is selected afterwards.
    let of_before = self::tenant(cluster, before).await?;
    let mut planted = serde_json::to_value(&same)?;
    planted["metadata"] = json!({"name": test, "finalizers": [HOLD]});
    denied("creation", &cluster.ask_as(&of_before, "POST", &params_path(before), &planted).await)?;
    cluster.patch_namespace(before, &json!({"metadata": {"labels": {"tenancy": test}}})).await?;
    cluster.wait_admitted(before, &tool_pod("job", UID)).await?;

    what_empties_namespaces_may_delete_parameters(cluster, test, &one).await?;
    what_an_administrator_can_do(cluster, test, &one).await?;
    namespace_goes(cluster, before).await?;
    namespace_goes(cluster, test).await?;
    cluster.delete_profile(test).await?;
    let left = cluster.left_of(test)?;
    ensure!(left.is_empty(), "left: {left}");
    Ok(())
}

/// By the accounts that clusters give these controllers.
async fn what_empties_namespaces_may_delete_parameters(cluster: &Cluster, test: &str, one: &str) -> TestResult {
    let before = cluster.params(test, test).await?.metadata.uid;
    let dry = format!("{one}?dryRun=All");
    // A deletion with a body takes all its options from there, so that the query would not make it a dry run.
    let deletion = json!({"dryRun": ["All"]});
    let finalized = json!({"metadata": {"finalizers": ["foregroundDeletion"]}});
    for (account, method, body) in [
        ("namespace-controller", "DELETE", deletion.clone()),
        ("generic-garbage-collector", "DELETE", deletion),
        ("generic-garbage-collector", "PATCH", finalized),
    ] {
        let client = cluster.client_of_tenant(&format!("system:serviceaccount:kube-system:{account}")).await?;
        let verdict = cluster.ask_as(&client, method, &dry, &body).await;
        ensure!(verdict == Verdict::Admitted, "{method} by {account}: {verdict:?}");
    }
    let after = cluster.params(test, test).await?.metadata.uid;
    ensure!(after == before, "a dry run deleted the parameters: {before:?} is {after:?}");
    Ok(())
}

/// Everything, and the controller restores it.
async fn what_an_administrator_can_do(cluster: &Cluster, test: &str, one: &str) -> TestResult {
    let version = |params: &ToolSecurityParams| params.metadata.uid.clone();
    let former = version(&cluster.params(test, test).await?);
    cluster.kubectl(&["delete", "toolsecurityparams", test, "-n", test, "--cascade=foreground"])?;
    eventually("the parameters are back", || async {
        let now = cluster.params(test, test).await?;
        if version(&now) == former { Err("the former ones".to_owned()) } else { Ok(()) }
    })
    .await?;
    tamper(cluster, one, &json!({"spec": {"integers": {"uid": 7}}}), "/spec/integers/uid", &json!(7)).await?;
    // Of what can hold or delete them, the controller leaves nothing, whoever wrote it.
    let metadata = json!({"metadata": {"finalizers": [HOLD], "ownerReferences": [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": "none", "uid": "0d3e4fc5-9f2b-4f5d-9d5c-0a0d3c1c9f11"},
    ]}});
    let held = cluster.patch_at(one, &metadata).await;
    ensure!(held == Verdict::Admitted, "{held:?}");
    eventually("nothing holds the parameters", || async {
        let now = cluster.params(test, test).await?.metadata;
        let free = now.finalizers.unwrap_or_default().is_empty() && now.owner_references.unwrap_or_default().is_empty();
        if free && now.deletion_timestamp.is_none() { Ok(()) } else { Err("they are held".to_owned()) }
    })
    .await?;
    Ok(())
}

/// A quota keeps parameters out: that is reported, new pods are denied, and who has parameters keeps them.
pub(crate) async fn a_quota_for_parameters_is_reported_and_denies(cluster: &mut Cluster) -> TestResult {
    let (test, late) = ("quota", "quota-late");
    cluster.create_tool(test, test, UID).await?;
    cluster.create_namespace(late, &json!({}), &json!({"toolforge.org/uid": UID.to_string()})).await?;
    cluster.enforce(&profile(test)).await?;
    cluster.wait_admitted(test, &tool_pod("job", UID)).await?;
    let created = cluster.create_pod(test, &tool_pod("job", UID)).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    for namespace in [test, late] {
        let tenant = tenant(cluster, namespace).await?;
        let quotas = format!("/api/v1/namespaces/{namespace}/resourcequotas");
        let none = json!({"count/toolsecurityparams.toolsecurity.dev": "0"});
        let quota = json!({
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}, "spec": {"hard": none},
        });
        let verdict = cluster.ask_as(&tenant, "POST", &quotas, &quota).await;
        ensure!(verdict == Verdict::Admitted, "{verdict:?}");
        let status = json!({"status": {"hard": none, "used": none}});
        let verdict = cluster.ask_as(&tenant, "PATCH", &format!("{quotas}/none/status"), &status).await;
        ensure!(verdict == Verdict::Admitted, "{verdict:?}");
        // Where there are parameters, they stay: this is what the swap of an image needed.
        let one = format!("{}/{test}", params_path(namespace));
        if namespace == test {
            denied("deletion", &cluster.ask_as(&tenant, "DELETE", &one, &json!({})).await)?;
        }
    }
    let changed = cluster.json_patch_pod(test, "job", &another_image()).await;
    ensure!(changed.denial().is_some(), "another image: {changed:?}");

    cluster.patch_namespace(late, &json!({"metadata": {"labels": {"tenancy": test}}})).await?;
    eventually("the status says what is wrong", || async {
        let found = cluster.profiles().get(test).await.map_err(|error| error.to_string())?;
        let status = found.status.ok_or("no status")?;
        let named = status.failed_namespaces.iter().find(|failed| failed.name == late);
        let why = named.map(|failed| failed.message.clone()).unwrap_or_default();
        let plain = why.contains("a ResourceQuota of the namespace forbids them")
            && why.contains("remove count/toolsecurityparams.toolsecurity.dev from the quota");
        let enforced = status.conditions.iter().find(|condition| condition.type_ == "Enforced");
        let limited = enforced.is_some_and(|enforced| enforced.message.contains("1 namespace without parameters"));
        let counts = (status.namespaces.selected, status.namespaces.ready, status.namespaces.failed);
        if plain && limited && counts == (2, 1, 1) { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await?;
    eventually("an event says it, too", || async {
        let events = cluster.kubectl(&["get", "events", "-A", "--field-selector=reason=NamespaceFailed"]);
        let events = events.map_err(|error| error.to_string())?;
        if events.contains("parameters could not be written in quota-late") { Ok(()) } else { Err(events) }
    })
    .await?;
    for pod in [tool_pod("new", UID), hostile_pod("new")] {
        let verdict = cluster.dry_run(late, &pod).await;
        ensure!(verdict.denial().is_some(), "a pod without parameters: {verdict:?}");
    }
    cluster.kubectl(&["delete", "resourcequota", "none", "-n", late])?;
    cluster.wait_admitted(late, &tool_pod("job", UID)).await?;
    eventually("the status is as before", || async {
        let found = cluster.profiles().get(test).await.map_err(|error| error.to_string())?;
        let status = found.status.ok_or("no status")?;
        let enforced = status.conditions.iter().find(|condition| condition.type_ == "Enforced");
        let whole = enforced.is_some_and(|enforced| !enforced.message.contains("without parameters"));
        if whole && status.failed_namespaces.is_empty() { Ok(()) } else { Err(format!("{status:?}")) }
    })
    .await?;
    cluster.delete_profile(test).await
}

/// A profile that cannot go yet is not reported as enforced: its bindings are gone.
pub(crate) async fn a_profile_that_is_being_deleted_is_not_reported_as_enforced(cluster: &mut Cluster) -> TestResult {
    let test = "leaving";
    cluster.create_tool(test, test, UID).await?;
    let mut profile = profile(test);
    profile["metadata"]["finalizers"] = json!([HOLD]);
    cluster.enforce(&profile).await?;
    cluster.wait_admitted(test, &tool_pod("job", UID)).await?;
    // From before the policy that denies that: the controller does not run, or else it would remove it.
    cluster.stop_controller().await?;
    let one = format!("{}/{test}", params_path(test));
    let held = cluster.patch_at(&one, &json!({"metadata": {"finalizers": [HOLD]}})).await;
    ensure!(held == Verdict::Admitted, "{held:?}");
    let gone = cluster.ask_as(&cluster.admin, "DELETE", &one, &json!({})).await;
    ensure!(gone == Verdict::Admitted, "{gone:?}");
    cluster.profiles().delete(test, &DeleteParams::default()).await?;
    cluster.start_controller().await?;
    cluster.wait_admitted(test, &hostile_pod("free")).await?;
    let found = cluster.profiles().get(test).await?;
    ensure!(found.metadata.deletion_timestamp.is_some(), "{:?}", found.metadata);
    let status = found.status.unwrap_or_default();
    for type_ in ["Accepted", "Programmed", "Enforced", "Ready"] {
        let condition = status.conditions.iter().find(|condition| condition.type_ == type_);
        let said = condition.map(|it| (it.status.as_str(), it.reason.as_str(), it.observed_generation));
        ensure!(said == Some(("False", "Deleting", found.metadata.generation)), "{type_}: {condition:?}");
    }
    ensure!(status.namespaces == NamespaceCounts::default() && status.mutation.is_none(), "{status:?}");
    let columns = "-o=custom-columns=R:.status.conditions[?(@.type=='Ready')].status,\
                   E:.status.conditions[?(@.type=='Enforced')].status,J:.status.namespaces.ready";
    let shown = cluster.kubectl(&["get", "tsp", test, columns, "--no-headers"])?;
    ensure!(shown.split_whitespace().collect::<Vec<_>>() == ["False", "False", "0"], "{shown}");
    let shown = printed(cluster, &["status", test]).await?;
    ensure!(shown.contains("the profile is being deleted, and is no longer enforced"), "{shown}");
    let metrics = cluster.controller_get("/metrics").await?;
    for (type_, status, value) in [("Enforced", "True", 0), ("Ready", "True", 0), ("Enforced", "False", 1)] {
        let line =
            format!("palisade_profile_condition{{profile=\"{test}\",type=\"{type_}\",status=\"{status}\"}} {value}");
        ensure!(metrics.contains(&line), "no {line} in {metrics}");
    }

    // It waits for its own finalizer no longer, whatever holds its parameters.
    eventually("only the finalizer of others is left", || async {
        let found = cluster.profiles().get(test).await.map_err(|error| error.to_string())?;
        let finalizers = found.metadata.finalizers.unwrap_or_default();
        if finalizers == [HOLD] { Ok(()) } else { Err(format!("{finalizers:?}")) }
    })
    .await?;
    let free = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.profiles().patch(test, &PatchParams::default(), &free).await?;
    eventually("it is gone", || async {
        match cluster.profiles().get_opt(test).await {
            Ok(None) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    eventually("nothing is left", || async {
        let left = cluster.left_of(test).map_err(|error| error.to_string())?;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await?;
    Ok(())
}

/// A profile may demand a label that the installation has on the probe namespace: it comes back.
pub(crate) async fn labels_of_the_installation_come_back_after_a_probe(cluster: &mut Cluster) -> TestResult {
    let (test, label) = ("borrowed", "app.kubernetes.io/part-of");
    let labels = || async {
        let path = format!("/api/v1/namespaces/{}", names::PROBE_NAMESPACE);
        let found = cluster.answer_to("GET", &path, &Json::Null).await?;
        Ok::<_, String>(found["metadata"]["labels"].clone())
    };
    let before = labels().await?;
    ensure!(before[label] == "palisade", "{before}");
    cluster
        .create_namespace(test, &json!({label: test, "tenancy": test}), &json!({"toolforge.org/uid": UID.to_string()}))
        .await?;
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["namespaceSelector"]["matchLabels"][label] = test.into();
    cluster.enforce(&profile).await?;
    cluster.delete_profile(test).await?;
    eventually("the labels are those of the installation", || async {
        let mut now = labels().await?;
        // Of other probes.
        if let (Some(now), Some(before)) = (now.as_object_mut(), before.as_object()) {
            now.retain(|key, _| before.contains_key(key) || key.contains("toolsecurity.dev"));
        }
        if now == before { Ok(()) } else { Err(format!("{now} instead of {before}")) }
    })
    .await?;
    Ok(())
}
