//! Profiles that change, go, and are tampered with; an API server that restarts.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    time::Duration,
};

use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding};
use kube::{
    Api,
    api::{DeleteParams, Patch, PatchParams},
};
use palisade_api::{EngineInForce, ToolSecurityParams, names};
use palisade_controlplane::Feature;
use palisade_controlplane::Shutdown;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually, hostile_pod, tool_pod, within};
use serde_json::{Value as Json, json};

use crate::{deletion::is_being_deleted, scan, webhook::engine};

crate::groups::scenarios! {
    an_invalid_profile_changes_nothing: Maintained 10;
    custom_check_is_enforced_or_its_error_reported: Maintained 20, Oldest 230;
    drift_is_repaired: Maintained 30;
    renaming_a_parameter_changes_no_verdict: Maintained 40;
    deleting_the_profile_frees_every_namespace: Maintained 50, Oldest 250;
    a_profile_deleted_by_force_leaves_nothing: Maintained 60;
    namespace_with_a_pod_with_a_finalizer_can_be_deleted: Maintained 70, Oldest 260;
    api_server_restart_admits_no_violation: Maintained 130, Oldest 290;
}

const UID: i64 = 50_001;
/// How soon a generated object is what it should be again.
const REPAIR: Duration = Duration::from_mins(2);

