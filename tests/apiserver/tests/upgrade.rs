//! Upgrades of the API server: of one that begins to serve what mutates pods, and of the programs of each minor.

use std::time::{Duration, Instant};

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject},
};
use palisade_api::{EngineInForce, names};
use palisade_controlplane::{Feature, Shutdown, Version};
use palisade_tests::{
    Cluster, Load, Tally, TestResult, Verdict, Webhook, bare_pod, beta, dry_run_answer, ensure, eventually,
    hostile_pod, tool_pod, within,
};
use serde_json::{Value as Json, json};
use tokio::time::sleep;

use crate::webhook::{engine, registered, report};

crate::groups::scenarios! {
    api_server_upgrade_leaves_no_pod_unmutated: Upgraded;
    upgrades_through_minors_admit_no_violation: Minors if "PALISADE_UPGRADE";
    inert_beta_policy_is_not_the_engine: Middle 30 needs BETA_MUTATION;
    beta_policy_mutates_where_v1_is_not_served: Beta 20 needs BETA_MUTATION;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const UID: i64 = 50_001;
const REGISTRY: &str = "docker-registry.svc.toolforge.org";

/// The minor versions of an upgrade, in their order, separated by commas.
const UPGRADE: &str = "PALISADE_UPGRADE";

/// The versions of [`UPGRADE`].
///
/// # Errors
/// The project has no modules of one of them.
pub(crate) fn versions() -> std::result::Result<Vec<&'static Version>, palisade_controlplane::Error> {
    let minors = std::env::var(UPGRADE).unwrap_or_default();
    minors.split(',').filter(|minor| !minor.is_empty()).map(|minor| Version::of(Some(minor))).collect()
}

/// Toolforge's profile that defaults what it demands and redirects images, by whatever engine there is.
fn mutating_profile(test: &str) -> Result<Json> {
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Auto"});
    profile["spec"]["images"]["redirect"] = json!({"target": format!("{REGISTRY}/proxy"), "skip": [REGISTRY]});
    Ok(profile)
}

/// [`mutating_profile`] in force, and a namespace of a tool.
async fn prepare(cluster: &Cluster, test: &str) -> Result<String> {
    let namespace = format!("{test}-tool");
    cluster.create_tool(test, &namespace, UID).await?;
    let profile = mutating_profile(test)?;
    cluster.enforce_policies(&profile).await?;
    cluster.wait_admitted(&namespace, &tool_pod("job", UID)).await?;
    Ok(namespace)
}

/// A pod that complies once it is defaulted and its image redirected, and that is always the same then.
fn needing() -> Json {
    let mut pod = bare_pod("bare");
    pod["spec"]["automountServiceAccountToken"] = json!(false);
    pod["spec"]["containers"][0]["image"] = json!("quay.io/some/thing:1");
    pod
}

/// Waits until that pod is defaulted.
async fn defaulted(cluster: &Cluster, namespace: &str) -> Result<Json> {
    let pod = eventually("a pod that is defaulted", || async {
        dry_run_answer(&cluster.admin, namespace, &needing()).await.map_err(|error| error.to_string())
    })
    .await?;
    Ok(pod)
}

/// No violating pod was admitted, and pods are mutated to this spec.
fn right(when: &str, tally: &Tally, spec: &str) -> TestResult {
    report(when, tally);
    tally.nothing_is_wrong()?;
    ensure!(tally.specs.iter().all(|found| found == spec), "{when}: {:?} and not {spec}", tally.specs);
    Ok(())
}

/// Waits until the API server gives a verdict each time, and pods are mutated each time. No verdict is wrong meanwhile.
async fn answers_again(load: &Load, what: &str, spec: &str, start: Instant) -> TestResult {
    loop {
        // Each second is evaluated separately: the API server must answer all requests of one.
        sleep(Duration::from_secs(1)).await;
        let during = load.take();
        right(&format!("{what}, while the API server starts"), &during, spec)?;
        if during.unanswered == 0 && during.unmutated_count == 0 && during.mutated > 0 {
            println!("{what}: all is answered {:.1?} after the API server was ready", start.elapsed());
            return Ok(());
        }
        ensure!(start.elapsed() < Duration::from_mins(5), "no verdicts: {during:?}");
    }
}

