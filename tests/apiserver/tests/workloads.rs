//! What the API server says of Deployments, Jobs and the like.

use std::collections::BTreeMap;

use palisade_api::names::{self, Shape};
use palisade_kube_json::{
    pod,
    workload::{WORKLOADS, Workload},
};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    every_workload_kind_is_judged_by_its_template: Oldest 130, Judged 70;
    author_of_a_violating_workload_is_warned: Judged 80;
    a_request_matches_one_policy: Judged 90;
}

fn profile(test: &str, workloads: &str) -> Json {
    json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": test},
        "spec": {
            "namespaceSelector": {"matchLabels": {"test": test}}, "baseline": "Baseline",
            "enforcement": {"workloads": workloads},
        },
    })
}

pub(crate) fn path(workload: &Workload, namespace: &str) -> String {
    let (api, version) = (workload.api_version, workload.resource);
    let prefix = if api == "v1" { "api" } else { "apis" };
    format!("/{prefix}/{api}/namespaces/{namespace}/{version}")
}

fn privileged() -> Json {
    let mut pod = pod::minimal("bad");
    pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
    pod
}

pub(crate) async fn every_workload_kind_is_judged_by_its_template(cluster: &mut Cluster) -> TestResult {
    let test = "templates";
    cluster.create_namespace(test, &json!({"test": test}), &json!({})).await?;
    for workload in &WORKLOADS {
        let made = cluster.create_at(&path(workload, test), &workload.around("old", &privileged())).await;
        ensure!(made == Verdict::Admitted, "{}, before there is a profile: {made:?}", workload.kind);
    }
    cluster.enforce(&profile(test, "Deny")).await?;
    let policy = format!("ValidatingAdmissionPolicy '{}'", names::policy(test, Shape::Workloads));
    for workload in &WORKLOADS {
        let (kind, path) = (workload.kind, path(workload, test));
        let bad = workload.around("bad", &privileged());
        eventually(&format!("{kind} denied"), || async {
            let verdict = cluster.dry_run_at(&cluster.admin, &path, &bad).await;
            let right = |text: &&str| {
                text.contains(&policy)
                    && text.contains("1 violation of ToolSecurityProfile templates in the pod template: [privileged]")
            };
            verdict.denial().filter(right).map(|_| ()).ok_or(format!("{verdict:?}"))
        })
        .await?;
        let good = cluster.dry_run_at(&cluster.admin, &path, &workload.around("good", &pod::minimal("x"))).await;
        ensure!(good == Verdict::Admitted, "{kind} that complies: {good:?}");

        // A workload from before the profile may be labelled, scaled and corrected; its template may not change and
        // still violate.
        let old = format!("{path}/old");
        let labelled = cluster.patch_at(&old, &json!({"metadata": {"labels": {"a": "b"}}})).await;
        ensure!(labelled == Verdict::Admitted, "a label on a {kind}: {labelled:?}");
        // The template of a Job cannot be changed at all.
        if kind == "Job" {
            continue;
        }
        let with = |template: Json| {
            let mut patch = template;
            for key in workload.template.rsplit('/').filter(|key| !key.is_empty()) {
                patch = json!({key: patch});
            }
            patch
        };
        let annotated = cluster.patch_at(&old, &with(json!({"metadata": {"annotations": {"a": "b"}}}))).await;
        ensure!(
            annotated.denial().is_some_and(|text| text.contains(&policy)),
            "another template of a {kind}: {annotated:?}"
        );
        let unprivileged = json!({"spec": {"containers": pod::minimal("x")["spec"]["containers"]}});
        let repaired = cluster.patch_at(&old, &with(unprivileged)).await;
        ensure!(repaired == Verdict::Admitted, "a {kind} put right: {repaired:?}");
    }
    let scaled =
        cluster.patch_at(&format!("{}/old", path(&WORKLOADS[0], test)), &json!({"spec": {"replicas": 3}})).await;
    ensure!(scaled == Verdict::Admitted, "{scaled:?}");
    cluster.delete_profile(test).await
}

