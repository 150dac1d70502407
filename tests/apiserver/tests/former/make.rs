//! Makes the fixtures: an install of this version, with all that its controller writes.

use std::{collections::BTreeMap, fs};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{RolloutPhase, conditions::ExceptionReason, names};
use palisade_kube_json::{pod, workload::WORKLOADS};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, root, tool_pod};
use serde_json::{Value as Json, json};

use super::{
    DENY, EXEMPT, HELD, Result, TEST, UID,
    kept::{self, KINDS},
    options, pod_of,
};
use crate::{
    exceptions::{exception, path, wait_state},
    history::printed,
    rollout::{self, wait_rollout},
    scan,
};

/// The time of everything in the fixtures.
const TIME: &str = "2026-01-01T00:00:00Z";
/// The end of the exception, which stays.
const END: &str = "2099-01-01T00:00:00Z";

fn profile() -> Result<Json> {
    let mut profile = Cluster::toolforge_profile(TEST)?;
    let spec = &mut profile["spec"];
    spec["enforcement"] = json!({"pods": "Audit", "workloads": "Audit", "namespaceStages": "ByLabel"});
    spec["mutation"] = json!({"defaults": "Secure"});
    spec["exceptionRequests"] = json!({"checks": ["privileged", "allowPrivilegeEscalation"]});
    Ok(profile)
}

/// `PALISADE_FIXTURES=1`, by `cargo xtask fixtures`.
pub(crate) async fn what_this_version_makes_is_kept(cluster: &mut Cluster) -> TestResult {
    rollout::permit(cluster, "apply")?;
    scan::permit(cluster, "apply")?;
    cluster.restart_controller(options()?).await?;
    for namespace in [DENY, HELD] {
        cluster.create_tool(TEST, namespace, UID).await?;
    }
    cluster.enforce(&profile()?).await?;
    offend(cluster).await?;
    let verdict = cluster.create_at(&format!("/apis/apps/v1/namespaces/{DENY}/deployments"), &deployment()).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    let mut asked = exception(EXEMPT, TEST, &json!({"kind": "Deployment", "name": EXEMPT}), END.parse()?);
    asked["spec"]["checks"] = json!(["privileged", "allowPrivilegeEscalation"]);
    let at = path(DENY, "");
    let verdict = cluster.create_at(at.trim_end_matches('/'), &asked).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    wait_state(cluster, DENY, EXEMPT, ExceptionReason::AwaitingApproval).await?;
    printed(cluster, &["exception", "approve", EXEMPT, "-n", DENY, "--yes", "--generation", "1"]).await?;
    wait_state(cluster, DENY, EXEMPT, ExceptionReason::InForce).await?;

    let mut rolled_out = profile()?;
    rolled_out["spec"]["rollout"] =
        json!({"waves": [{"names": [DENY], "stage": "Warn", "soakSeconds": 1}, {"percent": 100}]});
    cluster.apply_profile(&rolled_out).await?;
    wait_rollout(cluster, TEST, "complete", |status| status.phase == RolloutPhase::Complete).await?;
    super::wait_settled(cluster).await?;
    eventually("the held namespace has a report, and the exception is needed", || async {
        let reports = scan::reports_of(cluster, TEST).await.map_err(|error| error.to_string())?;
        let exception = cluster.kubectl(&["get", "tse", EXEMPT, "-n", DENY, "-o", "yaml"]);
        let exception = exception.map_err(|error| error.to_string())?;
        if reports.keys().eq([HELD]) && exception.contains("ExemptsObjects") { Ok(()) } else { Err(exception) }
    })
    .await?;
    let objects = at_rest(cluster).await?;
    cluster.stop_controller().await?;
    let release = env!("CARGO_PKG_VERSION");
    kept::keep(release, &stable(objects, cluster.control_plane.url()))?;
    let definitions = root().join("crates/xtask/tests/compatibility/released").join(release);
    fs::create_dir_all(&definitions)?;
    for file in fs::read_dir(root().join("crds"))?.flatten().filter(|one| one.file_name() != "kustomization.yaml") {
        let _ = fs::copy(file.path(), definitions.join(file.file_name()))?;
    }
    println!("wrote the objects and the definitions of {release}");
    Ok(())
}

