//! A cluster whose API server begins to serve what mutates pods.

use std::time::{Duration, Instant};

use kube::{
    Api,
    api::{ApiResource, DeleteParams, DynamicObject},
};
use palisade_api::{EngineInForce, names};
use palisade_controlplane::{Feature, Shutdown};
use palisade_tests::{
    Cluster, Load, Tally, TestResult, Webhook, bare_pod, beta, dry_run_answer, ensure, eventually, tool_pod, within,
};
use serde_json::{Value as Json, json};
use tokio::time::sleep;

use crate::webhook::{engine, registered, report};

crate::groups::scenarios! {
    api_server_upgrade_leaves_no_pod_unmutated: Upgraded;
    inert_beta_policy_is_not_the_engine: Middle 30 needs BETA_MUTATION;
    beta_policy_mutates_where_v1_is_not_served: Beta 20 needs BETA_MUTATION;
}

type Result<T> = std::result::Result<T, Box<dyn std::error::Error + Send + Sync>>;

const UID: i64 = 50_001;
const REGISTRY: &str = "docker-registry.svc.toolforge.org";

/// Toolforge's profile that defaults what it demands and redirects images, by whatever engine there is, and a namespace
/// of a tool.
async fn prepare(cluster: &Cluster, test: &str) -> Result<String> {
    let namespace = format!("{test}-tool");
    cluster.create_tool(test, &namespace, UID).await?;
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Auto"});
    profile["spec"]["images"]["redirect"] = json!({"target": format!("{REGISTRY}/proxy"), "skip": [REGISTRY]});
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
    let right = |when: &str, tally: &Tally| -> TestResult {
        report(&format!("upgrade, {when}"), tally);
        tally.nothing_is_wrong()?;
        ensure!(tally.specs.iter().all(|found| *found == spec), "{when}: {:?} and not {spec}", tally.specs);
        Ok(())
    };
    // Until the API server gives a verdict each time, and the webhook is asked each time.
    loop {
        // Each second is evaluated separately: the API server must answer all requests of one.
        sleep(Duration::from_secs(1)).await;
        let during = load.take();
        right("while the API server starts", &during)?;
        if during.unanswered == 0 && during.unmutated_count == 0 && during.mutated > 0 {
            break;
        }
        ensure!(start.elapsed() < Duration::from_mins(5), "no verdicts: {during:?}");
    }
    println!("upgrade: all is answered {:.1?} after the API server was ready", start.elapsed());

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
    right("from then on", &after)?;
    after.is_safe()?;
    ensure!(after.mutated > 0 && after.unmutated_count == 0, "after: {after:?}");
    let asked = webhook.metric("palisade_webhook_requests_total{").await? - asked;
    ensure!(asked.abs() < 0.5, "the webhook is still asked: {asked} times");
    webhook.stop().await?;
    cluster.delete_profile(test).await?;
    ensure!(policies(cluster, "v1").get_opt(&names::mutation(test)).await?.is_none(), "the policy is left");
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
