//! Rollouts.

use std::sync::Arc;

use palisade_api::names;
use serde_json::{Value as Json, json};

use super::{Setup, profile};
use crate::{
    lanes::{health::Heartbeat, lane::Lane},
    rollout,
};

fn with_rollout(generation: i64, patch: &Json) -> Json {
    let mut profile = profile("tools", generation, 10);
    let enforcement = json!({"pods": "Audit", "workloads": "Off", "namespaceStages": "ByLabel"});
    palisade_kube_json::pod::merge(
        &mut profile,
        &json!({"spec": {"enforcement": enforcement, "rollout": {"waves": [{"percent": 100}]}}}),
    );
    palisade_kube_json::pod::merge(&mut profile, patch);
    profile
}

#[tokio::test(start_paused = true)]
async fn a_rollout_waits_until_pods_are_mutated() {
    let setup = Setup::new(&["a", "b"]);
    for name in ["a", "b"] {
        setup.mock.put(&format!("/api/v1/namespaces/{name}"), json!(super::namespace(name)));
    }
    setup.run();
    Lane::start(&setup.cx, "rollouts", &setup.cx.queues.rollouts, &Arc::new(Heartbeat::new()), rollout::work);
    let label = names::stage_label("tools");
    let promoted = |name: &str| {
        let namespace = setup.mock.get(&format!("/api/v1/namespaces/{name}"));
        namespace.is_some_and(|namespace| namespace["metadata"]["labels"][&label] == "Deny")
    };
    let says = |wanted: &str| {
        let status = setup.mock.get("/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles/tools/status");
        status.is_some_and(|it| it["status"]["rollout"]["message"].as_str().is_some_and(|text| text.contains(wanted)))
    };

    // No engine mutates pods here: this API server stores objects unchanged.
    setup.observe(&with_rollout(1, &json!({"spec": {"mutation": {"defaults": "Secure"}}})));
    setup.until("the rollout waits", |_| says("until an engine is observed mutating pods")).await;
    assert!(!promoted("a") && !promoted("b"));
    setup.observe(&with_rollout(2, &json!({})));
    setup.until("both are promoted", |_| promoted("a") && promoted("b")).await;
}

#[tokio::test(start_paused = true)]
async fn new_generation_evaluates_held_namespaces_immediately() {
    let setup = Setup::new(&["a"]);
    let path = "/api/v1/namespaces/a";
    setup.mock.put(path, json!(super::namespace("a")));
    let pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "a"},
        "spec": {"hostNetwork": true, "containers": [{"name": "c", "image": "x"}]},
    });
    setup.mock.put("/api/v1/namespaces/a/pods/x", pod);
    setup.run();
    Lane::start(&setup.cx, "rollouts", &setup.cx.queues.rollouts, &Arc::new(Heartbeat::new()), rollout::work);
    let annotation = names::rollout_annotation("tools");
    let held = |generation: i64| {
        let namespace = setup.mock.get(path).unwrap_or_default();
        let text = namespace["metadata"]["annotations"][&annotation].as_str().unwrap_or_default().to_owned();
        text.starts_with(&format!("Violations: by generation {generation}: ")) && text.contains("[hostNamespaces]")
    };
    let forbidden = json!({"spec": {"users": null, "host": {"network": false}, "baseline": "Privileged"}});
    setup.observe(&with_rollout(1, &forbidden));
    setup.until("it is held", |_| held(1)).await;
    setup.observe(&with_rollout(2, &forbidden));
    let again = setup.until("it is held by the new generation", |_| held(2)).await;
    setup.observe(&with_rollout(3, &json!({"spec": {"users": null, "baseline": "Privileged"}})));
    let promoted = setup
        .until("it is promoted", |mock| {
            let namespace = mock.get(path).unwrap_or_default();
            namespace["metadata"]["labels"][&names::stage_label("tools")] == "Deny"
        })
        .await;
    let most = std::time::Duration::from_mins(1);
    assert!(again < most && promoted < most, "{again:?} {promoted:?}");
}
