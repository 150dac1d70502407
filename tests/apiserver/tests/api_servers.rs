//! More than one API server: each judges by the policies that it has read itself, and each is probed by itself.

use std::time::Duration;

use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::{Api, api::PostParams};
use palisade_api::names;
use palisade_controller::{ApiServers, Options};
use palisade_controlplane::Shutdown;
use palisade_kube_json::pod;
use palisade_tests::{Cluster, TestResult, ensure, within};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value as Json, json};

crate::groups::scenarios! {
    every_api_server_is_probed_and_failing_ones_named: Reconciled 100;
    api_server_addresses_are_read_from_the_endpoint_slice: Reconciled 90;
    waiting_profiles_do_not_delay_others: Reconciled 80;
}

/// What must happen and whose time is not the point. Each profile is judged before it is applied, which takes some seconds
/// in a debug build on a machine that has other things to do.
const LIMIT: Duration = Duration::from_mins(4);

fn profile(test: &str) -> Json {
    json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": test},
        "spec": {
            "namespaceSelector": {"matchLabels": {"test": test}}, "baseline": "Baseline",
            "enforcement": {"workloads": "Deny"},
        },
    })
}

/// Waits until Enforced has a status, with a message that has one text and not the other; says how long it took.
async fn enforced(cluster: &Cluster, profile: &str, status: &str, with: &str, without: &str) -> Result<String, String> {
    let what = format!("Enforced={status} of {profile} with {with:?}");
    let (message, took) = within(LIMIT, &what, || async {
        let found = cluster.profiles().get(profile).await.map_err(|error| error.to_string())?;
        let conditions = found.status.map(|status| status.conditions).unwrap_or_default();
        let now = conditions.into_iter().find(|condition| condition.type_ == "Enforced").ok_or("no condition")?;
        let right = now.status == status
            && now.observed_generation == found.metadata.generation
            && now.message.contains(with)
            && (without.is_empty() || !now.message.contains(without));
        if right { Ok(now.message) } else { Err(format!("{}: {}: {}", now.status, now.reason, now.message)) }
    })
    .await?;
    println!("Enforced={status} after {took:.1?}: {message}");
    Ok(message)
}

pub(crate) async fn every_api_server_is_probed_and_failing_ones_named(cluster: &mut Cluster) -> TestResult {
    let test = "servers";
    let first = cluster.control_plane.url().to_owned();
    let second = cluster.control_plane.add_apiserver([""; 0]).await?;
    let both = ApiServers::At(vec![first.parse()?, second.parse()?]);
    let options = Options { api_servers: both, probe_interval: Duration::from_secs(3), ..Cluster::options()? };
    cluster.restart_controller(options).await?;
    cluster.create_namespace(test, &json!({"test": test}), &json!({})).await?;
    cluster.apply_profile(&profile(test)).await?;
    enforced(cluster, test, "True", "each of 2 API servers", "").await?;

    // One that does not judge at all.
    let idle = ["--disable-admission-plugins=ValidatingAdmissionPolicy"];
    cluster.control_plane.replace_apiserver(&second, Shutdown::Graceful, idle).await?;
    let message = enforced(cluster, test, "False", &second, &first).await?;
    ensure!(message.contains("is admitted"), "{message}");
    cluster.control_plane.replace_apiserver(&second, Shutdown::Kill, [""; 0]).await?;
    enforced(cluster, test, "True", "each of 2 API servers", "").await?;

    // One that is stopped in its tracks: connections are made, and nothing is answered.
    let pid = cluster.control_plane.added_apiserver_pid(&second).and_then(|pid| Pid::from_raw(pid.try_into().ok()?));
    let pid = pid.ok_or("no process")?;
    kill_process(pid, Signal::STOP)?;
    enforced(cluster, test, "Unknown", &second, &first).await?;
    // Meanwhile the controller keeps policies in force, and another profile gets its answer.
    let name = names::policy(test, names::Shape::Workloads);
    cluster.bindings().delete(&name, &kube::api::DeleteParams::default()).await?;
    let ((), took) = within(LIMIT, "a deleted binding", || async {
        cluster.bindings().get(&name).await.map(drop).map_err(|error| error.to_string())
    })
    .await?;
    println!("a deleted binding is back after {took:.2?}");
    ensure!(took < Duration::from_secs(10), "repair waited for the server that does not answer: {took:?}");
    cluster.apply_profile(&profile("servers-other")).await?;
    enforced(cluster, "servers-other", "Unknown", &second, &first).await?;
    let metrics = cluster.controller_get("/metrics").await?;
    ensure!(metrics.contains(&format!("palisade_api_server_answers{{server=\"{second}\"}} 0")), "{metrics}");
    kill_process(pid, Signal::CONT)?;
    enforced(cluster, test, "True", "each of 2 API servers", "").await?;
    enforced(cluster, "servers-other", "True", "each of 2 API servers", "").await?;

    // One that is gone.
    cluster.control_plane.remove_apiserver(&second, Shutdown::Kill).await?;
    enforced(cluster, test, "Unknown", &second, &first).await?;
    cluster.stop_controller().await?;
    cluster.start_controller().await?;
    enforced(cluster, test, "True", "only", "each of").await?;
    cluster.delete_profile("servers-other").await?;
    cluster.delete_profile(test).await
}

