//! The metrics of an API server about the requests that it denied.

use std::io::Write as _;

use k8s_openapi::api::core::v1::Pod;
use kube::{Api, api::DeleteParams};
use palisade_cli::CommandOutput;
use palisade_controlplane::Shutdown;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod};
use serde_json::{Value as Json, json};
use tempfile::NamedTempFile;

crate::groups::scenarios! {
    metrics_of_an_api_server_count_by_profile: Reconciled 25;
}

/// The first argument with which the test's own program is `palisade`.
pub(crate) const PALISADE: &str = "palisade";
const UID: i64 = 50_001;

/// A profile at a stage, whose objects are written, and a namespace of it.
async fn profile(cluster: &Cluster, stage: &str) -> TestResult<String> {
    let test = format!("counted-{}", stage.to_lowercase());
    cluster.create_tool(&test, &test, UID).await?;
    let mut profile = Cluster::small_profile(&test);
    profile["spec"]["enforcement"] = json!({"pods": stage});
    cluster.apply_profile(&profile).await?;
    cluster.wait_condition(&test, "Programmed", "True").await?;
    Ok(test)
}

pub(crate) async fn metrics_of_an_api_server_count_by_profile(cluster: &mut Cluster) -> TestResult {
    // A second API server: the first one has counted probes.
    let url = cluster.control_plane.add_apiserver([""; 0]).await?;
    // Where the last one is in force, the others are.
    let (noted, warned, denied) =
        (profile(cluster, "Audit").await?, profile(cluster, "Warn").await?, profile(cluster, "Deny").await?);

    let kubeconfig = cluster.control_plane.kubeconfig().replace(cluster.control_plane.url(), &url);
    let client = cluster.client_as(&kubeconfig).await?;
    let create = async |namespace: &str, name: &str| {
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        cluster.ask_as(&client, "POST", &path, &hostile_pod(name)).await
    };
    // It has the policies and parameters a moment later than the first one.
    eventually("the second API server denies", || async {
        match create(&denied, "first").await {
            Verdict::Denied(text) if text.contains("[privileged]") => Ok(()),
            Verdict::Admitted => {
                let pods = Api::<Pod>::namespaced(cluster.admin.clone(), &denied);
                let _ = pods.delete("first", &DeleteParams::default().grace_period(0)).await;
                Err("admitted".to_owned())
            }
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    for index in 0..2 {
        let verdict = create(&denied, &format!("denied-{index}")).await;
        ensure!(verdict.denial().is_some(), "{verdict:?}");
    }
    for (namespace, name) in [(&warned, "warned"), (&noted, "noted")] {
        let verdict = create(namespace, name).await;
        ensure!(verdict == Verdict::Admitted, "{namespace}: {verdict:?}");
    }
    by_its_metrics(cluster, &kubeconfig, [&denied, &warned, &noted]).await?;
    for profile in [denied, warned, noted] {
        cluster.delete_profile(&profile).await?;
    }
    cluster.control_plane.remove_apiserver(&url, Shutdown::Graceful).await?;
    Ok(())
}

/// Runs `palisade audit --metrics` with a kubeconfig.
async fn audit_metrics(kubeconfig: &str) -> TestResult<CommandOutput> {
    let mut file = NamedTempFile::new()?;
    file.write_all(kubeconfig.as_bytes())?;
    let path = file.path().display().to_string();
    let arguments = [PALISADE, "audit", "--metrics", "-o", "json", "--kubeconfig", &path].map(Into::into);
    Ok(tokio::task::spawn_blocking(move || palisade_cli::captured(arguments)).await?)
}

async fn by_its_metrics(cluster: &Cluster, kubeconfig: &str, [denied, warned, noted]: [&str; 3]) -> TestResult {
    let CommandOutput { code, out, err } = audit_metrics(kubeconfig).await?;
    ensure!(code == 0, "{code}: {err}");
    let found: Json = serde_json::from_str(&out)?;
    let of =
        |name: &str| found["profiles"].as_array().into_iter().flatten().find(|one| one["profile"] == *name).cloned();
    let of_denied = of(denied).ok_or_else(|| found.to_string())?;
    ensure!(of_denied["deny"].as_u64().is_some_and(|count| count >= 3), "{of_denied}");
    for (profile, counts) in [(warned, ["0", "1", "1"]), (noted, ["0", "0", "1"])] {
        let of_profile = of(profile).ok_or_else(|| found.to_string())?;
        let actions = ["deny", "warn", "audit"].map(|action| of_profile[action].to_string());
        ensure!(actions == counts, "{profile}: {of_profile}");
    }
    let CommandOutput { code, err, .. } = audit_metrics(&cluster.kubeconfig_of("default")?).await?;
    ensure!(code == 2 && err.contains("system:monitoring"), "{code}: {err}");
    Ok(())
}
