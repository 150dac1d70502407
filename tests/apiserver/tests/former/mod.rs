//! What a release has left in the API server, when the next one takes over.

mod kept;
mod make;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{RolloutPhase, conditions::ExceptionReason, names};
use palisade_controller::{Options, ScanInterval};
use palisade_controlplane::Shutdown;
use palisade_kube_json::pod;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, root, tool_pod};
use serde_json::{Value as Json, json};

use self::kept::{essence, has_all_of, kept, newest};
pub(crate) use self::make::what_this_version_makes_is_kept;
use crate::{
    exceptions::wait_state,
    history::printed,
    lifecycle::Watch,
    rollout::{self, Labels, wait_rollout},
    scan,
    trail::{Written, written},
};

crate::groups::scenarios! {
    objects_of_the_last_release_are_taken_over: Audited 50 needs NATIVE_MUTATION;
    // It writes into the repository: cargo xtask fixtures.
    what_this_version_makes_is_kept: Fixtures if "PALISADE_FIXTURES";
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// The profile of the fixtures, and the label by which it selects its namespaces.
const TEST: &str = "former";
const UID: i64 = 50_001;
/// A namespace that the rollout took to Deny, with an approved exception; and one that it holds in Audit.
const DENY: &str = "former-deny";
const HELD: &str = "former-held";
/// The Deployment that the exception is for.
const EXEMPT: &str = "encoder";
/// What the controller must not write where it is right already.
const GENERATED: [&str; 7] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "toolsecurityparams",
    "controllerrevisions",
    "namespaces",
];

/// A pod that complies but for what the exception lifts, as the ReplicaSet of a Deployment makes it.
fn pod_of(deployment: &str) -> Json {
    let mut found = tool_pod("exempt", UID);
    pod::set_container(&mut found, &["securityContext", "privileged"], json!(true));
    pod::set_container(&mut found, &["securityContext", "allowPrivilegeEscalation"], json!(true));
    let owner = json!([{
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "name": format!("{deployment}-5d4f8c7b9"), "uid": "1-2-3", "controller": true,
    }]);
    found["metadata"]["ownerReferences"] = owner;
    found["metadata"]["labels"]["pod-template-hash"] = json!("5d4f8c7b9");
    found
}

/// The background scan runs each second.
fn options() -> Result<Options> {
    Ok(Options { scan_interval: ScanInterval(Some(Duration::from_secs(1))), ..Cluster::options()? })
}

/// Waits until the API server denies what violates.
async fn wait_denied(cluster: &Cluster) -> TestResult {
    eventually("a violating pod is denied", || async {
        let verdict = cluster.dry_run(DENY, &hostile_pod("hostile")).await;
        verdict.denial().filter(|text| text.contains("[privileged]")).map(drop).ok_or(format!("{verdict:?}"))
    })
    .await?;
    Ok(())
}

/// Waits until a controller that was just started has probed the profile and scanned the cluster twice: what its conditions
/// say could be the word of the former one.
async fn wait_settled(cluster: &Cluster) -> TestResult {
    eventually("the controller has probed and scanned", || async {
        let metrics = cluster.controller_get("/metrics").await.map_err(|error| error.to_string())?;
        let probed = format!("palisade_probe_total{{profile=\"{TEST}\",result=\"passed\"}}");
        if metrics.contains(&probed) && scan::scans(&metrics) >= 2 { Ok(()) } else { Err(metrics) }
    })
    .await?;
    for condition in ["Programmed", "Enforced", "Ready"] {
        cluster.wait_condition(TEST, condition, "True").await?;
    }
    let complete = |status: &palisade_api::RolloutStatus| status.phase == RolloutPhase::Complete;
    let status = wait_rollout(cluster, TEST, "complete", complete).await?;
    ensure!(status.held == 1 && status.held_namespaces[0].name == HELD, "{status:?}");
    Ok(())
}

