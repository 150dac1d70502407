//! Exceptions that tenants asked for, as those who approve and clean up meet them: by `palisade exception`, by conditions,
//! and by what the background scan says of those that nothing needs.

use std::time::Duration;

use k8s_openapi::{
    apimachinery::pkg::apis::meta::v1::{Condition, Time},
    jiff::{SignedDuration, Timestamp},
};
use palisade_api::{
    RequestCounts, ToolSecurityException,
    conditions::{ExceptionCondition, ExceptionReason},
};
use palisade_controller::{Options, ScanInterval};
use palisade_kube_json::{
    pod,
    workload::{WORKLOADS, Workload},
};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::json;

use crate::{
    exceptions::{exception, privileged, profile, read, wait_state},
    history::printed,
    scan,
};

crate::groups::scenarios! {
    an_exception_that_nothing_needs_is_reported: Judged 320, OldestRollouts 60;
}

const DEPLOYMENT: &Workload = &WORKLOADS[0];

async fn in_use(cluster: &Cluster, namespace: &str, name: &str) -> Result<Option<Condition>, String> {
    let found: ToolSecurityException = read(cluster, namespace, name)
        .await
        .map_err(|error: Box<dyn std::error::Error + Send + Sync>| error.to_string())?;
    Ok(found.condition(ExceptionCondition::InUse).cloned())
}