/// An API server writes no slice with loopback addresses, and rejects one that has them. So this shows that the
/// controller may read the slice, and the messages about addresses that do not answer.
pub(crate) async fn api_server_addresses_are_read_from_the_endpoint_slice(cluster: &mut Cluster) -> TestResult {
    let test = "discovered";
    let slices: Api<EndpointSlice> = Api::namespaced(cluster.admin.clone(), "default");
    let slice: EndpointSlice = serde_json::from_value(json!({
        "apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
        "metadata": {"name": "kubernetes", "labels": {"kubernetes.io/service-name": "kubernetes"}},
        // Reserved for documentation: no host has it (RFC 5737).
        "endpoints": [{"addresses": ["192.0.2.1"], "conditions": {"ready": true}}],
        "ports": [{"name": "https", "port": 6443, "protocol": "TCP"}],
    }))?;
    slices.create(&PostParams::default(), &slice).await?;
    let done = async {
        cluster.create_namespace(test, &json!({"test": test}), &json!({})).await?;
        cluster.apply_profile(&profile(test)).await?;
        enforced(cluster, test, "Unknown", "https://192.0.2.1:6443", "").await?;
        slices.delete("kubernetes", &kube::api::DeleteParams::default()).await?;
        enforced(cluster, test, "True", "EndpointSlice kubernetes in namespace default does not exist", "").await?;
        cluster.delete_profile(test).await
    };
    done.await
}

/// Many profiles whose pods nobody mutates, and a binding that somebody deletes: it comes back at once, and a new profile
/// gets its answer.
pub(crate) async fn waiting_profiles_do_not_delay_others(cluster: &mut Cluster) -> TestResult {
    const WAITING: usize = 12;
    let test = "beside";
    cluster.create_namespace(test, &json!({"test": test}), &json!({})).await?;
    cluster.enforce(&profile(test)).await?;
    let waiting: Vec<_> = (0..WAITING).map(|index| format!("waiting-{index}")).collect();
    for name in &waiting {
        let mut unmutated = profile(name);
        // Nobody runs the webhook here.
        pod::merge(
            &mut unmutated["spec"],
            &json!({"baseline": "Restricted", "mutation": {"defaults": "Secure", "engine": "Webhook"}}),
        );
        cluster.apply_profile(&unmutated).await?;
    }
    // To judge a profile takes a while, too, and is not the point here.
    for name in &waiting {
        enforced(cluster, name, "False", "no engine was observed mutating pods", "").await?;
    }
    let name = names::policy(test, names::Shape::Pods);
    let mut slowest = Duration::ZERO;
    for _ in 0..10 {
        cluster.bindings().delete(&name, &kube::api::DeleteParams::default()).await?;
        let ((), took) = within(LIMIT, "a deleted binding", || async {
            cluster.bindings().get(&name).await.map(drop).map_err(|error| error.to_string())
        })
        .await?;
        slowest = slowest.max(took);
        // The deletions are spread over some seconds, in which the other profiles are probed.
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    println!("beside {WAITING} profiles whose pods nobody mutates, a deleted binding is back within {slowest:.2?}");
    ensure!(slowest < Duration::from_secs(5), "repair waited: {slowest:?}");
    let other = format!("{test}-other");
    let start = std::time::Instant::now();
    cluster.enforce(&profile(&other)).await?;
    println!("a new profile is enforced after {:.1?}", start.elapsed());
    for name in &waiting {
        cluster.delete_profile(name).await?;
    }
    cluster.delete_profile(&other).await?;
    cluster.delete_profile(test).await
}