pub(crate) async fn api_server_upgrade_leaves_no_pod_unmutated(cluster: &mut Cluster) -> TestResult {
    let test = "upgraded";
    let namespace = prepare(cluster, test).await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    let pod = defaulted(cluster, &namespace).await?;
    let spec = pod["spec"].to_string();
    ensure!(pod["spec"]["containers"][0]["image"] == format!("{REGISTRY}/proxy/quay.io/some/thing:1"), "{spec}");
    engine(cluster, test, EngineInForce::Webhook).await?;
    let load = Load::start(&cluster.admin, &namespace, UID, &needing());
    load.answered(50).await?;
    let before = load.take();
    before.is_safe()?;
    ensure!(before.unmutated_count == 0 && before.specs == [spec.clone()].into(), "before: {before:?}");

    // The same data, another version.
    cluster.control_plane.stop_apiserver(Shutdown::Graceful).await?;
    cluster.control_plane.set_emulated_version(None)?;
    cluster.control_plane.start_apiserver().await?;
    let start = Instant::now();
    ensure!(cluster.has(&Feature::NATIVE_MUTATION).await?, "it is not upgraded");
    answers_again(&load, "upgrade", &spec, start).await?;

    engine(cluster, test, EngineInForce::Native).await?;
    let native = start.elapsed();
    registered(&webhook, 0.0).await?;
    let gone = start.elapsed();
    // The API server reads the registration later, and does not report when.
    sleep(Duration::from_secs(3)).await;
    let asked = webhook.metric("palisade_webhook_requests_total{").await?;
    // The webhook must not get a request during this time.
    sleep(Duration::from_secs(2)).await;
    let after = load.stop().await;
    println!("upgrade: native after {native:.1?}, the webhook unregistered after {gone:.1?}");
    right("upgrade, from then on", &after, &spec)?;
    after.is_safe()?;
    ensure!(after.mutated > 0 && after.unmutated_count == 0, "after: {after:?}");
    let asked = webhook.metric("palisade_webhook_requests_total{").await? - asked;
    ensure!(asked.abs() < 0.5, "the webhook is still asked: {asked} times");
    webhook.stop().await?;
    cluster.delete_profile(test).await?;
    ensure!(policies(cluster, "v1").get_opt(&names::mutation(test)).await?.is_none(), "the policy is left");
    Ok(())
}

pub(crate) async fn upgrades_through_minors_admit_no_violation(cluster: &mut Cluster) -> TestResult {
    let test = "minors";
    let namespace = prepare(cluster, test).await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    let spec = defaulted(cluster, &namespace).await?["spec"].to_string();
    let load = Load::start(&cluster.admin, &namespace, UID, &needing());
    let versions = versions()?;
    ensure!(versions.len() > 1, "{UPGRADE} has one version");
    for (step, version) in versions.into_iter().enumerate() {
        let what = format!("{step}: {}", version.kubernetes);
        if step > 0 {
            cluster.control_plane.replace_version(version).await?;
        }
        let start = Instant::now();
        ensure!(cluster.served().await? == version.number, "{what} does not run");
        answers_again(&load, &what, &spec, start).await?;
        let native = Feature::NATIVE_MUTATION.is_in(version.number);
        let (wanted, entries) = if native { (EngineInForce::Native, 0.0) } else { (EngineInForce::Webhook, 1.0) };
        engine(cluster, test, wanted).await?;
        registered(&webhook, entries).await?;
        println!("{what}: {wanted} after {:.1?}", start.elapsed());
        works(cluster, test, &format!("step-{step}"), &namespace).await?;
        println!("{what}: an edit and a new namespace after {:.1?}", start.elapsed());
        let tally = load.take();
        right(&what, &tally, &spec)?;
        tally.is_safe()?;
        ensure!(tally.mutated > 0 && tally.unmutated_count == 0, "{what}: {tally:?}");
    }
    right("at the end", &load.stop().await, &spec)?;
    webhook.stop().await?;
    cluster.delete_profile(test).await
}