/// What there is now of the objects that were put in, by where they are.
async fn now(cluster: &Cluster, objects: &BTreeMap<String, Json>) -> Result<BTreeMap<String, Json>> {
    let mut found = BTreeMap::new();
    for path in objects.keys() {
        found.insert(path.clone(), essence(&cluster.answer_to("GET", path, &json!(null)).await?));
    }
    Ok(found)
}

/// What the controller has written since then, besides the status of objects.
async fn writes(cluster: &Cluster, since: Timestamp) -> Result<BTreeSet<String>> {
    // The log has what was answered before this, once it has this.
    let mark = format!("former-mark-{}", Timestamp::now().as_nanosecond());
    cluster.kubectl(&["create", "configmap", &mark, "-n", DENY])?;
    let log = cluster.control_plane.audit_log_path().ok_or("no audit log")?.to_owned();
    eventually("the log has all requests", || async {
        let text = std::fs::read_to_string(&log).map_err(|error| error.to_string())?;
        if text.contains(&mark) { Ok(()) } else { Err(format!("no {mark}")) }
    })
    .await?;
    // The labels of the namespace of probes differ from probe to probe.
    let generated = |one: &Written| GENERATED.contains(&one.resource.as_str()) && one.name != names::PROBE_NAMESPACE;
    let written = written(cluster, since)?.into_iter().filter(generated);
    Ok(written.map(|one| format!("{} {}/{}", one.resource, one.namespace, one.name)).collect())
}

/// Writes the fixtures into etcd while no API server runs: the one that starts then finds them, as after an upgrade.
async fn put_in(cluster: &mut Cluster, objects: &BTreeMap<String, Json>) -> TestResult {
    cluster.control_plane.stop_apiserver(Shutdown::Graceful).await?;
    for object in objects.values() {
        cluster.control_plane.put_into_etcd(&kept::key(object)?, object.to_string().as_bytes()).await?;
    }
    Ok(cluster.control_plane.start_apiserver().await?)
}

fn apply_definitions(cluster: &Cluster, directory: &str) -> TestResult {
    let from = root().join(directory).display().to_string();
    let option = if directory == "crds" { "-k" } else { "-f" };
    cluster.kubectl(&["apply", "--server-side", "--force-conflicts", option, &from])?;
    cluster.wait_established(&["crd", "--all"])
}

pub(crate) async fn objects_of_the_last_release_are_taken_over(cluster: &mut Cluster) -> TestResult {
    cluster.stop_controller().await?;
    let release = newest()?;
    apply_definitions(cluster, &format!("crates/xtask/tests/compatibility/released/{release}"))?;
    let objects = kept(&release)?;
    // It gets no verdict until the API server has the objects, and is never admitted.
    let bad = Watch::start(cluster, DENY, hostile_pod("hostile"), false);
    put_in(cluster, &objects).await?;
    let stored = now(cluster, &objects).await?;
    for (path, object) in &objects {
        ensure!(has_all_of(&stored[path], &essence(object)), "{path}: {} is not {object}", stored[path]);
    }
    wait_denied(cluster).await?;
    cluster.wait_admitted(DENY, &tool_pod("job", UID)).await?;
    cluster.wait_admitted(DENY, &pod_of(EXEMPT)).await?;
    let good = Watch::start(cluster, DENY, tool_pod("job", UID), true);
    let exempt = Watch::start(cluster, DENY, pod_of(EXEMPT), true);
    let (seen, following) = Labels::follow(cluster, TEST).await?;

    apply_definitions(cluster, "crds")?;
    rollout::permit(cluster, "apply")?;
    scan::permit(cluster, "apply")?;
    let upgraded = now(cluster, &objects).await?;
    for (path, object) in &stored {
        ensure!(has_all_of(&upgraded[path], object), "the definitions lose something of {path}: {}", upgraded[path]);
    }

    let since = Timestamp::now();
    cluster.restart_controller(options()?).await?;
    wait_settled(cluster).await?;
    let then = now(cluster, &objects).await?;
    let written = writes(cluster, since).await?;
    let without_status = |object: &Json| {
        let mut object = object.clone();
        object.as_object_mut().map(|all| all.remove("status"));
        object
    };
    // What is as it was need not have been written.
    let differ: BTreeSet<_> = objects
        .iter()
        .filter(|(path, _)| without_status(&then[*path]) != without_status(&upgraded[*path]))
        .map(|(_, object)| kept::name(object))
        .collect();
    println!("{} objects of {release}, {} differ, written: {written:?}", objects.len(), differ.len());
    let needless: Vec<_> = written.difference(&differ).collect();
    ensure!(needless.is_empty(), "{release}: written without need: {needless:?}; {differ:?} differ");
    it_is_as_it_was(cluster).await?;
    what_differs_is_written(cluster, &objects).await?;

    for (what, watch) in [("violating", bad), ("complying", good), ("exempt", exempt)] {
        watch.finish(&format!("a {what} pod while {release} is upgraded")).await?;
    }
    {
        let seen = seen.lock().expect("no panic");
        ensure!(seen.weaker.is_empty(), "became weaker: {:?}", seen.weaker);
        let label = |name: &str| seen.now.get(name).cloned().flatten();
        ensure!(label(DENY).as_deref() == Some("Deny") && label(HELD).is_none(), "{:?}", seen.now);
    }
    drop(following);
    for verb in [rollout::permit, scan::permit] {
        verb(cluster, "delete")?;
    }
    cluster.restart_controller(Cluster::options()?).await?;
    cluster.delete_profile(TEST).await?;
    ensure!(cluster.left_of(TEST)?.is_empty(), "left: {}", cluster.left_of(TEST)?);
    Ok(())
}

