//! The webhook in front of a real API server: how it mutates pods, and what happens when it fails.

use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use palisade_api::EngineInForce;
use palisade_tests::{
    Balancer, Cluster, Load, Tally, TestResult, Verdict, Webhook, bare_pod, dry_run_answer, ensure, eventually,
    fail_open_count, handshake, hostile_pod, tool_pod,
};
use rustix::process::Signal;
use serde_json::{Value as Json, json};
use tokio::time::sleep;

crate::groups::scenarios! {
    webhook_sets_defaults_and_keeps_set_fields: Webhooks 20;
    webhook_failures_admit_no_violation: Webhooks 30;
    a_rolling_restart_fails_no_request: Webhooks 40;
    certificates_rotate_and_no_request_fails: Webhooks 50;
    engine_change_leaves_no_pod_unmutated: Reconciled 10 needs NATIVE_MUTATION;
}

const UID: i64 = 50_001;

/// Toolforge's profile that defaults what it demands, and a namespace of a tool.
async fn prepare(cluster: &Cluster, test: &str) -> Result<String, Box<dyn std::error::Error + Send + Sync>> {
    let namespace = format!("{test}-tool");
    cluster.create_tool(test, &namespace, UID).await?;
    let mut profile = Cluster::toolforge_profile(test)?;
    profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Webhook"});
    cluster.enforce_policies(&profile).await?;
    cluster.wait_admitted(&namespace, &tool_pod("job", UID)).await?;
    Ok(namespace)
}

/// Waits until pods are defaulted.
async fn defaulted(cluster: &Cluster, namespace: &str) -> Result<Json, String> {
    eventually("a pod that is defaulted", || async {
        dry_run_answer(&cluster.admin, namespace, &bare_pod("bare")).await.map_err(|error| error.to_string())
    })
    .await
}