/// An edit of the profile takes effect, and a new namespace is judged.
async fn works(cluster: &Cluster, test: &str, step: &str, namespace: &str) -> TestResult {
    let mut profile = mutating_profile(test)?;
    profile["spec"]["customChecks"] = json!([{
        "id": "step", "target": "Pod", "expression": format!("variables.annotations[?'step'].orValue('') != '{step}'"),
        "message": "is denied in this step",
    }]);
    let mut pod = tool_pod("job", UID);
    pod["metadata"]["annotations"] = json!({"step": step});
    ensure!(cluster.dry_run(namespace, &pod).await == Verdict::Admitted, "{step}: a pod is denied before the edit");
    cluster.enforce_policies(&profile).await?;
    let edited = cluster.dry_run(namespace, &pod).await;
    ensure!(edited.denial().is_some_and(|said| said.contains("in this step")), "{step}: {edited:?}");
    let new = format!("{test}-{step}");
    cluster.create_tool(test, &new, UID).await?;
    cluster.wait_admitted(&new, &tool_pod("job", UID)).await?;
    let hostile = cluster.dry_run(&new, &hostile_pod("hostile")).await;
    ensure!(hostile.denial().is_some(), "{step}: {hostile:?}");
    Ok(())
}

/// 1.34 and 1.35 can serve the policy and not act by it: that is another switch.
pub(crate) async fn inert_beta_policy_is_not_the_engine(cluster: &mut Cluster) -> TestResult {
    let test = "idle";
    let namespace = prepare(cluster, test).await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    engine(cluster, test, EngineInForce::Webhook).await?;
    let pod = defaulted(cluster, &namespace).await?;
    ensure!(pod["spec"]["securityContext"]["runAsUser"] == UID, "{pod}");
    // It is there, for the day on which the API server acts by it.
    policies(cluster, "v1beta1").get(&names::mutation(test)).await?;
    registered(&webhook, 1.0).await?;
    webhook.stop().await?;
    cluster.delete_profile(test).await
}

/// The API of mutating policies in a version.
fn policies(cluster: &Cluster, version: &str) -> Api<DynamicObject> {
    let resource = ApiResource {
        group: "admissionregistration.k8s.io".to_owned(),
        version: version.to_owned(),
        api_version: format!("admissionregistration.k8s.io/{version}"),
        kind: "MutatingAdmissionPolicy".to_owned(),
        plural: "mutatingadmissionpolicies".to_owned(),
    };
    Api::all_with(cluster.admin.clone(), &resource)
}

pub(crate) async fn beta_policy_mutates_where_v1_is_not_served(cluster: &mut Cluster) -> TestResult {
    let test = "beta";
    cluster.stop_controller().await?;
    cluster.start_controller_with(|client| beta::without_v1(&client)).await?;
    let namespace = prepare(cluster, test).await?;
    engine(cluster, test, EngineInForce::Native).await?;
    let pod = defaulted(cluster, &namespace).await?;
    ensure!(pod["spec"]["securityContext"]["runAsUser"] == UID, "{pod}");
    let (policies, name) = (policies(cluster, "v1beta1"), names::mutation(test));
    let found = policies.get(&name).await?;
    let written: Vec<_> =
        found.metadata.managed_fields.iter().flatten().filter_map(|entry| entry.api_version.as_deref()).collect();
    ensure!(written == ["admissionregistration.k8s.io/v1beta1"], "written as {written:?}");
    // It is watched, too.
    policies.delete(&name, &DeleteParams::default()).await?;
    let ((), took) = within(Duration::from_mins(2), "a deleted policy", || async {
        policies.get(&name).await.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    println!("v1beta1: a deleted policy is back after {took:.1?}");
    defaulted(cluster, &namespace).await?;
    cluster.delete_profile(test).await?;
    ensure!(policies.get_opt(&name).await?.is_none(), "the policy is left");
    cluster.stop_controller().await
}