/// The history, the exception, and what was held or reported.
async fn it_is_as_it_was(cluster: &Cluster) -> TestResult {
    let history: Json = serde_json::from_str(&printed(cluster, &["history", TEST, "-o", "json"]).await?)?;
    let revisions = history["revisions"].as_array().into_iter().flatten();
    let revisions: Vec<_> = revisions.filter_map(|one| one["revision"].as_i64()).collect();
    ensure!(revisions == [2, 1], "{history}");
    wait_state(cluster, DENY, EXEMPT, ExceptionReason::InForce).await?;
    let other = cluster.dry_run(DENY, &pod_of("another")).await;
    ensure!(other.denial().is_some_and(|text| text.contains("[privileged]")), "it is for one workload: {other:?}");
    let held = cluster.dry_run(HELD, &hostile_pod("another")).await;
    ensure!(held == Verdict::Admitted, "it is held in Audit: {held:?}");
    let reports = scan::reports_of(cluster, TEST).await?;
    ensure!(reports.keys().eq([HELD]), "{reports:?}");
    Ok(())
}

/// A policy and parameters as another version could have written them are written, and nothing else is.
async fn what_differs_is_written(cluster: &mut Cluster, objects: &BTreeMap<String, Json>) -> TestResult {
    cluster.stop_controller().await?;
    let policy = names::policy(TEST, names::Shape::Pods);
    let mut older = BTreeSet::new();
    for object in objects.values() {
        let mut object = object.clone();
        match object["kind"].as_str() {
            Some("ValidatingAdmissionPolicy") if object["metadata"]["name"] == json!(policy) => {
                object["spec"]["auditAnnotations"] = json!([{"key": "older", "valueExpression": "'yes'"}]);
            }
            Some("ToolSecurityParams") if object["metadata"]["namespace"] == DENY => {
                object["spec"]["strings"] = json!({"older": "yes"});
            }
            _ => continue,
        }
        cluster.control_plane.put_into_etcd(&kept::key(&object)?, object.to_string().as_bytes()).await?;
        older.insert(kept::name(&object));
    }
    ensure!(older.len() == 2, "{older:?}");
    let since = Timestamp::now();
    cluster.restart_controller(options()?).await?;
    wait_settled(cluster).await?;
    eventually("both are as they were", || async {
        let written = writes(cluster, since).await.map_err(|error| error.to_string())?;
        if written == older { Ok(()) } else { Err(format!("{written:?} and not {older:?}")) }
    })
    .await?;
    Ok(())
}
