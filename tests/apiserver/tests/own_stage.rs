//! Checks with a stage of their own (`spec.enforcement.checks`).

use palisade_api::names::{self, Part, Shape};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, tool_pod};
use serde_json::{Value as Json, json};

use crate::lifecycle::Watch;

crate::groups::scenarios! {
    a_check_can_have_a_stage_of_its_own: Judged 260;
    a_check_in_deny_stays_in_it_while_the_profile_changes: Reconciled 60;
}

const UID: i64 = 50_001;

/// The profile of Toolforge with these stages.
fn profile(test: &str, enforcement: &Json) -> Result<Json, Box<dyn std::error::Error + Send + Sync>> {
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["enforcement"] = enforcement.clone();
    Ok(profile)
}

/// A pod that violates `imageRegistries` alone.
fn foreign() -> Json {
    let mut pod = tool_pod("foreign", UID);
    pod["spec"]["containers"][0]["image"] = json!("evil.example/miner");
    pod
}

/// A pod that violates `hostNamespaces` alone.
fn sharing() -> Json {
    let mut pod = tool_pod("sharing", UID);
    pod["spec"]["hostPID"] = json!(true);
    pod
}

fn deployment(pod: &Json) -> Json {
    let mut spec = pod["spec"].clone();
    spec["restartPolicy"] = json!("Always");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": pod["metadata"]["name"]},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {
            "metadata": {"labels": {"app": "x"}}, "spec": spec,
        }},
    })
}

/// The answer to the creation of an object: `Deny`, `Warn` or `Audit`, and the policy that denies or warns.
fn answer(cluster: &Cluster, namespace: &str, object: &Json) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().map_err(|error| error.to_string())?;
    std::fs::write(file.path(), object.to_string()).map_err(|error| error.to_string())?;
    let path = file.path().display().to_string();
    let policy = |text: &str| {
        let names: Vec<_> =
            text.split("ValidatingAdmissionPolicy '").skip(1).filter_map(|rest| rest.split('\'').next()).collect();
        names.join(" ")
    };
    match cluster.kubectl_both(&["create", "--dry-run=server", "-f", &path, "--namespace", namespace]) {
        Ok((_, warnings)) if warnings.contains("Validation failed") => Ok(format!("Warn {}", policy(&warnings))),
        Ok(_) => Ok("Audit".to_owned()),
        Err(error) if error.to_string().contains("ValidatingAdmissionPolicy '") => {
            Ok(format!("Deny {}", policy(&error.to_string())))
        }
        Err(error) => Err(error.to_string()),
    }
}

async fn enforced(cluster: &Cluster, test: &str, part: &str) -> TestResult {
    eventually(&format!("Enforced says: {part}"), || async {
        let status = cluster.profiles().get(test).await.map_err(|error| error.to_string())?.status;
        let all = status.map(|status| status.conditions).unwrap_or_default();
        let message = all.into_iter().find(|one| one.type_ == "Enforced").map(|one| one.message).unwrap_or_default();
        if message.contains(part) { Ok(()) } else { Err(message) }
    })
    .await?;
    Ok(())
}