pub(crate) async fn an_invalid_profile_changes_nothing(cluster: &mut Cluster) -> TestResult {
    let test = "invalid";
    cluster.create_tool(test, "invalid-tool", UID).await?;
    let good = Cluster::small_profile(test);
    cluster.enforce(&good).await?;
    cluster.wait_admitted("invalid-tool", &tool_pod("job", UID)).await?;
    let versions = (cluster.params_versions(test).await?, cluster.policy_versions(test).await?);

    let mut bad = good.clone();
    bad["spec"]["users"]["runAsUser"]["ranges"][0]["max"] = json!("$guid");
    bad["spec"]["privileges"]["privileged"] = json!(true);
    cluster.apply_profile(&bad).await?;
    let found = cluster.wait_condition(test, "Accepted", "False").await?;
    let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
    let accepted = conditions.iter().find(|condition| condition.type_ == "Accepted").ok_or("no condition")?;
    ensure!(accepted.reason == "InvalidSpec", "{accepted:?}");
    ensure!(
        accepted.message.contains("spec.users.runAsUser.ranges[0].max: $guid is not a declared parameter"),
        "{accepted:?}"
    );
    let stalled = cluster.wait_condition(test, "Stalled", "True").await?;
    let conditions = stalled.status.map(|status| status.conditions).unwrap_or_default();
    let ready = conditions.iter().find(|condition| condition.type_ == "Ready").ok_or("no condition")?;
    ensure!(ready.status == "False" && ready.reason == "InvalidSpec", "{ready:?}");
    ensure!(ready.message == format!("Accepted: {}", accepted.message), "{ready:?}");
    ensure!(
        (cluster.params_versions(test).await?, cluster.policy_versions(test).await?) == versions,
        "something was written"
    );

    // The last good state lives on, also in a controller that has never seen it.
    cluster.stop_controller().await?;
    cluster.start_controller().await?;
    cluster.create_tool(test, "invalid-new", UID + 1).await?;
    cluster.wait_admitted("invalid-new", &tool_pod("job", UID + 1)).await?;
    cluster.bindings().delete(&names::policy(test, names::Shape::Pods), &DeleteParams::default()).await?;
    within(REPAIR, "the binding is back", || async {
        cluster
            .bindings()
            .get(&names::policy(test, names::Shape::Pods))
            .await
            .map(|_| ())
            .map_err(|error| error.to_string())
    })
    .await?;
    eventually("denied", || async {
        let verdict = cluster.dry_run("invalid-new", &hostile_pod("hostile")).await;
        verdict.denial().filter(|text| text.contains("[privileged]")).map(|_| ()).ok_or(format!("{verdict:?}"))
    })
    .await?;

    cluster.enforce(&good).await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn custom_check_is_enforced_or_its_error_reported(cluster: &mut Cluster) -> TestResult {
    let test = "custom";
    cluster.create_tool(test, "custom-tool", UID).await?;
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["customChecks"] = json!([{
        "id": "owner",
        "expression": "object.metadata.?labels[?'owner'].orValue('') != '' ||\n  request.kind.kind != 'Pod' // templates are not asked",
        "messageExpression": "'must have the label owner in ' +\n  request.namespace // where it is",
    }, {
        "id": "deadline", "message": "must end within an hour",
        "expression": "variables.spec.?activeDeadlineSeconds.orValue(3600) <= 3600",
        "default": {"path": "activeDeadlineSeconds", "value": 3600},
    }]);
    cluster.enforce_policies(&profile).await?;
    let pod = tool_pod("job", UID);
    let mut owned = pod.clone();
    owned["metadata"]["labels"]["owner"] = json!("me");
    cluster.wait_admitted("custom-tool", &owned).await?;
    let denied = cluster.dry_run("custom-tool", &pod).await;
    let expected = "1 violation of ToolSecurityProfile custom: [owner] pod: must have the label owner in custom-tool";
    ensure!(denied.denial().is_some_and(|text| text.contains(expected)), "{denied:?}");

    // Where the API server sets defaults by itself; here runs no webhook.
    if cluster.kubectl(&["get", "mutatingadmissionpolicies"]).is_ok() {
        eventually("a default set", || async {
            let mutated = cluster.answer_to("POST", "/api/v1/namespaces/custom-tool/pods?dryRun=All", &owned).await?;
            let found = &mutated["spec"]["activeDeadlineSeconds"];
            if found == 3600 { Ok(()) } else { Err(format!("activeDeadlineSeconds is {found}")) }
        })
        .await?;
    }

    let mut bad = profile.clone();
    bad["spec"]["customChecks"][1]["default"]["path"] = json!("activeDeadlineSecs");
    cluster.apply_profile(&bad).await?;
    let found = cluster.wait_condition(test, "Accepted", "False").await?;
    let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
    let expected = "spec.customChecks[1].default.path: unknown field";
    ensure!(conditions.iter().any(|condition| condition.message.contains(expected)), "{conditions:?}");

    let mut bad = profile.clone();
    bad["spec"]["customChecks"][0]["expression"] = json!("true &&\n  object.metadata.lables == {}");
    cluster.apply_profile(&bad).await?;
    let found = cluster.wait_condition(test, "Accepted", "False").await?;
    let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
    let accepted = conditions.iter().find(|condition| condition.type_ == "Accepted").ok_or("no condition")?;
    ensure!(accepted.reason == "CheckFailed", "{accepted:?}");
    let expected = "spec.customChecks[0].expression:2:18: undefined field 'lables'";
    ensure!(accepted.message.contains(expected), "{accepted:?}");
    // The last good one is still in force.
    ensure!(cluster.dry_run("custom-tool", &pod).await.denial().is_some(), "admitted");
    ensure!(cluster.dry_run("custom-tool", &owned).await.denial().is_none(), "denied");
    cluster.delete_profile(test).await
}

pub(crate) async fn drift_is_repaired(cluster: &mut Cluster) -> TestResult {
    let test = "drift";
    cluster.create_tool(test, "drift-tool", UID).await?;
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["mutation"] = json!({"defaults": "Secure"});
    cluster.enforce_policies(&profile).await?;
    cluster.wait_admitted("drift-tool", &tool_pod("job", UID)).await?;
    let name = names::policy(test, names::Shape::Pods);
    let (policies, bindings) = (cluster.policies(), cluster.bindings());
    let params = Api::<ToolSecurityParams>::namespaced(cluster.admin.clone(), "drift-tool");
    let policy = policies.get(&name).await?.spec;
    let binding = bindings.get(&name).await?.spec;
    let values = params.get(test).await?.spec;

    let back = || async {
        let now = policies.get_opt(&name).await.map_err(|error| error.to_string())?.and_then(|now| now.spec);
        if now != policy {
            return Err(format!("policy: {now:?}"));
        }
        let now = bindings.get_opt(&name).await.map_err(|error| error.to_string())?.map(|now| now.spec);
        if now.as_ref() != Some(&binding) {
            return Err(format!("binding: {now:?}"));
        }
        let now = params.get_opt(test).await.map_err(|error| error.to_string())?.map(|now| now.spec);
        if now.as_ref() == Some(&values) { Ok(()) } else { Err(format!("params: {now:?}")) }
    };
    let merge = |patch: Json| Patch::Merge(patch);
    let edit = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };

    policies.patch(&name, &edit, &merge(json!({"spec": {"validations": [{"expression": "true"}]}}))).await?;
    within(REPAIR, "an edited validation", back).await?;
    // Lists that are keyed: server-side apply alone would leave what others add to them.
    policies
        .patch(&name, &edit, &merge(json!({"spec": {"matchConditions": [{"name": "never", "expression": "false"}]}})))
        .await?;
    within(REPAIR, "an added match condition", back).await?;
    let everything = json!([{"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]}]);
    policies
        .patch(&name, &edit, &merge(json!({"spec": {"matchConstraints": {"excludeResourceRules": everything}}})))
        .await?;
    within(REPAIR, "an added exclusion", back).await?;
    policies.delete(&name, &DeleteParams::default()).await?;
    within(REPAIR, "a deleted policy", back).await?;
    bindings.patch(&name, &edit, &merge(json!({"spec": {"validationActions": ["Audit"]}}))).await?;
    within(REPAIR, "an edited binding", back).await?;
    bindings.delete(&name, &DeleteParams::default()).await?;
    within(REPAIR, "a deleted binding", back).await?;
    params.patch(test, &edit, &merge(json!({"spec": {"integers": {"uid": 0}}}))).await?;
    within(REPAIR, "an edited parameter", back).await?;
    params.patch(test, &edit, &merge(json!({"spec": {"integers": {"other": 0}}}))).await?;
    within(REPAIR, "an added parameter", back).await?;
    params.delete(test, &DeleteParams::default()).await?;
    within(REPAIR, "deleted parameters", back).await?;
    if cluster.has(&Feature::NATIVE_MUTATION).await? {
        drift_of_what_mutates_is_repaired(cluster, test).await?;
    }
    // Whoever edited an action does not keep the profile from another one: actions are a set.
    profile["spec"]["enforcement"] = json!({"pods": "Warn", "workloads": "Audit"});
    cluster.apply_profile(&profile).await?;
    cluster.wait_condition(test, "Programmed", "True").await?;
    profile["spec"]["enforcement"] = json!({"pods": "Deny"});
    cluster.apply_profile(&profile).await?;
    cluster.wait_condition(test, "Programmed", "True").await?;
    let metrics = cluster.controller_get("/metrics").await?;
    let repaired = scan::sample(&metrics, "palisade_drift_repaired_total{kind=\"ValidatingAdmissionPolicy\"}");
    ensure!(repaired > Some(0), "{metrics}");
    if cluster.has(&Feature::NATIVE_MUTATION).await? {
        cluster.wait_condition(test, "Enforced", "True").await?;
    } else {
        // The policies are in force again, but the webhook that would mutate pods does not run.
        cluster.enforce_policies(&profile).await?;
    }
    cluster.delete_profile(test).await
}

/// The same for the policy that mutates pods, and its binding.
async fn drift_of_what_mutates_is_repaired(cluster: &Cluster, test: &str) -> TestResult {
    let name = names::mutation(test);
    let policies = Api::<MutatingAdmissionPolicy>::all(cluster.admin.clone());
    let bindings = Api::<MutatingAdmissionPolicyBinding>::all(cluster.admin.clone());
    engine(cluster, test, EngineInForce::Native).await?;
    let (policy, binding) = (policies.get(&name).await?.spec, bindings.get(&name).await?.spec);
    let back = || async {
        let now = policies.get_opt(&name).await.map_err(|error| error.to_string())?.and_then(|now| now.spec);
        if now != policy {
            return Err(format!("policy: {now:?}"));
        }
        let now = bindings.get_opt(&name).await.map_err(|error| error.to_string())?.and_then(|now| now.spec);
        if now == binding { Ok(()) } else { Err(format!("binding: {now:?}")) }
    };
    let told = async || -> Result<u32, Box<dyn std::error::Error + Send + Sync>> {
        let metrics = cluster.controller_get("/metrics").await?;
        let of = |line: &&str| line.starts_with("palisade_drift_repaired_total{kind=\"MutatingAdmissionPolicy");
        Ok(metrics.lines().filter(of).filter_map(|line| line.rsplit(' ').next()?.parse::<u32>().ok()).sum())
    };
    let before = told().await?;
    let edit = PatchParams { field_manager: Some("somebody".to_owned()), ..PatchParams::default() };
    let expression = "false ? [JSONPatch{op: 'remove', path: '/spec/hostPID'}] : []";
    let nothing = json!([{"patchType": "JSONPatch", "jsonPatch": {"expression": expression}}]);
    let never = json!([{"name": "never", "expression": "false"}]);
    let elsewhere = json!({"namespaceSelector": {"matchLabels": {"nobody": "has-this"}}});
    let mut took = vec![];
    for (what, change) in [
        ("an edited mutation", json!({"spec": {"mutations": nothing}})),
        ("an added match condition", json!({"spec": {"matchConditions": never}})),
    ] {
        policies.patch(&name, &edit, &Patch::Merge(change)).await?;
        took.push(within(REPAIR, what, back).await?.1);
    }
    policies.delete(&name, &DeleteParams::default()).await?;
    took.push(within(REPAIR, "a deleted policy", back).await?.1);
    bindings.patch(&name, &edit, &Patch::Merge(json!({"spec": {"matchResources": elsewhere}}))).await?;
    took.push(within(REPAIR, "an edited binding", back).await?.1);
    bindings.delete(&name, &DeleteParams::default()).await?;
    took.push(within(REPAIR, "a deleted binding", back).await?.1);
    println!("what sets defaults was repaired within {took:.1?}");
    let told = told().await? - before;
    ensure!(told == 5, "{told} of 5 repairs were told");
    Ok(())
}

/// Asks about pods without a pause while something else happens: one that complies must always be admitted, one
/// that violates always be denied.
pub(crate) struct Watch {
    stop: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
    task: tokio::task::JoinHandle<Vec<String>>,
}

impl Watch {
    pub(crate) fn start(cluster: &Cluster, namespace: &str, pod: Json, admitted: bool) -> Self {
        let (stop, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (client, namespace) = (cluster.admin.clone(), namespace.to_owned());
        let (stopped, count) = (Arc::clone(&stop), Arc::clone(&asked));
        let task = tokio::spawn(async move {
            let mut wrong = Vec::new();
            while !stopped.load(Ordering::Relaxed) {
                let verdict = palisade_tests::dry_run_once(&client, &namespace, &pod).await;
                match (&verdict, admitted) {
                    (Verdict::Admitted, true) | (Verdict::Denied(_), false) => {
                        let _ = count.fetch_add(1, Ordering::Relaxed);
                    }
                    // A server that is starting or stopping gives no verdict; it must not admit.
                    (Verdict::Refused(code, _), _) if !admitted || matches!(code, 0 | 429 | 500..) => {}
                    _ => wrong.push(format!("{verdict:?}")),
                }
                // A pause between two requests, so that they do not keep the processors busy.
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
            wrong
        });
        Self { stop, asked, task }
    }

    /// Ends it, once there are enough verdicts: on a loaded machine what it watches may be over before.
    pub(crate) async fn finish(self, what: &str) -> TestResult {
        eventually(&format!("verdicts on {what}"), || async {
            let asked = self.asked.load(Ordering::Relaxed);
            if asked > 20 || self.task.is_finished() { Ok(()) } else { Err(format!("only {asked}")) }
        })
        .await?;
        self.stop.store(true, Ordering::Relaxed);
        let wrong = self.task.await?;
        let asked = self.asked.load(Ordering::Relaxed);
        ensure!(wrong.is_empty(), "{what}: {asked} right, {} wrong, the first: {}", wrong.len(), wrong[0]);
        println!("{what}: {asked} verdicts, all right");
        Ok(())
    }
}

pub(crate) async fn renaming_a_parameter_changes_no_verdict(cluster: &mut Cluster) -> TestResult {
    let test = "renamed";
    cluster.create_tool(test, "renamed-tool", UID).await?;
    let profile = Cluster::toolforge_profile(test)?;
    cluster.enforce(&profile).await?;
    cluster.wait_admitted("renamed-tool", &tool_pod("job", UID)).await?;
    let good = Watch::start(cluster, "renamed-tool", tool_pod("job", UID), true);
    let bad = Watch::start(cluster, "renamed-tool", hostile_pod("hostile"), false);

    let renamed: Json = serde_json::from_str(
        &profile.to_string().replace("$uid", "$toolUid").replace("\"name\":\"uid\"", "\"name\":\"toolUid\""),
    )?;
    cluster.apply_profile(&renamed).await?;
    cluster.wait_condition(test, "Enforced", "True").await?;
    eventually("the old value is gone", || async {
        let now = cluster.params("renamed-tool", test).await?.spec.integers;
        let names: Vec<_> = now.keys().map(String::as_str).collect();
        if names == ["toolUid"] { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await?;
    // The verdicts must stay the same for this time, in which the API server reads the new parameters.
    tokio::time::sleep(Duration::from_secs(2)).await;
    good.finish("a pod that complies, while a parameter is renamed").await?;
    bad.finish("a pod that violates, while a parameter is renamed").await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn deleting_the_profile_frees_every_namespace(cluster: &mut Cluster) -> TestResult {
    let test = "deleted";
    for index in 0..5 {
        cluster.create_tool(test, &format!("deleted-{index}"), UID).await?;
    }
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.wait_admitted("deleted-0", &tool_pod("job", UID)).await?;
    let good = Watch::start(cluster, "deleted-0", tool_pod("job", UID), true);
    cluster.delete_profile(test).await?;
    for index in 0..5 {
        cluster.wait_admitted(&format!("deleted-{index}"), &hostile_pod("free")).await?;
    }
    // The complying pod must be admitted for this time, in which the last objects are removed.
    tokio::time::sleep(Duration::from_secs(1)).await;
    good.finish("a pod that complies, while the profile is deleted").await?;
    let left = cluster.left_of(test)?;
    ensure!(left.is_empty(), "left: {left}");
    Ok(())
}

/// Somebody deletes a profile and removes its finalizer: its generated objects are deleted all the same.
pub(crate) async fn a_profile_deleted_by_force_leaves_nothing(cluster: &mut Cluster) -> TestResult {
    let test = "forced";
    cluster.create_tool(test, "forced-tool", UID).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.stop_controller().await?;
    cluster.profiles().delete(test, &DeleteParams::default()).await?;
    let without = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    cluster.profiles().patch(test, &PatchParams::default(), &without).await?;
    cluster.start_controller().await?;
    eventually("nothing is left", || async {
        let left = cluster.left_of(test).map_err(|error| error.to_string())?;
        if left.is_empty() { Ok(()) } else { Err(left) }
    })
    .await?;
    cluster.wait_admitted("forced-tool", &hostile_pod("free")).await
}

pub(crate) async fn namespace_with_a_pod_with_a_finalizer_can_be_deleted(cluster: &mut Cluster) -> TestResult {
    let test = "finalized";
    cluster.create_tool(test, "finalized-tool", UID).await?;
    cluster.enforce(&Cluster::small_profile(test)).await?;
    cluster.wait_admitted("finalized-tool", &tool_pod("job", UID)).await?;
    let mut pod = tool_pod("job", UID);
    pod["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let created = cluster.create_pod("finalized-tool", &pod).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    cluster.delete_namespace("finalized-tool").await?;
    let path = "/api/v1/namespaces/finalized-tool/pods/job";
    eventually("the pod is being deleted", || is_being_deleted(cluster, path)).await?;
    let freed = cluster.patch_pod("finalized-tool", "job", &json!({"metadata": {"finalizers": null}})).await;
    ensure!(freed == Verdict::Admitted, "the finalizer cannot be removed: {freed:?}");
    eventually("the namespace is gone", || async {
        match cluster.kubectl(&["get", "namespace", "finalized-tool", "-o", "jsonpath={.status}"]) {
            Err(error) if error.to_string().contains("not found") => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn api_server_restart_admits_no_violation(cluster: &mut Cluster) -> TestResult {
    let test = "restart";
    cluster.create_tool(test, "restart-tool", UID).await?;
    cluster.enforce(&Cluster::toolforge_profile(test)?).await?;
    cluster.wait_admitted("restart-tool", &tool_pod("job", UID)).await?;
    let bad = Watch::start(cluster, "restart-tool", hostile_pod("hostile"), false);
    cluster.control_plane.restart_apiserver(Shutdown::Kill).await?;
    cluster.wait_admitted("restart-tool", &tool_pod("job", UID)).await?;
    cluster.control_plane.restart_apiserver(Shutdown::Graceful).await?;
    cluster.wait_admitted("restart-tool", &tool_pod("job", UID)).await?;
    bad.finish("a pod that violates, while the API server restarts").await?;
    // The controller goes on with its watches.
    cluster.create_tool(test, "restart-new", UID + 1).await?;
    cluster.wait_admitted("restart-new", &tool_pod("job", UID + 1)).await?;
    cluster.delete_profile(test).await
}
