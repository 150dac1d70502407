//! Profiles that go from Audit to Deny, wave by wave.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    time::Duration,
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::{api::core::v1::Namespace, jiff::Timestamp};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, WatchEvent, WatchParams},
};
use palisade_api::{HeldNamespace, RolloutPhase, RolloutStatus, Stage, names};
use palisade_controller::{Options, ScanInterval};
use palisade_tests::{
    Cluster, ControllerProcess, TestResult, Verdict, ensure, eventually, hostile_pod, root, tool_pod, within,
};
use serde_json::{Value as Json, json};

use crate::{lifecycle::Watch, scan};

crate::groups::scenarios! {
    a_rollout_promotes_what_complies_and_holds_the_rest: Judged 270;
    a_rollout_stops_at_a_violation: Judged 280, OldestRollouts 30;
    a_soak_time_begins_again_after_a_denial: Judged 290, OldestRollouts 40;
}

const UID: i64 = 50_001;

fn of_environment(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

pub(crate) fn profile(test: &str, rollout: &Json) -> Json {
    let mut profile = Cluster::small_profile(test);
    profile["spec"]["enforcement"] = json!({"pods": "Audit", "workloads": "Audit", "namespaceStages": "ByLabel"});
    profile["spec"]["rollout"] = rollout.clone();
    profile
}

pub(crate) fn permit(cluster: &Cluster, verb: &str) -> TestResult {
    let manifests = root().join("manifests/rollout").display().to_string();
    cluster.kubectl(&[verb, "-k", &manifests]).map(drop)
}

pub(crate) async fn wait_rollout(
    cluster: &Cluster,
    profile: &str,
    what: &str,
    is_it: impl Fn(&RolloutStatus) -> bool,
) -> TestResult<RolloutStatus> {
    let what = format!("the rollout of {profile}: {what}");
    let (status, _) = within(Duration::from_mins(5), &what, || async {
        let found = cluster.profiles().get(profile).await.map_err(|error| error.to_string())?;
        match found.status.and_then(|status| status.rollout) {
            Some(status) if is_it(&status) => Ok(status),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(status)
}

/// Waits until the condition `RolledOut` has this reason, of the spec as it is.
pub(crate) async fn wait_rolled_out(cluster: &Cluster, profile: &str, reason: &str) -> TestResult {
    eventually(&format!("{profile} is rolled out, or is not: {reason}"), || async {
        let found = cluster.profiles().get(profile).await.map_err(|error| error.to_string())?;
        let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
        match conditions.into_iter().find(|one| one.type_ == "RolledOut") {
            Some(one)
                if one.reason == reason
                    && one.observed_generation == found.metadata.generation
                    && (one.status == "True") == (reason == "Completed") =>
            {
                Ok(())
            }
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    Ok(())
}

pub(crate) fn hostile_workload(kind: &str) -> Json {
    let template = json!({"metadata": {"labels": {"app": "x"}}, "spec": hostile_pod("hostile")["spec"]});
    json!({
        "apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "hostile"},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": template},
    })
}

/// The stage labels of the namespaces of a test, and those that became weaker, as a watch shows them.
#[derive(Default)]
pub(crate) struct Labels {
    pub(crate) now: BTreeMap<String, Option<String>>,
    pub(crate) weaker: Vec<String>,
}

impl Labels {
    /// How strict; a namespace without the label is in Audit.
    fn rank(label: Option<&String>) -> usize {
        let stage = label.map_or(Stage::Audit, |label| Stage::of_label(label));
        Stage::ALL.len() - Stage::ALL.iter().position(|one| *one == stage).unwrap_or_default()
    }

    fn see(&mut self, test: &str, namespace: &Namespace) {
        let (name, label) = (namespace.name_any(), namespace.labels().get(&names::stage_label(test)).cloned());
        let before = self.now.insert(name.clone(), label.clone());
        if before.is_some_and(|before| Self::rank(before.as_ref()) > Self::rank(label.as_ref())) {
            self.weaker.push(name);
        }
    }

    /// Follows the namespaces until the answer is dropped.
    pub(crate) async fn follow(
        cluster: &Cluster,
        test: &'static str,
    ) -> TestResult<(Arc<Mutex<Self>>, tokio::task::JoinSet<()>)> {
        let api: Api<Namespace> = Api::all(cluster.admin.clone());
        let selector = format!("tenancy={test}");
        let list = api.list(&ListParams::default().labels(&selector)).await?;
        let seen = Arc::new(Mutex::new(Self::default()));
        for namespace in &list.items {
            seen.lock().expect("no panic").see(test, namespace);
        }
        let (into, mut tasks) = (Arc::clone(&seen), tokio::task::JoinSet::new());
        let mut version = list.metadata.resource_version.unwrap_or_default();
        tasks.spawn(async move {
            loop {
                let parameters = WatchParams::default().labels(&selector);
                let Ok(events) = api.watch(&parameters, &version).await else { continue };
                let mut events = std::pin::pin!(events);
                while let Some(Ok(event)) = events.next().await {
                    if let WatchEvent::Added(namespace) | WatchEvent::Modified(namespace) = event {
                        version = namespace.resource_version().unwrap_or_default();
                        into.lock().expect("no panic").see(test, &namespace);
                    }
                }
            }
        });
        Ok((seen, tasks))
    }
}

pub(crate) async fn a_rollout_promotes_what_complies_and_holds_the_rest(cluster: &mut Cluster) -> TestResult {
    let test = "rollout";
    let count = of_environment("PALISADE_ROLLOUT_NAMESPACES", 60);
    let (offenders, kills) = (count * 3 / 100 + 2, of_environment("PALISADE_ROLLOUT_KILLS", 4));
    let name = |index: usize| format!("rollout-{index}");
    {
        let cluster = &*cluster;
        stream::iter(0..count)
            .map(Ok)
            .try_for_each_concurrent(16, |index| async move {
                let namespace = format!("rollout-{index}");
                cluster.create_tool(test, &namespace, UID).await?;
                let object = match index {
                    _ if index + 1 < offenders => hostile_pod("hostile"),
                    // The last one has no pod that violates the profile, but its pods would.
                    _ if index + 1 == offenders => {
                        let path = format!("/apis/apps/v1/namespaces/{namespace}/deployments");
                        let verdict = cluster.create_at(&path, &hostile_workload("Deployment")).await;
                        ensure!(verdict == Verdict::Admitted, "{verdict:?}");
                        return Ok(());
                    }
                    _ if index % 4 == 0 => tool_pod("job", UID),
                    _ => return TestResult::Ok(()),
                };
                eventually("a pod", || async {
                    match cluster.create_pod(&namespace, &object).await {
                        Verdict::Admitted => Ok(()),
                        other => Err(format!("{other:?}")),
                    }
                })
                .await?;
                Ok(())
            })
            .await?;
    }
    let last = name(count - 1);
    let waves = json!([
        {"names": [last, name(0)], "stage": "Warn", "soakSeconds": 2},
        {"percent": 40, "soakSeconds": 3},
        {"percent": 100},
    ]);
    let (seen, following) = Labels::follow(cluster, test).await?;
    cluster.apply_profile(&profile(test, &json!({"waves": waves}))).await?;
    let failed = |status: &RolloutStatus| status.phase == RolloutPhase::Failed;
    let status = wait_rollout(cluster, test, "without permission", failed).await?;
    ensure!(status.message.contains("kubectl apply -k manifests/rollout"), "{status:?}");

    // From here on processes are killed at any moment.
    cluster.stop_controller().await?;
    permit(cluster, "apply")?;
    // What violates the profile already is admitted until it is gone.
    let surprised = Watch::start(cluster, &name(1), hostile_pod("another"), true);
    for kill in 0..kills {
        let process = ControllerProcess::start(cluster)?;
        // Each kill comes at another moment of the rollout.
        tokio::time::sleep(Duration::from_millis(1500 + u64::try_from(kill * 911 % 4000)?)).await;
        drop(process);
    }
    cluster.start_controller().await?;
    let status = wait_rollout(cluster, test, "complete", |status| status.phase == RolloutPhase::Complete).await?;
    surprised.finish("a pod in a held namespace").await?;
    let counts = (status.promoted, status.held, status.pending);
    ensure!(counts == (i64::try_from(count - offenders)?, i64::try_from(offenders)?, 0), "{status:?}");
    let mut expected: Vec<_> = (0..offenders).map(name).collect();
    expected.sort();
    let found: Vec<_> = status.held_namespaces.iter().map(|held: &HeldNamespace| held.name.clone()).collect();
    ensure!(found == expected[..found.len()] && found.len() == offenders.min(10), "{found:?}");
    for held in &status.held_namespaces {
        let kind = if held.name == name(offenders - 1) { "Deployment hostile: [" } else { "Pod hostile: [" };
        ensure!(held.message.contains(kind), "{held:?}");
    }
    {
        let seen = seen.lock().expect("no panic");
        ensure!(seen.weaker.is_empty(), "became weaker: {:?}", seen.weaker);
        for index in 0..count {
            let label = seen.now.get(&name(index)).cloned().flatten();
            let expected = if index < offenders { None } else { Some("Deny") };
            ensure!(label.as_deref() == expected, "{}: {label:?}", name(index));
        }
    }
    for (namespace, denied) in [(&last, true), (&name(2), false)] {
        eventually(&format!("a violation in {namespace}, denied: {denied}"), || async {
            match cluster.dry_run(namespace, &hostile_pod("another")).await {
                Verdict::Denied(_) if denied => Ok(()),
                Verdict::Admitted if !denied => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    }
    let events = cluster.kubectl(&["get", "events", "--all-namespaces", "-o", "json"])?;
    ensure!(events.contains("\"NamespaceHeld\"") && events.contains("\"RolloutComplete\""), "{events}");
    wait_rolled_out(cluster, test, "Held").await?;

    the_scan_finds_who_is_held(cluster, test, &expected).await?;
    the_controller_makes_no_namespace_weaker(cluster, test, &last).await?;
    a_fixed_namespace_is_promoted(cluster, test, &name(1), offenders).await?;

    a_pause_takes_effect(cluster, test, &waves).await?;
    drop(following);
    permit(cluster, "delete")?;
    cluster.delete_profile(test).await
}

/// The rollout and the background scan agree on who violates the profile.
pub(crate) async fn the_scan_finds_who_is_held(cluster: &mut Cluster, test: &str, held: &[String]) -> TestResult {
    scan::permit(cluster, "apply")?;
    let options = Options { scan_interval: ScanInterval(Some(Duration::from_secs(1))), ..Cluster::options()? };
    cluster.restart_controller(options).await?;
    eventually("reports in the held namespaces", || async {
        let reports = scan::reports_of(cluster, test).await.map_err(|error| error.to_string())?;
        let found: Vec<_> = reports.into_keys().collect();
        if found == held { Ok(()) } else { Err(format!("{found:?} instead of {held:?}")) }
    })
    .await?;
    scan::permit(cluster, "delete")?;
    cluster.restart_controller(Cluster::options()?).await
}

/// While a rollout is paused it promotes nothing; later namespaces are promoted like the others.
async fn a_pause_takes_effect(cluster: &Cluster, test: &str, waves: &Json) -> TestResult {
    let (paused, late) = (json!({"pause": true, "waves": waves}), "rollout-late");
    cluster.apply_profile(&profile(test, &paused)).await?;
    wait_rollout(cluster, test, "paused", |status| status.phase == RolloutPhase::Paused).await?;
    cluster.create_tool(test, late, UID).await?;
    wait_rollout(cluster, test, "one to go", |status| status.pending == 1).await?;
    cluster.apply_profile(&profile(test, &json!({"waves": waves}))).await?;
    wait_rollout(cluster, test, "the late one", |status| status.phase == RolloutPhase::Complete && status.pending == 0)
        .await?;
    ensure!(label_of(cluster, test, late).await?.as_deref() == Some("Deny"), "the late one was not promoted");
    Ok(())
}

pub(crate) async fn label_of(cluster: &Cluster, test: &str, namespace: &str) -> TestResult<Option<String>> {
    let found = Api::<Namespace>::all(cluster.admin.clone()).get(namespace).await?;
    Ok(found.labels().get(&names::stage_label(test)).cloned())
}

/// The API server holds the controller to it.
async fn the_controller_makes_no_namespace_weaker(cluster: &Cluster, test: &str, namespace: &str) -> TestResult {
    let controller = cluster.client_as(&cluster.controller_kubeconfig()?).await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    let [stage, hold] = [names::stage_label(test), names::rollout_annotation(test)];
    for metadata in [
        json!({"labels": {&stage: "Warn"}}),
        json!({"labels": {&stage: "Audit"}}),
        json!({"labels": {&stage: null}}),
        json!({"labels": {"tenancy": "nobody"}}),
        json!({"labels": {"other": "x"}}),
        json!({"annotations": {"toolforge.org/uid": "0"}}),
        json!({"annotations": {"other": "x"}}),
        json!({"finalizers": ["example.org/x"]}),
    ] {
        let patch = json!({"metadata": metadata});
        let verdict = cluster.ask_as(&controller, "PATCH", &path, &patch).await;
        let denied = matches!(&verdict, Verdict::Denied(text) if text.contains("palisade-controller must"));
        ensure!(denied, "{metadata}: {verdict:?}");
    }
    no_stage_is_the_one_of_the_profile(cluster, test, &controller).await?;
    let patch = json!({"metadata": {"annotations": {hold: "Violations: none"}}});
    let verdict = cluster.ask_as(&controller, "PATCH", &path, &patch).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    an_admin_holds_a_namespace(cluster, test, &controller).await
}

/// A namespace without a label is at the stage of the profile: Warn is weaker than Deny, and stricter than Audit.
async fn no_stage_is_the_one_of_the_profile(cluster: &Cluster, test: &str, controller: &kube::Client) -> TestResult {
    let denying = format!("{test}-denying");
    let mut profile = Cluster::small_profile(&denying);
    profile["spec"]["enforcement"] = json!({"pods": "Deny", "workloads": "Audit", "namespaceStages": "ByLabel"});
    cluster.apply_profile(&profile).await?;
    let namespace = format!("{test}-unlabelled");
    cluster.create_tool(&denying, &namespace, UID).await?;
    let path = format!("/api/v1/namespaces/{namespace}?dryRun=All");
    let set = async |profile: &str, stage: &str| {
        let patch = json!({"metadata": {"labels": {names::stage_label(profile): stage}}});
        cluster.ask_as(controller, "PATCH", &path, &patch).await
    };
    let is_weaker = |verdict: &Verdict| match verdict {
        Verdict::Denied(text) => text.contains("palisade-controller must not set a weaker stage"),
        _ => false,
    };
    eventually("the API server knows the profile", || async {
        let verdict = set(&denying, "Warn").await;
        if is_weaker(&verdict) { Ok(()) } else { Err(format!("{verdict:?}")) }
    })
    .await?;
    for (profile, stage) in [(denying.as_str(), "Deny"), (test, "Warn"), (test, "Deny")] {
        let verdict = set(profile, stage).await;
        ensure!(verdict == Verdict::Admitted, "{stage} of {profile}: {verdict:?}");
    }
    ensure!(set(&denying, "Audit").await.denial().is_some(), "Audit is weaker than anything");
    profile["spec"]["enforcement"] = json!({"pods": "Audit", "workloads": "Deny", "namespaceStages": "ByLabel"});
    cluster.apply_profile(&profile).await?;
    eventually("the stage of workloads counts, too", || async {
        let verdict = set(&denying, "Warn").await;
        if is_weaker(&verdict) { Ok(()) } else { Err(format!("{verdict:?}")) }
    })
    .await?;
    cluster.delete_profile(&denying).await?;
    cluster.delete_namespace(&namespace).await
}

/// What the controller has yet to see of a hold, the API server knows.
async fn an_admin_holds_a_namespace(cluster: &Cluster, test: &str, controller: &kube::Client) -> TestResult {
    let namespace = "rollout-foreign";
    cluster.create_namespace(namespace, &json!({}), &json!({})).await?;
    let path = format!("/api/v1/namespaces/{namespace}");
    let [stage, hold] = [names::stage_label(test), names::rollout_annotation(test)];
    cluster.patch_namespace(namespace, &json!({"metadata": {"annotations": {&hold: "until May"}}})).await?;
    for metadata in [
        json!({"labels": {&stage: "Deny"}}),
        json!({"annotations": {&hold: "Violations: one"}}),
        json!({"annotations": {&hold: null}}),
        json!({"labels": {&stage: "Deny"}, "annotations": {&hold: null}}),
    ] {
        let verdict = cluster.ask_as(controller, "PATCH", &path, &json!({"metadata": metadata})).await;
        let denied = matches!(&verdict, Verdict::Denied(text) if text.contains("another user holds"));
        ensure!(denied, "{metadata}: {verdict:?}");
    }
    // The hold of one profile is none of another's.
    let other = json!({"metadata": {"labels": {names::stage_label("another"): "Deny"}}});
    let verdict = cluster.ask_as(controller, "PATCH", &path, &other).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    cluster.delete_namespace(namespace).await
}

/// Whoever removes what violates the profile, and then the annotation, is promoted at once.
async fn a_fixed_namespace_is_promoted(cluster: &Cluster, test: &str, namespace: &str, held: usize) -> TestResult {
    let pods = Api::<k8s_openapi::api::core::v1::Pod>::namespaced(cluster.admin.clone(), namespace);
    pods.delete("hostile", &DeleteParams::default().grace_period(0)).await?;
    let key = names::rollout_annotation(test);
    cluster.patch_namespace(namespace, &json!({"metadata": {"annotations": {key: null}}})).await?;
    let held = i64::try_from(held - 1)?;
    wait_rollout(cluster, test, "one is held less", |status| status.held == held && status.pending == 0).await?;
    ensure!(label_of(cluster, test, namespace).await?.as_deref() == Some("Deny"), "{namespace} was not promoted");
    Ok(())
}

pub(crate) async fn a_rollout_stops_at_a_violation(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "rollstop");
    let names = ["rollstop-a", "rollstop-b", "rollstop-c"];
    for name in names {
        cluster.create_tool(test, name, UID).await?;
    }
    eventually("a pod", || async {
        match cluster.create_pod("rollstop-b", &hostile_pod("hostile")).await {
            Verdict::Admitted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    permit(cluster, "apply")?;
    let waves = json!({"onViolation": "Stop", "waves": [{"percent": 100}]});
    cluster.apply_profile(&profile(test, &waves)).await?;
    let status = wait_rollout(cluster, test, "stopped", |status| status.phase == RolloutPhase::Stopped).await?;
    ensure!(status.message.contains("rollstop-b") && status.promoted == 0 && status.held == 1, "{status:?}");
    wait_rolled_out(cluster, test, "Stopped").await?;
    eventually("whoever works in a held namespace sees it there", || async {
        let held = ["get", "events", "-n", "rollstop-b", "--field-selector=reason=NamespaceHeld", "--no-headers"];
        let held = cluster.kubectl(&held).map_err(|error| error.to_string())?;
        let right = held.contains("holds this namespace at its stage: ") && held.contains("Pod hostile: [");
        if right { Ok(()) } else { Err(held) }
    })
    .await?;
    for name in names {
        ensure!(label_of(cluster, test, name).await?.is_none(), "{name} was promoted");
    }
    let pods = Api::<k8s_openapi::api::core::v1::Pod>::namespaced(cluster.admin.clone(), "rollstop-b");
    pods.delete("hostile", &DeleteParams::default().grace_period(0)).await?;
    let retry = json!({"metadata": {"annotations": {names::rollout_annotation(test): null}}});
    cluster.patch_namespace("rollstop-b", &retry).await?;
    wait_rollout(cluster, test, "complete", |status| status.phase == RolloutPhase::Complete).await?;
    for name in names {
        ensure!(label_of(cluster, test, name).await?.as_deref() == Some("Deny"), "{name} was not promoted");
    }
    permit(cluster, "delete")?;
    cluster.delete_profile(test).await
}

pub(crate) async fn a_soak_time_begins_again_after_a_denial(cluster: &mut Cluster) -> TestResult {
    let (cluster, test): (&Cluster, _) = (cluster, "rollsoak");
    for name in ["rollsoak-a", "rollsoak-b"] {
        cluster.create_tool(test, name, UID).await?;
    }
    permit(cluster, "apply")?;
    let with_soak = |seconds: i64| {
        let waves = json!([{"names": ["rollsoak-a"], "soakSeconds": seconds}, {"percent": 100}]);
        let mut profile = profile(test, &json!({"onDenial": "SoakAgain", "waves": waves}));
        profile["spec"]["enforcement"] = json!({"pods": "Audit", "workloads": "Off", "namespaceStages": "ByLabel"});
        profile
    };
    // It is not over before the denial, however slow the machine is.
    cluster.apply_profile(&with_soak(3600)).await?;
    let soaking = wait_rollout(cluster, test, "soaking", |status| status.phase == RolloutPhase::Soaking).await?;
    eventually("the first namespace is in Deny", || async {
        let verdict = cluster.dry_run("rollsoak-a", &hostile_pod("hostile")).await;
        verdict.denial().map(drop).ok_or_else(|| format!("{verdict:?}"))
    })
    .await?;
    let began = |status: &RolloutStatus| status.soak_started.as_ref().map(|time| time.0);
    // The status counts seconds, and a fast machine does all this within one.
    eventually("the second in which the soak time began is over", || async {
        let now = Timestamp::now();
        began(&soaking).is_some_and(|began| now.as_second() > began.as_second()).then_some(()).ok_or(now.to_string())
    })
    .await?;
    // kube-controller-manager creates its pods, and reports that they are denied.
    let path = "/apis/apps/v1/namespaces/rollsoak-a/replicasets";
    let verdict = cluster.create_at(path, &hostile_workload("ReplicaSet")).await;
    ensure!(verdict == Verdict::Admitted, "{verdict:?}");
    let status = wait_rollout(cluster, test, "stopped", |status| status.phase == RolloutPhase::Stopped).await?;
    ensure!(status.wave == 1 && status.message.contains("pods of workloads in rollsoak-a"), "{status:?}");
    ensure!(began(&status) > began(&soaking), "the soak time goes on: {soaking:?}, then {status:?}");
    ensure!(label_of(cluster, test, "rollsoak-b").await?.is_none(), "rollsoak-b was promoted");
    cluster.kubectl(&["delete", "replicaset", "hostile", "-n", "rollsoak-a"])?;
    // Other waves begin at the first.
    cluster.apply_profile(&with_soak(1)).await?;
    let status = wait_rollout(cluster, test, "complete", |status| status.phase == RolloutPhase::Complete).await?;
    ensure!(status.promoted == 2 && status.held == 0, "{status:?}");
    permit(cluster, "delete")?;
    cluster.delete_profile(test).await
}