pub(crate) async fn a_check_can_have_a_stage_of_its_own(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "own-stage");
    let labels = |stage: Option<&str>| {
        let mut labels = json!({"tenancy": test});
        if let Some(stage) = stage {
            labels[names::stage_label(test)] = json!(stage);
        }
        labels
    };
    let uid = json!({"toolforge.org/uid": UID.to_string()});
    cluster.create_namespace("own-stage-a", &labels(None), &uid).await?;
    cluster.create_namespace("own-stage-audit", &labels(Some("Audit")), &uid).await?;
    // What a profile at Audit reads from the namespace is missing here.
    cluster.create_namespace("own-stage-broken", &labels(None), &json!({})).await?;
    let (pods, workloads) = (names::policy(test, Shape::Pods), names::policy(test, Shape::Workloads));
    let [checks, templates] = Shape::OF_PODS.map(|shape| names::policy(test, Part::Checks(shape)));
    let audit = || "Audit".to_owned();
    for (enforcement, of_pods, of_workloads, part) in [
        (
            json!({"pods": "Audit", "workloads": "Audit", "checks": {"imageRegistries": "Deny"}}),
            [format!("Deny {checks}"), audit()],
            [format!("Deny {templates}"), audit()],
            "; the API server denies violations of check imageRegistries",
        ),
        (
            json!({"pods": "Deny", "workloads": "Warn", "checks": {"imageRegistries": "Warn"}}),
            [format!("Warn {checks}"), format!("Deny {pods}")],
            // The stage of workloads is that of the check: one policy judges all of them.
            [format!("Warn {workloads}"), format!("Warn {workloads}")],
            "; an object that violates only check imageRegistries is admitted with a warning and audited",
        ),
        (
            json!({"pods": "Deny", "workloads": "Deny", "checks": {"imageRegistries": "Audit", "seccompProfile": "Audit"}}),
            [audit(), format!("Deny {pods}")],
            [audit(), format!("Deny {workloads}")],
            "; an object that violates only checks imageRegistries, seccompProfile is admitted and audited",
        ),
        (
            json!({"pods": "Deny", "workloads": "Off", "checks": {"imageRegistries": "Deny"}}),
            [format!("Deny {pods}"), format!("Deny {pods}")],
            [audit(), audit()],
            "denies pods that violate the profile, and admits compliant objects",
        ),
    ] {
        cluster.apply_profile(&profile(test, &enforcement)?).await?;
        cluster.wait_condition(test, "Programmed", "True").await?;
        let objects = [foreign(), sharing(), deployment(&foreign()), deployment(&sharing())];
        for (object, expected) in objects.iter().zip(of_pods.iter().chain(&of_workloads)) {
            eventually(&format!("{} {} by {enforcement}", object["kind"], object["metadata"]["name"]), || async {
                let found = answer(cluster, "own-stage-a", object)?;
                if found == *expected { Ok(()) } else { Err(found) }
            })
            .await?;
        }
        cluster.wait_admitted("own-stage-a", &tool_pod("job", UID)).await?;
        enforced(cluster, test, part).await?;
    }

    // The stage of a check does not depend on that of the namespace, and is not more than it: a check that reads no
    // parameters does not close a namespace without them.
    let by_label = json!({
        "pods": "Audit", "workloads": "Audit", "namespaceStages": "ByLabel", "checks": {"imageRegistries": "Deny"},
    });
    cluster.apply_profile(&profile(test, &by_label)?).await?;
    cluster.wait_condition(test, "Enforced", "True").await?;
    for namespace in ["own-stage-a", "own-stage-audit", "own-stage-broken"] {
        for (object, expected) in [
            (foreign(), format!("Deny {checks}")),
            (deployment(&foreign()), format!("Deny {templates}")),
            (sharing(), audit()),
            (deployment(&sharing()), audit()),
            (tool_pod("job", UID), audit()),
        ] {
            eventually(&format!("{} {} in {namespace}", object["kind"], object["metadata"]["name"]), || async {
                let found = answer(cluster, namespace, &object)?;
                if found == expected { Ok(()) } else { Err(found) }
            })
            .await?;
        }
    }
    cluster.delete_profile(test).await?;
    let left = cluster.left_of(test)?;
    ensure!(left.is_empty(), "left: {left}");
    Ok(())
}

/// Whichever policy judges a check: while it is in Deny before and after, what violates it is denied meanwhile.
pub(crate) async fn a_check_in_deny_stays_in_it_while_the_profile_changes(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "check-in-deny");
    let namespace = "check-in-deny";
    cluster
        .create_namespace(namespace, &json!({"tenancy": test}), &json!({"toolforge.org/uid": UID.to_string()}))
        .await?;
    let none = json!({"pods": "Deny", "workloads": "Warn"});
    let own = json!({"pods": "Audit", "workloads": "Audit", "checks": {"imageRegistries": "Deny"}});
    let more = json!({
        "pods": "Audit", "workloads": "Off", "checks": {"imageRegistries": "Deny", "runAsUser": "Deny"},
        "namespaceStages": "ByLabel",
    });
    let other = json!({"pods": "Deny", "workloads": "Warn", "checks": {"hostNamespaces": "Audit"}});
    cluster.apply_profile(&profile(test, &none)?).await?;
    let denied = |pod: Json, denied: bool| async move {
        eventually(&format!("{} is denied: {denied}", pod["metadata"]["name"]), || async {
            match cluster.dry_run(namespace, &pod).await {
                Verdict::Denied(_) if denied => Ok(()),
                Verdict::Admitted if !denied => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
    };
    denied(foreign(), true).await?;
    let bad = Watch::start(cluster, namespace, foreign(), false);
    for (enforcement, of_others) in
        [(&own, false), (&none, true), (&more, false), (&other, false), (&own, false), (&more, false), (&none, true)]
    {
        cluster.apply_profile(&profile(test, enforcement)?).await?;
        cluster.wait_condition(test, "Programmed", "True").await?;
        denied(sharing(), of_others).await?;
    }
    bad.finish("a pod that violates a check in Deny, while the profile changes").await?;
    cluster.delete_profile(test).await
}
