//! Namespaces with a stage of their own.

use palisade_api::names;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, tool_pod};
use serde_json::{Value as Json, json};

use crate::{lifecycle::Watch, scan};

crate::groups::scenarios! {
    a_namespace_can_have_a_stage_of_its_own: Oldest 180, Judged 250;
    a_namespace_in_deny_stays_in_it_while_the_profile_changes: Reconciled 50;
    a_binding_of_deny_that_is_deleted_or_edited_is_restored: Reconciled 70, OldestRollouts 20;
}

const UID: i64 = 50_001;

/// The profile of Toolforge at these stages, with stages by label.
fn staged(test: &str, stage: &str) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["enforcement"] = json!({"pods": stage, "workloads": stage, "namespaceStages": "ByLabel"});
    Ok(profile)
}

/// A namespace of a tool, with a stage of its own or none.
async fn create(cluster: &Cluster, test: &str, name: &str, stage: Option<&str>) -> TestResult {
    let mut labels = json!({"tenancy": test});
    if let Some(stage) = stage {
        labels[names::stage_label(test)] = json!(stage);
    }
    cluster.create_namespace(name, &labels, &json!({"toolforge.org/uid": UID.to_string()})).await
}

/// What happens to a violation in a namespace: `Deny`, `Warn` or `Audit`.
fn stage_of(cluster: &Cluster, namespace: &str, kind: &str, object: &Json) -> Result<&'static str, String> {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(file.path(), object.to_string()).map_err(|error| error.to_string())?;
    let path = file.path().display().to_string();
    let create = ["create", "--dry-run=server", "-f", &path, "--namespace", namespace];
    let shape = format!("-{kind}' with binding");
    match cluster.kubectl_both(&create) {
        Ok((_, warnings)) if warnings.contains("Warning: Validation failed") => Ok("Warn"),
        Ok(_) => Ok("Audit"),
        Err(error) if error.to_string().contains(&shape) && error.to_string().contains("[privileged]") => Ok("Deny"),
        Err(error) => Err(error.to_string()),
    }
}

fn hostile_deployment() -> Json {
    let pod = hostile_pod("hostile");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "hostile"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {
            "metadata": {"labels": {"app": "x"}}, "spec": pod["spec"],
        }},
    })
}

pub(crate) async fn a_namespace_can_have_a_stage_of_its_own(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "by-label");
    // The label, and what holds.
    let namespaces = [
        ("by-label-none", None, "Audit"),
        ("by-label-audit", Some("Audit"), "Audit"),
        ("by-label-warn", Some("Warn"), "Warn"),
        ("by-label-deny", Some("Deny"), "Deny"),
        ("by-label-unknown", Some("audit"), "Deny"),
        ("by-label-empty", Some(""), "Deny"),
    ];
    for (name, label, _) in namespaces {
        create(cluster, test, name, label).await?;
    }
    cluster.apply_profile(&staged(test, "Audit")?).await?;
    cluster.wait_condition(test, "Programmed", "True").await?;
    for (name, _, expected) in namespaces {
        for (kind, object) in [("pods", hostile_pod("hostile")), ("workloads", hostile_deployment())] {
            eventually(&format!("{kind} in {name} are at {expected}"), || async {
                let found = stage_of(cluster, name, kind, &object)?;
                if found == expected { Ok(()) } else { Err(found.to_owned()) }
            })
            .await?;
        }
        cluster.wait_admitted(name, &tool_pod("job", UID)).await?;
    }
    let counted = |deny: i64, warn: i64, audit: i64| async move {
        eventually("the namespaces by stage", || async {
            let status = cluster.profiles().get(test).await.map_err(|error| error.to_string())?.status;
            let found = status.map(|status| status.namespaces.by_stage.counts());
            if found == Some([deny, warn, audit]) { Ok(()) } else { Err(format!("{found:?}")) }
        })
        .await
    };
    // Some are in Deny, and that is probed.
    cluster.wait_condition(test, "Enforced", "True").await?;
    counted(3, 1, 2).await?;
    let table = cluster.kubectl(&["get", "tsp", test, "-o", "wide"])?;
    let columns: Vec<_> = table.lines().map(|line| line.split_whitespace().collect::<Vec<_>>()).collect();
    let shown = |column: &str| {
        let index = columns[0].iter().position(|name| *name == column)?;
        columns[1].get(index).copied()
    };
    ensure!([shown("DENY"), shown("WARN"), shown("AUDIT")] == [Some("3"), Some("1"), Some("2")], "{table}");

    // A promotion writes the label and nothing else.
    let before = (cluster.policy_versions(test).await?, cluster.params_versions(test).await?);
    for (stage, counts) in [("Warn", [3, 2, 1]), ("Deny", [4, 1, 1]), ("Audit", [3, 1, 2])] {
        let name = "by-label-audit";
        cluster.patch_namespace(name, &json!({"metadata": {"labels": {names::stage_label(test): stage}}})).await?;
        eventually(&format!("it is at {stage}"), || async {
            let found = stage_of(cluster, name, "pods", &hostile_pod("hostile"))?;
            if found == stage { Ok(()) } else { Err(found.to_owned()) }
        })
        .await?;
        let [deny, warn, audit] = counts;
        counted(deny, warn, audit).await?;
    }
    let after = (cluster.policy_versions(test).await?, cluster.params_versions(test).await?);
    ensure!(before == after, "a promotion wrote more: {before:?}, then {after:?}");
    cluster.delete_profile(test).await?;
    let left = cluster.left_of(test)?;
    ensure!(left.is_empty(), "left: {left}");
    Ok(())
}

