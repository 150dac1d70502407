//! What the audit log of an API server says of a rollout: who violated the profile before it, and what it wrote.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{RolloutPhase, Stage, names};
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, tool_pod};
use serde_json::{Value as Json, json};

use crate::{
    history::offline,
    privilege::{ACCOUNTS, text, user},
    rollout::{hostile_workload, permit, profile, the_scan_finds_who_is_held, wait_rollout},
};

crate::groups::scenarios! {
    the_audit_log_knows_who_is_held_and_what_a_promotion_writes: OldestRollouts 70, Audited 40;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const TEST: &str = "trail";
const UID: i64 = 50_001;
/// How many namespaces there are, and how many of them violate the profile.
const NAMESPACES: usize = 24;
const OFFENDERS: usize = 5;

fn log(cluster: &Cluster) -> Result<String> {
    Ok(cluster.control_plane.audit_log_path().ok_or("no audit log")?.display().to_string())
}

/// The namespaces in which the API server noted a violation, as `palisade audit` reads its log; none was denied or warned of.
async fn noted(cluster: &Cluster) -> Result<BTreeSet<String>> {
    let arguments = ["audit", &log(cluster)?, "--profile-name", TEST, "-o", "json", "--top", "1000"];
    let found: Json = serde_json::from_str(&offline(&arguments).await?.out)?;
    let all = found["namespaces"].as_array().into_iter().flatten();
    all.map(|one| match one["action"].as_str() {
        Some("Audited") => Ok(text(one, "/namespace")),
        _ => Err(format!("only Audit was in force: {one}").into()),
    })
    .collect()
}

/// Creates an object that violates the profile, until the log has it: at first, the API server may not know the parameters of
/// a new namespace.
async fn violate(cluster: &Cluster, namespace: &str, object: Json, path: &str) -> TestResult {
    let mut object = object;
    object["metadata"] = json!({"generateName": "hostile-", "labels": object["metadata"]["labels"]});
    eventually(&format!("a violation in {namespace} in the log"), || async {
        match cluster.create_at(path, &object).await {
            Verdict::Admitted => {}
            other => return Err(format!("{other:?}")),
        }
        let noted = noted(cluster).await.map_err(|error| error.to_string())?;
        if noted.contains(namespace) { Ok(()) } else { Err(format!("{noted:?}")) }
    })
    .await?;
    Ok(())
}

/// What the controller wrote.
pub(crate) struct Written {
    pub(crate) resource: String,
    /// The namespace that it wrote, or the one of the object.
    pub(crate) namespace: String,
    pub(crate) name: String,
    /// What was sent, of a namespace.
    sent: Json,
}

pub(crate) fn written(cluster: &Cluster, since: Timestamp) -> Result<Vec<Written>> {
    let (log, controller) = (std::fs::read_to_string(log(cluster)?)?, user(ACCOUNTS[0]));
    let mut all = Vec::new();
    // The last line may be half written.
    for event in log.lines().filter_map(|line| serde_json::from_str::<Json>(line).ok()) {
        let reads = ["get", "list", "watch"].contains(&text(&event, "/verb").as_str());
        let dry_run = text(&event, "/requestURI").contains("dryRun=All");
        let before = text(&event, "/requestReceivedTimestamp").parse::<Timestamp>()? < since;
        if text(&event, "/user/username") != controller || reads || dry_run || before {
            continue;
        }
        let (resource, sub) = (text(&event, "/objectRef/resource"), text(&event, "/objectRef/subresource"));
        all.push(Written {
            resource: if sub.is_empty() { resource } else { format!("{resource}/{sub}") },
            namespace: text(&event, "/objectRef/namespace"),
            name: text(&event, "/objectRef/name"),
            sent: event["requestObject"].clone(),
        });
    }
    Ok(all)
}

pub(crate) async fn the_audit_log_knows_who_is_held_and_what_a_promotion_writes(cluster: &mut Cluster) -> TestResult {
    let name = |index: usize| format!("{TEST}-{index}");
    let offenders: BTreeSet<_> = (0..OFFENDERS).map(name).collect();
    let last = name(NAMESPACES - 1);
    for index in 0..NAMESPACES {
        cluster.create_tool(TEST, &name(index), UID).await?;
    }
    let plan = profile(
        TEST,
        &json!({"waves": [
            {"names": [last, name(0)], "stage": "Warn", "soakSeconds": 1},
            {"percent": 40, "soakSeconds": 1},
            {"percent": 100},
        ]}),
    );
    let mut audited = plan.clone();
    audited["spec"].as_object_mut().map(|spec| spec.remove("rollout"));
    cluster.enforce(&audited).await?;
    for index in 0..NAMESPACES {
        let namespace = name(index);
        let pods = format!("/api/v1/namespaces/{namespace}/pods");
        match index {
            0 => {
                let deployments = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
                violate(cluster, &namespace, hostile_workload("Deployment"), &deployments).await?;
            }
            _ if index < OFFENDERS => violate(cluster, &namespace, hostile_pod("hostile"), &pods).await?,
            _ => {
                eventually("a pod that complies", || async {
                    match cluster.create_at(&pods, &tool_pod("job", UID)).await {
                        Verdict::Admitted => Ok(()),
                        other => Err(format!("{other:?}")),
                    }
                })
                .await?;
            }
        }
    }

    permit(cluster, "apply")?;
    let since = Timestamp::now();
    cluster.apply_profile(&plan).await?;
    let status = wait_rollout(cluster, TEST, "complete", |status| status.phase == RolloutPhase::Complete).await?;
    ensure!(status.promoted == i64::try_from(NAMESPACES - OFFENDERS)?, "{status:?}");
    let held: BTreeSet<_> = status.held_namespaces.iter().map(|held| held.name.clone()).collect();
    ensure!(held == offenders, "held: {held:?}");
    let noted = noted(cluster).await?;
    ensure!(noted == held, "the audit log: {noted:?}, held: {held:?}");
    let writes = written(cluster, since)?;
    the_scan_finds_who_is_held(cluster, TEST, &held.into_iter().collect::<Vec<_>>()).await?;

    let label = |stage: Stage| json!({"metadata": {"labels": {names::stage_label(TEST): stage.to_string()}}});
    for index in 0..NAMESPACES {
        let namespace = name(index);
        let (here, inside): (Vec<_>, Vec<_>) =
            writes.iter().filter(|one| one.namespace == namespace).partition(|one| one.resource == "namespaces");
        let sent: Vec<_> = here.iter().map(|one| one.sent.clone()).collect();
        let right = if index < OFFENDERS {
            let hold = sent.first().map(|one| &one["metadata"]["annotations"]);
            sent == [json!({"metadata": {"annotations": hold}})] && inside.iter().all(|one| one.resource == "events")
        } else {
            // The last one was promoted twice.
            let stages = if namespace == last { &[Stage::Warn, Stage::Deny][..] } else { &[Stage::Deny] };
            sent == stages.iter().copied().map(label).collect::<Vec<_>>() && inside.is_empty()
        };
        let inside: Vec<_> = inside.iter().map(|one| &one.resource).collect();
        ensure!(right, "{namespace}: {sent:#?}, {inside:?}");
    }
    // The edit writes policies, and waits for them to be in force; a promotion needs no other write.
    let all: BTreeSet<_> = (0..NAMESPACES).map(name).collect();
    let mut counts = BTreeMap::<_, usize>::new();
    for one in writes.iter().skip_while(|one| !all.contains(&one.namespace)) {
        *counts.entry(one.resource.as_str()).or_default() += 1;
    }
    println!("{} promotions and {OFFENDERS} holds wrote {counts:?}", NAMESPACES - OFFENDERS + 1);
    let others = counts.keys().find(|one| !["namespaces", "events", "toolsecurityprofiles/status"].contains(one));
    ensure!(others.is_none(), "{counts:?}");
    permit(cluster, "delete")?;
    cluster.delete_profile(TEST).await
}
