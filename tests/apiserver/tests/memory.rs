//! Objects as large as a tenant can make them do not take the memory of what lists them.

use std::{
    process::{Child, Command, Stdio},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use palisade_api::RolloutPhase;
use palisade_tests::{Cluster, ControllerProcess, TestResult, Verdict, ensure, peak_of, within};
use serde_json::{Value as Json, json};

use crate::{
    audit::PALISADE,
    rollout::{self, wait_rollout},
    scan::{self, wait_found},
};

crate::groups::scenarios! {
    large_objects_of_a_tenant_do_not_exhaust_memory: Memory if "PALISADE_LARGE";
}

const UID: i64 = 50_001;
/// The limit of memory in the manifests.
const LIMIT: u64 = 256 << 20;
/// How many objects a tenant makes, unless `PALISADE_LARGE_OBJECTS` says more.
const COUNT: usize = 300;

/// A PodTemplate of 0.9 MB that violates the profile.
fn large(name: &str) -> Json {
    json!({
        "apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": name},
        "template": {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "c", "image": "nginx", "args": vec!["x".repeat(1000); 900]}]},
        },
    })
}

/// Waits for a process, and returns the most memory that it had.
async fn peak_at_end(mut child: Child) -> TestResult<u64> {
    let mut peak = 0;
    loop {
        // Of a process that has ended nothing can be read.
        peak = peak.max(peak_of(child.id()).unwrap_or_default());
        if let Some(status) = child.try_wait()? {
            ensure!(status.code().is_some_and(|code| code < 2), "{status}");
            return Ok(peak);
        }
        // The interval between two measurements of its memory.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

pub(crate) async fn large_objects_of_a_tenant_do_not_exhaust_memory(cluster: &mut Cluster) -> TestResult {
    let test = "large";
    let count = std::env::var("PALISADE_LARGE_OBJECTS").ok().map_or(Ok(COUNT), |count| count.parse())?;
    cluster.stop_controller().await?;
    cluster.create_tool(test, test, UID).await?;
    let path = format!("/api/v1/namespaces/{test}/podtemplates");
    {
        let (cluster, path) = (&*cluster, path.as_str());
        stream::iter(0..count)
            .map(Ok)
            .try_for_each_concurrent(4, |index| async move {
                let created = cluster.create_at(path, &large(&format!("large-{index}"))).await;
                ensure!(created == Verdict::Admitted, "{created:?}");
                TestResult::Ok(())
            })
            .await?;
    }
    scan::permit(cluster, "apply")?;
    rollout::permit(cluster, "apply")?;

    // The scan, of all kinds in all namespaces.
    let mut profile = rollout::profile(test, &Json::Null);
    profile["spec"]["rollout"].take();
    if let Some(spec) = profile["spec"].as_object_mut() {
        spec.remove("rollout");
    }
    cluster.apply_profile(&profile).await?;
    let controller = ControllerProcess::scanning(cluster, Duration::from_secs(5))?;
    wait_found(cluster, test, i64::try_from(count)?).await?;
    let scanned = controller.peak_memory()?;
    drop(controller);

    // The rollout, of one namespace.
    let profile = rollout::profile(test, &json!({"waves": [{"percent": 100}]}));
    cluster.apply_profile(&profile).await?;
    let controller = ControllerProcess::start(cluster)?;
    wait_rollout(cluster, test, "the namespace is held", |status| {
        status.phase == RolloutPhase::Complete && status.held == 1
    })
    .await?;
    let judged = controller.peak_memory()?;
    drop(controller);

    let directory = tempfile::tempdir()?;
    let kubeconfig = directory.path().join("kubeconfig");
    std::fs::write(&kubeconfig, cluster.control_plane.kubeconfig())?;
    let palisade = |arguments: &[&str]| -> TestResult<Child> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg(PALISADE).args(arguments).arg("--kubeconfig").arg(&kubeconfig);
        Ok(command.stdout(Stdio::null()).stderr(Stdio::inherit()).spawn()?)
    };
    let dump = directory.path().join("dump").display().to_string();
    let dumped = peak_at_end(palisade(&["dump", &dump])?).await?;
    let reported = peak_at_end(palisade(&["report", "--live", "-o", "json"])?).await?;
    let mib = |bytes: u64| bytes >> 20;
    println!(
        "{count} objects of 0.9 MB: peak of the scan {} MiB, of the rollout {} MiB, of dump {} MiB, of report --live {} MiB",
        mib(scanned),
        mib(judged),
        mib(dumped),
        mib(reported)
    );
    for (what, peak) in [("the scan", scanned), ("the rollout", judged), ("dump", dumped), ("report --live", reported)]
    {
        ensure!(peak > 0 && peak < LIMIT, "{what} took {} MiB", mib(peak));
    }
    cluster.kubectl(&["delete", "podtemplates", "--all", "-n", test])?;
    scan::permit(cluster, "delete")?;
    rollout::permit(cluster, "delete")?;
    cluster.start_controller().await?;
    let ((), _) = within(Duration::from_mins(2), "the profile goes", || async {
        cluster.delete_profile(test).await.map_err(|error| error.to_string())
    })
    .await?;
    Ok(())
}