pub(crate) async fn author_of_a_violating_workload_is_warned(cluster: &mut Cluster) -> TestResult {
    let test = "authors";
    cluster.create_namespace(test, &json!({"test": test}), &json!({})).await?;
    cluster.enforce(&profile(test, "Warn")).await?;
    let file = std::env::temp_dir().join(format!("palisade-deployment-{}.json", std::process::id()));
    std::fs::write(&file, WORKLOADS[0].around("bad", &privileged()).to_string())?;
    let path = file.display().to_string();
    let apply = || {
        cluster
            .kubectl_both(&["apply", "--dry-run=server", "-f", &path, "--namespace", test])
            .map_err(|error| error.to_string())
    };
    let warning = eventually("a warning", || async {
        let (out, warning) = apply()?;
        if out.contains("deployment.apps/bad created") && !warning.is_empty() {
            Ok(warning)
        } else {
            Err(out + &warning)
        }
    })
    .await?;
    println!("{warning}");
    ensure!(
        warning.contains(
            "Warning: Validation failed for ValidatingAdmissionPolicy 'palisade-authors-workloads' with binding \
             'palisade-authors-workloads': 1 violation of ToolSecurityProfile authors in the pod template: [privileged] \
             container \"main\": "
        ),
        "{warning}"
    );

    // Without this stage there is neither a policy nor a binding.
    cluster.apply_profile(&profile(test, "Off")).await?;
    let name = names::policy(test, Shape::Workloads);
    eventually("no policy", || async {
        let policy = cluster.policies().get_opt(&name).await.map_err(|error| error.to_string())?;
        let binding = cluster.bindings().get_opt(&name).await.map_err(|error| error.to_string())?;
        if policy.is_none() && binding.is_none() { Ok(()) } else { Err(format!("{policy:?} {binding:?}")) }
    })
    .await?;
    eventually("no warning", || async {
        let (_, warning) = apply()?;
        if warning.is_empty() { Ok(()) } else { Err(warning) }
    })
    .await?;
    std::fs::remove_file(&file)?;
    let status = cluster.wait_condition(test, "Enforced", "True").await?.status.unwrap_or_default();
    ensure!(status.generated_policies == [names::policy(test, Shape::Pods)], "{:?}", status.generated_policies);
    cluster.delete_profile(test).await
}

/// The cost of a request grows with each policy that matches it. So this reads the API server's counts of denials by
/// policy: it counts every policy that denies a request.
pub(crate) async fn a_request_matches_one_policy(cluster: &mut Cluster) -> TestResult {
    const REQUESTS: u64 = 7;
    let test = "matches";
    cluster.create_namespace(test, &json!({"test": test}), &json!({})).await?;
    // With parameters each policy has two bindings.
    let mut profile = profile(test, "Deny");
    profile["spec"]["parameters"] = json!([{"name": "unused", "type": "String", "default": "x"}]);
    cluster.enforce(&profile).await?;
    let deployment = path(&WORKLOADS[0], test);
    eventually("a Deployment denied", || async {
        let bad = WORKLOADS[0].around("x", &privileged());
        let verdict = cluster.dry_run_at(&cluster.admin, &deployment, &bad).await;
        verdict.denial().filter(|text| text.contains("[privileged]")).map(|_| ()).ok_or(format!("{verdict:?}"))
    })
    .await?;
    for (asked, pod) in [(Shape::Pods, true), (Shape::Workloads, false)] {
        let before = denied(cluster, test)?;
        for _ in 0..REQUESTS {
            let verdict = if pod {
                cluster.dry_run(test, &privileged()).await
            } else {
                cluster.dry_run_at(&cluster.admin, &deployment, &WORKLOADS[0].around("x", &privileged())).await
            };
            ensure!(verdict.denial().is_some(), "{verdict:?}");
        }
        let after = denied(cluster, test)?;
        for shape in Shape::OF_PODS {
            let name = names::policy(test, shape);
            let count = |at: &BTreeMap<String, u64>| at.get(&name).copied().unwrap_or_default();
            let expected = if shape == asked { REQUESTS } else { 0 };
            ensure!(count(&after) - count(&before) == expected, "{asked:?}, {name}: {before:?}, then {after:?}");
        }
    }
    cluster.delete_profile(test).await
}

/// How often the API server has denied by each policy of a profile, by its own metrics.
fn denied(cluster: &Cluster, profile: &str) -> Result<BTreeMap<String, u64>, Box<dyn std::error::Error + Send + Sync>> {
    let metrics = cluster.kubectl(&["get", "--raw", "/metrics"])?;
    let mut counts = BTreeMap::new();
    for line in metrics.lines().filter(|line| line.starts_with("apiserver_validating_admission_policy_check_total{")) {
        let policy = line.split("policy=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default();
        let count: u64 = line.rsplit(' ').next().unwrap_or_default().parse()?;
        if policy.starts_with(&format!("palisade-{profile}-")) {
            *counts.entry(policy.to_owned()).or_default() += count;
        }
    }
    Ok(counts)
}