pub(crate) async fn webhook_sets_defaults_and_keeps_set_fields(cluster: &mut Cluster) -> TestResult {
    let namespace = prepare(cluster, "webhook").await?;
    let before = cluster.dry_run(&namespace, &bare_pod("bare")).await;
    ensure!(before.denial().is_some(), "without a webhook: {before:?}");
    let webhook = Webhook::start(cluster, None, &[]).await?;
    let pod = defaulted(cluster, &namespace).await?;
    let context = &pod["spec"]["securityContext"];
    let expected = json!({
        "runAsUser": UID, "runAsGroup": UID, "fsGroup": UID, "runAsNonRoot": true,
        "seccompProfile": {"type": "RuntimeDefault"},
    });
    ensure!(*context == expected, "{context}");
    let container = &pod["spec"]["containers"][0]["securityContext"];
    ensure!(*container == json!({"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}}), "{container}");
    // What a pod says stays, and what it must not say is denied.
    let own = dry_run_answer(&cluster.admin, &namespace, &tool_pod("job", UID)).await?;
    ensure!(own["spec"]["securityContext"] == tool_pod("job", UID)["spec"]["securityContext"], "{own}");
    let hostile = cluster.dry_run(&namespace, &hostile_pod("hostile")).await;
    ensure!(hostile.denial().is_some(), "{hostile:?}");
    // An ephemeral container, on its own subresource.
    let created = cluster.create_pod(&namespace, &bare_pod("job")).await;
    ensure!(created == Verdict::Admitted, "{created:?}");
    let debugger = json!([{"name": "debugger", "image": "docker-registry.svc.toolforge.org/debug:1"}]);
    let added = cluster.dry_run_ephemeral(&namespace, "job", &debugger).await;
    ensure!(added == Verdict::Admitted, "{added:?}");
    let path = std::env::temp_dir().join(format!("palisade-bare-{}.json", std::process::id()));
    std::fs::write(&path, bare_pod("bare").to_string())?;
    let file = path.display().to_string();
    let (_, warnings) = cluster.kubectl_both(&["create", "--dry-run=server", "-n", &namespace, "-f", &file])?;
    std::fs::remove_file(&path)?;
    println!("{warnings}");
    ensure!(warnings.contains("mutated by ToolSecurityProfile webhook: pod securityContext"), "{warnings}");
    let asked = webhook.metric("palisade_webhook_requests_total{result=\"mutated\"}").await?;
    ensure!(asked >= 3.0, "{asked}");
    webhook.stop().await?;
    cluster.delete_profile("webhook").await
}

pub(crate) fn report(what: &str, tally: &Tally) {
    let Tally { mutated, unmutated_count, complying, denied, unanswered, slowest, .. } = tally;
    println!(
        "{what}: {complying} complying admitted, {denied} violating denied, {mutated} defaulted, {unmutated_count} \
         denied for want of defaults, {unanswered} without a verdict, slowest answer {slowest:.2?}"
    );
}

pub(crate) async fn webhook_failures_admit_no_violation(cluster: &mut Cluster) -> TestResult {
    let test = "webhook-failures";
    let namespace = prepare(cluster, test).await?;
    let arguments = ["--timeout-seconds=1"];
    let mut webhook = Webhook::start(cluster, None, &arguments).await?;
    defaulted(cluster, &namespace).await?;
    // The pod is asked about twice at most (reinvocation), each time for the second that this webhook has. Without that
    // second a call would take the ten that the API server gives one by default.
    let limit = Duration::from_secs(9);
    let load = Load::start(&cluster.admin, &namespace, UID, &bare_pod("bare"));
    let check = async |what: &str| -> TestResult {
        load.take();
        // The load runs for this time in each state. If the webhook does not answer, a request takes two seconds.
        sleep(Duration::from_secs(3)).await;
        let tally = load.take();
        report(what, &tally);
        tally.is_safe()?;
        ensure!(tally.slowest < limit, "{what}: an answer took {:?}", tally.slowest);
        Ok(())
    };
    check("webhook runs").await?;

    webhook.signal(Signal::STOP)?;
    check("webhook stopped in its tracks").await?;
    webhook.signal(Signal::CONT)?;
    defaulted(cluster, &namespace).await?;

    let address = webhook.address;
    webhook.kill()?;
    check("webhook killed").await?;
    let webhook = Webhook::start_at(cluster, address, None, &arguments).await?;
    defaulted(cluster, &namespace).await?;
    check("webhook runs again").await?;

    // Another authority than the API server believes. Only new connections show it.
    webhook.stop().await?;
    let wrong = tempfile::tempdir()?;
    let made = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()])?;
    std::fs::write(wrong.path().join("tls.crt"), made.cert.pem())?;
    std::fs::write(wrong.path().join("tls.key"), made.signing_key.serialize_pem())?;
    let files = format!("--certificates=Files:{}", wrong.path().display());
    let webhook = Webhook::start_at(cluster, address, None, &[arguments[0], &files]).await?;
    check("webhook with a wrong certificate").await?;
    let failed = "palisade_http_connections_closed_total{port=\"webhook\",reason=\"handshake_failed\"}";
    ensure!(webhook.metric(failed).await? > 0.0, "it was not asked");
    webhook.stop().await?;
    report("at the end", &load.stop().await);
    let webhook = Webhook::start_at(cluster, address, None, &arguments).await?;
    defaulted(cluster, &namespace).await?;
    webhook.stop().await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn a_rolling_restart_fails_no_request(cluster: &mut Cluster) -> TestResult {
    let test = "webhook-rolling";
    let namespace = prepare(cluster, test).await?;
    let balancer = Balancer::start().await?;
    let arguments = ["--drain=2s"];
    let start = async || Webhook::start(cluster, Some(&balancer.url), &arguments).await;
    let (mut one, mut two) = (start().await?, start().await?);
    balancer.to(&[&one, &two]);
    defaulted(cluster, &namespace).await?;
    let before = fail_open_count(cluster, test).await?;
    let load = Load::start(&cluster.admin, &namespace, UID, &bare_pod("bare"));
    for _ in 0..2 {
        // As a Deployment does it: one more, then one less.
        let three = start().await?;
        balancer.to(&[&one, &two, &three]);
        one.stop().await?;
        (one, two) = (two, three);
        balancer.to(&[&one, &two]);
    }
    // However slow the machine is: both are asked while there are requests.
    for replica in [&one, &two] {
        eventually("requests of a replica", || async {
            match replica.metric("palisade_webhook_requests_total{").await {
                Ok(asked) if asked > 10.0 => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    }
    let tally = load.stop().await;
    report("rolling restart", &tally);
    tally.is_safe()?;
    ensure!(tally.unmutated_count == 0, "{tally:?}");
    let failed = fail_open_count(cluster, test).await? - before;
    ensure!(failed.abs() < 0.5, "the API server could not ask {failed} times");
    one.stop().await?;
    two.stop().await?;
    cluster.delete_profile(test).await
}

pub(crate) async fn certificates_rotate_and_no_request_fails(cluster: &mut Cluster) -> TestResult {
    let test = "webhook-rotation";
    let namespace = prepare(cluster, test).await?;
    let balancer = Balancer::start().await?;
    // A renewal begins when two thirds of the life are over: after the overlap, 20 s are left for a slow machine.
    let arguments = ["--certificate-life=90s", "--certificate-overlap=10s"];
    let start = async || Webhook::start(cluster, Some(&balancer.url), &arguments).await;
    let replicas = [start().await?, start().await?];
    balancer.to(&[&replicas[0], &replicas[1]]);
    defaulted(cluster, &namespace).await?;
    let before = fail_open_count(cluster, test).await?;
    let load = Load::start(&cluster.admin, &namespace, UID, &bare_pod("bare"));
    let api: Api<MutatingWebhookConfiguration> = Api::all(cluster.admin.clone());
    let used = async || -> Result<Vec<f64>, Box<dyn std::error::Error + Send + Sync>> {
        let mut counts = vec![];
        for replica in &replicas {
            counts.push(replica.metric("palisade_webhook_certificates_loaded_total").await?);
        }
        Ok(counts)
    };
    let (begin, at_first, mut believed, mut most) = (Instant::now(), used().await?, 0, 0);
    loop {
        let entries = api.get("palisade-webhook").await?.webhooks.unwrap_or_default();
        let bundle = entries.first().and_then(|entry| entry.client_config.ca_bundle.clone()).ok_or("no bundle")?;
        most = most.max(String::from_utf8_lossy(&bundle.0).matches("BEGIN CERTIFICATE").count());
        // A little late, as an API server is.
        sleep(Duration::from_millis(300)).await;
        for replica in &replicas {
            let known = handshake(replica.address, "0.0.0.0", &bundle.0).await;
            known.map_err(|error| format!("after {:?}: {error}", begin.elapsed()))?;
            believed += 1;
        }
        // Each replica has exchanged its certificate twice while requests came.
        let loaded = used().await?;
        if loaded.iter().zip(&at_first).all(|(count, before)| count - before >= 2.0) {
            break;
        }
        ensure!(begin.elapsed() < Duration::from_mins(5), "certificates used: {at_first:?}, then {loaded:?}");
    }
    let tally = load.stop().await;
    report("rotation", &tally);
    // Before they stop: the controller goes on to probe who mutates pods.
    let failed = fail_open_count(cluster, test).await? - before;
    for replica in replicas {
        replica.stop().await?;
    }
    println!("rotation: {believed} connections believed, up to {most} authorities, in {:?}", begin.elapsed());
    ensure!(most >= 2, "never two authorities");
    tally.is_safe()?;
    ensure!(tally.unmutated_count == 0, "{tally:?}");
    ensure!(failed.abs() < 0.5, "the API server could not ask {failed} times");
    // Leave a certificate that the next test can use.
    let empty = json!({"data": null});
    let secrets: Api<k8s_openapi::api::core::v1::Secret> = Api::namespaced(cluster.admin.clone(), "palisade-system");
    secrets.patch("palisade-webhook-cert", &PatchParams::default(), &Patch::Merge(&empty)).await?;
    cluster.delete_profile(test).await
}

/// Waits until the profile's status names an engine.
pub(crate) async fn engine(cluster: &Cluster, profile: &str, wanted: EngineInForce) -> Result<(), String> {
    eventually(&format!("{wanted} sets defaults for {profile}"), || async {
        let found = cluster.profiles().get(profile).await.map_err(|error| error.to_string())?;
        match found.status.and_then(|status| status.mutation) {
            Some(found) if found.engine == wanted => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// Waits until the webhook is registered for so many profiles.
pub(crate) async fn registered(webhook: &Webhook, count: f64) -> Result<(), String> {
    eventually(&format!("registered for {count} profiles"), || async {
        match webhook.metric("palisade_webhook_registered_profiles").await {
            Ok(found) if (found - count).abs() < 0.5 => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await
}

/// Ends a webhook that was started because an engine was needed, once no profile needs it.
pub(crate) async fn end(webhook: Option<Webhook>) -> TestResult {
    if let Some(webhook) = webhook {
        registered(&webhook, 0.0).await?;
        webhook.stop().await?;
    }
    Ok(())
}

pub(crate) async fn engine_change_leaves_no_pod_unmutated(cluster: &mut Cluster) -> TestResult {
    let test = "webhook-engine";
    let namespace = prepare(cluster, test).await?;
    let webhook = Webhook::start(cluster, None, &[]).await?;
    defaulted(cluster, &namespace).await?;
    engine(cluster, test, EngineInForce::Webhook).await?;
    let policy = format!("palisade-{test}-mutation");
    let exists = || cluster.kubectl(&["get", "mutatingadmissionpolicy", &policy, "-o", "name"]).is_ok();
    ensure!(!exists(), "a policy beside the webhook");
    let load = Load::start(&cluster.admin, &namespace, UID, &bare_pod("bare"));
    let mut profile = Cluster::toolforge_profile(test)?;
    for (wanted, found, entries) in [("Auto", EngineInForce::Native, 0.0), ("Webhook", EngineInForce::Webhook, 1.0)] {
        profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": wanted});
        cluster.apply_profile(&profile).await?;
        engine(cluster, test, found).await?;
        registered(&webhook, entries).await?;
        // The load runs with this engine for a second, and each of its answers counts.
        sleep(Duration::from_secs(1)).await;
        let tally = load.take();
        report(wanted, &tally);
        tally.is_safe()?;
        ensure!(tally.unmutated_count == 0 && tally.mutated > 0, "{wanted}: {tally:?}");
        ensure!(exists() == (found == EngineInForce::Native), "{wanted}: the policy exists: {}", exists());
    }
    // Without replicas, pods are judged as they are.
    load.stop().await;
    profile["spec"]["mutation"] = json!({"defaults": "Secure", "engine": "Off"});
    cluster.apply_profile(&profile).await?;
    registered(&webhook, 0.0).await?;
    eventually("a pod is judged as it is", || async {
        match cluster.dry_run(&namespace, &bare_pod("bare")).await {
            Verdict::Denied(_) => Ok(()),
            other => Err(format!("{other:?}")),
        }
    })
    .await?;
    webhook.stop().await?;
    cluster.delete_profile(test).await
}
