//! Two profiles that are rolled out on the same namespaces, steered by `palisade rollout`.

use palisade_api::RolloutPhase;
use palisade_kube_json::pod;
use palisade_tests::{Cluster, TestResult, Verdict, ensure, eventually};
use serde_json::{Value as Json, json};

use crate::{
    history::{palisade, printed},
    lifecycle::Watch,
    rollout::{label_of, permit, wait_rolled_out, wait_rollout},
};

crate::groups::scenarios! {
    two_profiles_are_rolled_out_on_the_same_namespaces: Judged 300, OldestRollouts 50;
}

const TEST: &str = "two";
/// What denies less, and what denies more.
const PROFILES: [&str; 2] = ["two-baseline", "two-restricted"];

fn profile(name: &str, baseline: &str, rollout: &Json) -> Json {
    json!({
        "apiVersion": palisade_api::names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": name},
        "spec": {
            "namespaceSelector": {"matchLabels": {"test": TEST}}, "baseline": baseline,
            "enforcement": {"pods": "Audit", "workloads": "Audit", "namespaceStages": "ByLabel"},
            "rollout": rollout,
        },
    })
}

fn privileged(name: &str) -> Json {
    let mut pod = pod::minimal(name);
    pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
    pod
}

fn restricted(name: &str) -> Json {
    let mut pod = pod::minimal(name);
    let context = json!({
        "allowPrivilegeEscalation": false, "runAsNonRoot": true, "runAsUser": 1000,
        "capabilities": {"drop": ["ALL"]}, "seccompProfile": {"type": "RuntimeDefault"},
    });
    pod::set_container(&mut pod, &["securityContext"], context);
    pod
}

async fn labels(cluster: &Cluster, namespace: &str) -> TestResult<[Option<String>; 2]> {
    let [one, other] = PROFILES.map(|profile| label_of(cluster, profile, namespace));
    Ok([one.await?, other.await?])
}

pub(crate) async fn two_profiles_are_rolled_out_on_the_same_namespaces(cluster: &mut Cluster) -> TestResult {
    let [baseline, strict] = PROFILES;
    // In two-0 all comply with both, in two-1 with the first only, in two-2 with none.
    for (namespace, pod) in
        [("two-0", restricted("good")), ("two-1", pod::minimal("plain")), ("two-2", privileged("bad"))]
    {
        cluster.create_namespace(namespace, &json!({"test": TEST}), &json!({})).await?;
        eventually("a pod", || async {
            match cluster.create_pod(namespace, &pod).await {
                Verdict::Admitted => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await?;
    }
    permit(cluster, "apply")?;
    let waves = json!([{"names": ["two-0"]}, {"percent": 100}]);
    cluster.apply_profile(&profile(strict, "Restricted", &json!({"pause": true, "waves": waves}))).await?;
    cluster.apply_profile(&profile(baseline, "Baseline", &json!({"waves": waves}))).await?;
    wait_rolled_out(cluster, baseline, "Held").await?;
    wait_rolled_out(cluster, strict, "Paused").await?;
    let expected = [("two-0", [Some("Deny"), None]), ("two-1", [Some("Deny"), None]), ("two-2", [None, None])];
    check(cluster, expected).await?;
    eventually("two-0 is in Deny", || async {
        let verdict = cluster.dry_run("two-0", &privileged("another")).await;
        verdict.denial().map(drop).ok_or_else(|| format!("{verdict:?}"))
    })
    .await?;
    // What the first denies stays denied while the second is promoted, and while no controller runs.
    let denied = Watch::start(cluster, "two-0", privileged("another"), false);
    let admitted = Watch::start(cluster, "two-2", privileged("another"), true);
    let complying = Watch::start(cluster, "two-0", restricted("another"), true);

    let text = printed(cluster, &["rollout", "resume", strict]).await?;
    ensure!(text.contains(&format!("rollout of profile {strict} resumed")), "{text}");
    wait_rollout(cluster, strict, "one is promoted", |status| status.promoted >= 1).await?;
    // Between two promotions, or after them all: whatever this process was at, the next one goes on.
    cluster.restart_controller(Cluster::options()?).await?;
    wait_rolled_out(cluster, strict, "Held").await?;
    let expected = [("two-0", [Some("Deny"), Some("Deny")]), ("two-1", [Some("Deny"), None]), ("two-2", [None, None])];
    check(cluster, expected).await?;
    let status = printed(cluster, &["rollout", "status", strict]).await?;
    ensure!(status.contains("two-1 ") && status.contains("two-2 ") && status.contains("2 held"), "{status}");
    let status: Json = serde_json::from_str(&printed(cluster, &["rollout", "status", baseline, "-o", "json"]).await?)?;
    ensure!(status["held"] == 1 && status["heldNamespaces"][0]["name"] == "two-2", "{status}");
    denied.finish("a violation in a namespace in Deny, while another profile is rolled out").await?;
    complying.finish("a pod that complies with both profiles").await?;

    commands(cluster, strict).await?;
    admitted.finish("a violation in a namespace that both hold").await?;
    permit(cluster, "delete")?;
    for profile in PROFILES {
        cluster.delete_profile(profile).await?;
    }
    Ok(())
}

async fn check(cluster: &Cluster, expected: [(&str, [Option<&str>; 2]); 3]) -> TestResult {
    for (namespace, expected) in expected {
        let found = labels(cluster, namespace).await?;
        let found = found.each_ref().map(Option::as_deref);
        ensure!(found == expected, "{namespace}: {found:?}, not {expected:?}");
    }
    Ok(())
}

/// Pause, retry and promote change one profile's rollout, and nothing of the other's.
async fn commands(cluster: &Cluster, strict: &str) -> TestResult {
    printed(cluster, &["rollout", "pause", strict]).await?;
    wait_rolled_out(cluster, strict, "Paused").await?;
    cluster.kubectl(&["delete", "pod", "plain", "-n", "two-1", "--grace-period=0", "--force"])?;
    let text = printed(cluster, &["rollout", "retry", strict, "two-1"]).await?;
    ensure!(text.contains("namespace two-1 will be evaluated again"), "{text}");
    wait_rollout(cluster, strict, "one to judge", |status| status.phase == RolloutPhase::Paused && status.pending == 1)
        .await?;
    printed(cluster, &["rollout", "resume", strict]).await?;
    wait_rollout(cluster, strict, "two are promoted", |status| status.promoted == 2 && status.held == 1).await?;
    let text = printed(cluster, &["rollout", "promote", strict, "two-2", "--stage", "Warn"]).await?;
    ensure!(text.contains("namespace two-2 is at stage Warn"), "{text}");
    // Warn is not where the waves take it: it is judged, and held again.
    wait_rollout(cluster, strict, "held again", |status| status.held == 1 && status.pending == 0).await?;
    let expected = [
        ("two-0", [Some("Deny"), Some("Deny")]),
        ("two-1", [Some("Deny"), Some("Deny")]),
        ("two-2", [None, Some("Warn")]),
    ];
    check(cluster, expected).await?;
    let none = palisade(cluster, &["rollout", "promote", strict, "no-such-namespace"]).await?;
    ensure!(none.code == 2 && none.err.contains("no-such-namespace"), "{}: {}{}", none.code, none.out, none.err);
    Ok(())
}