/// A pod that violates the profile, while all namespaces are in Audit.
async fn offend(cluster: &Cluster) -> TestResult {
    let mut hostile = hostile_pod("hostile");
    // A volume with a random name is mounted otherwise.
    hostile["spec"]["automountServiceAccountToken"] = json!(false);
    eventually("a pod that violates the profile", || async {
        match cluster.create_pod(HELD, &hostile).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

/// It needs the exception, and has no replicas.
fn deployment() -> Json {
    let mut exempt = tool_pod(EXEMPT, UID);
    exempt["spec"]["containers"] = pod_of(EXEMPT)["spec"]["containers"].clone();
    exempt["spec"]["restartPolicy"] = json!("Always");
    let mut deployment = WORKLOADS[0].around(EXEMPT, &exempt);
    pod::set(&mut deployment, &["replicas"], json!(0));
    deployment
}

/// All that there is of it.
async fn all(cluster: &Cluster) -> Result<Vec<Json>> {
    let mut all = Vec::new();
    for kind in &KINDS {
        let list = cluster.answer_to("GET", &kind.list(), &json!(null)).await?;
        for object in list["items"].as_array().into_iter().flatten() {
            let meta = &object["metadata"];
            let text = |of: &Json| of.as_str().unwrap_or_default().to_owned();
            let (name, namespace) = (text(&meta["name"]), text(&meta["namespace"]));
            let labelled = meta["labels"][names::PROFILE_LABEL] == TEST;
            if [DENY, HELD].iter().any(|one| name == *one || namespace == *one) || name == TEST || labelled {
                let mut object = object.clone();
                object["kind"] = json!(kind.name);
                object["apiVersion"] = json!(kind.api_version);
                object["metadata"].as_object_mut().map(|meta| meta.remove("resourceVersion"));
                all.push(object);
            }
        }
    }
    Ok(all)
}

/// The same, once nothing changes any more but times.
async fn at_rest(cluster: &Cluster) -> Result<Vec<Json>> {
    let mut before = Vec::new();
    for _ in 0..30 {
        let found = all(cluster).await?;
        let steady = stable(found.clone(), cluster.control_plane.url());
        if steady == before {
            return Ok(found);
        }
        before = steady;
        // Two reads with this interval must be equal.
        tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    }
    Err("the objects do not come to rest".into())
}

/// With times, uids and an address that do not depend on when and where they were made.
fn stable(mut objects: Vec<Json>, url: &str) -> Vec<Json> {
    let uids: Vec<_> =
        objects.iter().filter_map(|object| object["metadata"]["uid"].as_str().map(str::to_owned)).collect();
    let of = |(index, uid): (usize, String)| (uid, format!("00000000-0000-4000-8000-{:012}", index + 1));
    let mut uids: BTreeMap<_, _> = uids.into_iter().enumerate().map(of).collect();
    uids.insert(url.to_owned(), "https://127.0.0.1:6443".to_owned());
    for object in &mut objects {
        steady(object, &uids);
    }
    for managers in objects.iter_mut().filter_map(|object| object["metadata"]["managedFields"].as_array_mut()) {
        // Otherwise they are in the order of their times.
        managers.sort_by_key(|one| format!("{}{}", one["manager"], one["subresource"]));
    }
    objects
}

fn steady(value: &mut Json, names: &BTreeMap<String, String>) {
    match value {
        Json::Array(all) => all.iter_mut().for_each(|one| steady(one, names)),
        Json::Object(all) => {
            all.values_mut().for_each(|one| steady(one, names));
            // Who manages a reference to an owner stands under the uid.
            *all = std::mem::take(all).into_iter().map(|(key, value)| (renamed(&key, names), value)).collect();
        }
        Json::String(text) if text.parse::<Timestamp>().is_ok() && text != END => TIME.clone_into(text),
        Json::String(text) => *text = renamed(text, names),
        _ => {}
    }
}

fn renamed(text: &str, names: &BTreeMap<String, String>) -> String {
    names.iter().fold(text.to_owned(), |text, (uid, stable)| text.replace(uid, stable))
}