/// Waits until the scan says whether something needs an exception. Returns since when.
async fn wait_in_use(cluster: &Cluster, namespace: &str, name: &str, reason: ExceptionReason) -> TestResult<Time> {
    let (since, _) = palisade_tests::within(Duration::from_mins(2), &format!("{name}: {reason}"), || async {
        match in_use(cluster, namespace, name).await? {
            Some(condition) if condition.reason == reason.to_string() => Ok(condition.last_transition_time),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(since)
}

async fn scanning(cluster: &mut Cluster, seconds: Option<u64>) -> TestResult {
    let scan_interval = ScanInterval(seconds.map(Duration::from_secs));
    cluster.restart_controller(Options { scan_interval, ..Cluster::options()? }).await
}

/// Two exceptions, approved by the command line.
async fn approved(cluster: &Cluster, test: &str) -> TestResult {
    let end = Timestamp::now() + SignedDuration::from_hours(1);
    let at = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{test}/toolsecurityexceptions");
    for name in ["driver", "idle"] {
        let asked = exception(name, test, &json!({"kind": "Deployment", "name": name}), end);
        let verdict = cluster.create_at(&at, &asked).await;
        ensure!(verdict == Verdict::Admitted, "{verdict:?}");
        wait_state(cluster, test, name, ExceptionReason::AwaitingApproval).await?;
    }
    let pending = printed(cluster, &["exception", "list", "-n", test, "--pending"]).await?;
    ensure!(pending.lines().count() == 3 && pending.contains("Deployment driver"), "{pending}");
    for name in ["driver", "idle"] {
        let text = printed(cluster, &["exception", "approve", name, "-n", test, "--yes", "--generation", "1"]).await?;
        ensure!(text.contains(&format!("exception {name} approved")), "{text}");
        cluster.kubectl(&["wait", "--for=condition=Ready", &format!("tse/{name}"), "-n", test, "--timeout=60s"])?;
    }
    let none = printed(cluster, &["exception", "list", "-n", test, "--pending"]).await?;
    ensure!(none.lines().count() == 1, "{none}");
    let shown = printed(cluster, &["exception", "show", "driver", "-n", test]).await?;
    ensure!(shown.contains("approved:   yes by ") && shown.contains("state:      InForce: active until "), "{shown}");
    Ok(())
}

/// A Deployment that needs its exception, without replicas.
async fn deploy(cluster: &Cluster, test: &str, name: &str) -> TestResult {
    let deployments = format!("/apis/apps/v1/namespaces/{test}/deployments");
    let mut deployment = DEPLOYMENT.around(name, &privileged());
    pod::set(&mut deployment, &["replicas"], json!(0));
    eventually("a Deployment that needs its exception", || async {
        match cluster.create_at(&deployments, &deployment).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

async fn wait_unused(cluster: &Cluster, test: &str, count: i64) -> TestResult {
    eventually("the profile counts them", || async {
        let found = cluster.profiles().get(test).await.map_err(|error| error.to_string())?;
        match found.status.and_then(|status| status.exceptions).and_then(|counts| counts.requested) {
            Some(RequestCounts { approved: 2, unused, .. }) if unused == count => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

pub(crate) async fn an_exception_that_nothing_needs_is_reported(cluster: &mut Cluster) -> TestResult {
    let test = "unused";
    cluster.create_namespace(test, &json!({"test": test}), &json!({})).await?;
    cluster.enforce(&profile(test)).await?;
    cluster.wait_admitted(test, &pod::minimal("complies")).await?;
    approved(cluster, test).await?;
    let without = in_use(cluster, test, "idle").await?;
    ensure!(without.is_none(), "nobody looks, and somebody says so: {without:?}");

    deploy(cluster, test, "driver").await?;
    scan::permit(cluster, "apply")?;
    scanning(cluster, Some(1)).await?;
    wait_in_use(cluster, test, "driver", ExceptionReason::ExemptsObjects).await?;
    let since = wait_in_use(cluster, test, "idle", ExceptionReason::ExemptsNothing).await?;
    wait_unused(cluster, test, 1).await?;
    let metrics = cluster.controller_get("/metrics").await?;
    let counted = format!("palisade_exceptions{{profile=\"{test}\",origin=\"request\",state=\"unused\"}} 1");
    ensure!(metrics.contains(&counted), "{metrics}");
    let listed = printed(cluster, &["exception", "list", "-n", test]).await?;
    ensure!(listed.contains("InForce, unused"), "{listed}");
    let shown = printed(cluster, &["exception", "show", "idle", "-n", test]).await?;
    ensure!(shown.contains(&format!("unused by existing objects since {}", since.0)), "{shown}");
    let wide = cluster.kubectl(&["get", "tse", "idle", "-n", test, "-o", "wide"])?;
    ensure!(wide.contains("IN USE") && wide.contains("InForce") && wide.contains("False"), "{wide}");

    // Another process knows since when, also before it has looked itself.
    scanning(cluster, Some(1)).await?;
    let done = scan::scans(&cluster.controller_get("/metrics").await?);
    eventually("two more scans", || async {
        let metrics = cluster.controller_get("/metrics").await.map_err(|error| error.to_string())?;
        if scan::scans(&metrics) >= done + 2 { Ok(()) } else { Err(metrics) }
    })
    .await?;
    let again = in_use(cluster, test, "idle").await?;
    ensure!(again.as_ref().is_some_and(|one| one.last_transition_time == since), "since {since:?}, then {again:?}");

    // What is needed changes with what there is.
    cluster.kubectl(&["delete", "deployment", "driver", "-n", test])?;
    deploy(cluster, test, "idle").await?;
    wait_in_use(cluster, test, "driver", ExceptionReason::ExemptsNothing).await?;
    wait_in_use(cluster, test, "idle", ExceptionReason::ExemptsObjects).await?;

    // Where nobody looks any more, nobody says anything.
    scan::permit(cluster, "delete")?;
    scanning(cluster, None).await?;
    eventually("nothing is said", || async {
        for name in ["driver", "idle"] {
            if let Some(condition) = in_use(cluster, test, name).await? {
                return Err(format!("{name}: {condition:?}"));
            }
        }
        Ok(())
    })
    .await?;
    wait_unused(cluster, test, 0).await?;

    let text = printed(cluster, &["exception", "revoke", "idle", "-n", test]).await?;
    ensure!(text.contains("exception idle revoked"), "{text}");
    wait_state(cluster, test, "idle", ExceptionReason::AwaitingApproval).await?;
    jobs_made_by_hand(cluster, test).await?;
    cluster.delete_profile(test).await
}

/// `kubectl create job --from=cronjob/nightly` makes a Job that the CronJob owns: it is judged like those of the CronJob.
/// Its pods know only the name of the Job: they count to the CronJob if that is one which a CronJob could give.
async fn jobs_made_by_hand(cluster: &Cluster, test: &str) -> TestResult {
    let end = Timestamp::now() + SignedDuration::from_hours(1);
    let at = format!("/apis/toolsecurity.dev/v1alpha1/namespaces/{test}/toolsecurityexceptions");
    let asked = exception("nightly", test, &json!({"kind": "CronJob", "name": "nightly"}), end);
    let verdict = cluster.create_at(&at, &asked).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    printed(cluster, &["exception", "approve", "nightly", "-n", test, "--yes"]).await?;
    cluster.kubectl(&["wait", "--for=condition=Ready", "tse/nightly", "-n", test, "--timeout=60s"])?;
    let mut pod = privileged();
    pod::set(&mut pod, &["restartPolicy"], json!("Never"));
    let cron_job = json!({
        "apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"},
        "spec": {
            "schedule": "0 3 * * *", "suspend": true,
            "jobTemplate": {"spec": {"template": {"spec": pod["spec"]}}},
        },
    });
    eventually("the CronJob", || async {
        match cluster.create_at(&format!("/apis/batch/v1/namespaces/{test}/cronjobs"), &cron_job).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    for name in ["by-hand", "nightly-20260401"] {
        cluster.kubectl(&["create", "job", name, "--from=cronjob/nightly", "-n", test])?;
    }
    // As kube-controller-manager makes them.
    let pod_of = |job: &str| {
        let mut pod = pod.clone();
        pod["metadata"]["ownerReferences"] =
            json!([{"apiVersion": "batch/v1", "kind": "Job", "name": job, "uid": "1-2-3", "controller": true}]);
        pod
    };
    let verdict = cluster.dry_run(test, &pod_of("nightly-20260401")).await;
    ensure!(verdict == Verdict::Admitted, "a pod of a Job whose name ends like those of the CronJob: {verdict:?}");
    for other in ["by-hand", "nightly-by-hand", "nightly-1-20260401", "other-20260401"] {
        let verdict = cluster.dry_run(test, &pod_of(other)).await;
        ensure!(verdict.denial().is_some_and(|text| text.contains("[privileged]")), "a pod of {other}: {verdict:?}");
    }
    Ok(())
}
