//! 3,500 namespaces, as many as Toolforge has.

use std::time::{Duration, Instant};

use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{DeleteParams, ListParams};
use palisade_api::names;
use palisade_tests::{Cluster, TestResult, ensure, hostile_pod, tool_pod, within};
use serde_json::json;

crate::groups::scenarios! {
    number_of_policies_is_constant_for_3500_namespaces: Large 20 if "PALISADE_LARGE";
}

const NAMESPACES: i64 = 3_500;
const UID: i64 = 50_000;
const TEST: &str = "scale";
/// How long thousands of objects may take, on a machine that has other things to do.
const LIMIT: Duration = Duration::from_mins(10);

pub(crate) async fn number_of_policies_is_constant_for_3500_namespaces(cluster: &mut Cluster) -> TestResult {
    let mut profile = Cluster::toolforge_profile(TEST)?;
    create_namespaces(cluster, 0..10).await?;
    cluster.enforce(&profile).await?;
    let few = generated(cluster).await?;

    create_namespaces(cluster, 10..NAMESPACES).await?;
    let start = Instant::now();
    ready(cluster, NAMESPACES).await?;
    println!("{NAMESPACES} namespaces ready {:.1} s after the last was made", start.elapsed().as_secs_f64());
    ensure!(generated(cluster).await? == few, "the number of policies and bindings depends on the namespaces");
    // A policy for pods and one for workloads, each with a binding for what creates and one for updates.
    ensure!(few <= 6, "{few} policies and bindings");
    let before = cluster.params_versions(TEST).await?;
    ensure!(before.len() == usize::try_from(NAMESPACES)?, "{} parameter objects", before.len());
    for index in [0, 1, NAMESPACES / 2, NAMESPACES - 1] {
        let namespace = format!("scale-{index}");
        cluster.wait_admitted(&namespace, &tool_pod("job", UID + index)).await?;
        let verdict = cluster.dry_run(&namespace, &tool_pod("job", UID + index + 1)).await;
        ensure!(verdict.denial().is_some_and(|text| text.contains("[runAsUser]")), "{namespace}: {verdict:?}");
    }

    // A constant: the policy is written, and no parameters.
    let policies = cluster.policy_versions(TEST).await?;
    profile["spec"]["users"]["supplementalGroups"]["ranges"][0]["max"] = json!(40_000);
    cluster.enforce(&profile).await?;
    let changed = cluster.policy_versions(TEST).await?;
    ensure!(changed.0 != policies.0, "the policy was not written");
    ensure!(cluster.params_versions(TEST).await? == before, "parameters were written");

    // A restart: nothing at all is written.
    cluster.stop_controller().await?;
    cluster.start_controller().await?;
    ready(cluster, NAMESPACES).await?;
    // Nothing may be written during this time.
    tokio::time::sleep(Duration::from_secs(3)).await;
    ensure!(cluster.params_versions(TEST).await? == before, "a restart wrote parameters");
    ensure!(cluster.policy_versions(TEST).await? == changed, "a restart wrote policies");
    let metrics = cluster.controller_get("/metrics").await?;
    let lines: Vec<_> = metrics.lines().filter(|line| line.contains("scale-")).collect();
    ensure!(lines.is_empty(), "metrics name namespaces: {lines:?}");

    let start = Instant::now();
    cluster.profiles().delete(TEST, &DeleteParams::default()).await?;
    within(LIMIT, "the profile is gone", || async {
        match cluster.profiles().get_opt(TEST).await {
            Ok(None) => Ok(()),
            other => Err(format!("{:?}", other.map(|found| found.map(|found| found.status)))),
        }
    })
    .await?;
    println!("all removed {:.1} s after the profile was deleted", start.elapsed().as_secs_f64());
    cluster.wait_admitted("scale-7", &hostile_pod("free")).await?;
    ensure!(cluster.params_versions(TEST).await?.is_empty(), "parameters are left");
    Ok(())
}

pub(crate) async fn create_namespaces(cluster: &Cluster, range: std::ops::Range<i64>) -> TestResult {
    stream::iter(range)
        .map(Ok)
        .try_for_each_concurrent(32, |index| async move {
            cluster.create_tool(TEST, &format!("scale-{index}"), UID + index).await
        })
        .await
}

/// The policies and bindings of the profile.
async fn generated(cluster: &Cluster) -> Result<usize, Box<dyn std::error::Error + Send + Sync>> {
    let selector = ListParams::default().labels(&format!("{}={TEST}", names::PROFILE_LABEL));
    Ok(cluster.policies().list(&selector).await?.items.len() + cluster.bindings().list(&selector).await?.items.len())
}

/// Waits until the controller has seen so many namespaces ready, by its own metrics: a status may be of before a
/// restart.
async fn ready(cluster: &Cluster, count: i64) -> TestResult {
    within(LIMIT, "all namespaces ready", || async {
        let metrics = cluster.controller_get("/metrics").await.map_err(|error| error.to_string())?;
        let line = metrics.lines().find(|line| {
            line.starts_with("palisade_namespaces{")
                && line.contains("profile=\"scale\"")
                && line.contains("state=\"ready\"")
        });
        if line.is_some_and(|line| line.ends_with(&format!(" {count}"))) { Ok(()) } else { Err(format!("{line:?}")) }
    })
    .await?;
    Ok(())
}