/// Whatever becomes of the profile: a namespace that is in the stage Deny before and after, by its label or by the
/// profile, is in it meanwhile.
pub(crate) async fn a_namespace_in_deny_stays_in_it_while_the_profile_changes(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "in-deny");
    create(cluster, test, "in-deny-labelled", Some("Deny")).await?;
    create(cluster, test, "in-deny-other", None).await?;
    let constant = |profile: Json| -> Result<Json, serde_json::Error> {
        let mut profile = profile;
        profile["spec"]["parameters"] = json!([]);
        serde_json::from_str(&profile.to_string().replace("\"$uid\"", &UID.to_string()))
    };
    let uniform = |profile: Json| {
        let mut profile = profile;
        profile["spec"]["enforcement"]["namespaceStages"] = json!("Uniform");
        profile
    };
    let [deny, warn, audit] = [staged(test, "Deny")?, staged(test, "Warn")?, staged(test, "Audit")?];
    cluster.apply_profile(&audit).await?;
    let denied = |namespace: &'static str, denied: bool| async move {
        let what = format!("a violation is {} in {namespace}", if denied { "denied" } else { "admitted" });
        eventually(&what, || async {
            match cluster.dry_run(namespace, &hostile_pod("hostile")).await {
                Verdict::Denied(text) if denied && text.contains("[privileged]") => Ok(()),
                Verdict::Admitted if !denied => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    };
    denied("in-deny-labelled", true).await?;
    let bad = Watch::start(cluster, "in-deny-labelled", hostile_pod("hostile"), false);
    for (profile, other) in [
        (deny.clone(), true),
        (warn.clone(), false),
        (uniform(deny.clone()), true),
        // Leaves Deny and gets stages by label at once.
        (audit.clone(), false),
        (constant(warn.clone())?, false),
        (uniform(deny.clone()), true),
        // The same, and loses its parameters.
        (constant(audit.clone())?, false),
        (constant(uniform(deny.clone()))?, true),
        (warn, false),
        (deny, true),
    ] {
        cluster.apply_profile(&profile).await?;
        cluster.wait_condition(test, "Programmed", "True").await?;
        denied("in-deny-other", other).await?;
        denied("in-deny-labelled", true).await?;
    }
    bad.finish("a pod that violates in a namespace in Deny, while the profile changes").await?;
    cluster.delete_profile(test).await
}

/// Who may write bindings can take the one of Deny away, until the controller has put it back: that opens the namespaces
/// in Deny and denies nothing in others.
pub(crate) async fn a_binding_of_deny_that_is_deleted_or_edited_is_restored(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "by-binding");
    create(cluster, test, "by-binding-deny", Some("Deny")).await?;
    create(cluster, test, "by-binding-audit", None).await?;
    cluster.apply_profile(&staged(test, "Audit")?).await?;
    let hostile = || hostile_pod("hostile");
    let denied = || async {
        eventually("a violation is denied", || async {
            let verdict = cluster.dry_run("by-binding-deny", &hostile()).await;
            verdict.denial().map(drop).ok_or_else(|| format!("{verdict:?}"))
        })
        .await
    };
    denied().await?;
    cluster.wait_condition(test, "Enforced", "True").await?;
    let other = Watch::start(cluster, "by-binding-audit", hostile(), true);
    let complying = Watch::start(cluster, "by-binding-deny", tool_pod("job", UID), true);
    let name = names::staged(&names::policy(test, names::Shape::Pods), palisade_api::Stage::Deny);
    let right = || async {
        let found = cluster.bindings().get(&name).await.map_err(|error| error.to_string())?;
        serde_json::to_value(found.spec).map_err(|error| error.to_string())
    };
    let spec = right().await?;
    let everywhere = json!({"spec": {"matchResources": {"namespaceSelector": {"matchLabels": {"test": "nobody"}}}}});
    for change in [None, Some(json!({"spec": {"validationActions": ["Audit"]}})), Some(everywhere)] {
        match &change {
            None => drop(cluster.kubectl(&["delete", "validatingadmissionpolicybinding", &name])?),
            Some(patch) => {
                let patch = patch.to_string();
                let patch = ["patch", "validatingadmissionpolicybinding", &name, "--type=merge", "-p", &patch];
                drop(cluster.kubectl(&patch)?);
            }
        }
        eventually(&format!("{name} is restored after {change:?}"), || async {
            let found = right().await?;
            if found == spec { Ok(()) } else { Err(found.to_string()) }
        })
        .await?;
        denied().await?;
    }
    // The end of one ends the others: the controller was at work, and nobody without a stage of their own was denied.
    other.finish("a violation where the profile's stage holds").await?;
    complying.finish("a pod that complies").await?;
    let metrics = cluster.controller_get("/metrics").await?;
    let repaired = scan::sample(&metrics, "palisade_drift_repaired_total{kind=\"ValidatingAdmissionPolicyBinding\"}");
    ensure!(repaired > Some(0), "nobody counts it: {metrics}");
    cluster.delete_profile(test).await
}
