//! Rollouts.

use std::sync::Arc;

use palisade_api::names;
use serde_json::{Value as Json, json};

use super::{Setup, profile};
use crate::{health::Heartbeat, lane::Lane, rollout};

fn with_rollout(generation: i64, patch: &Json) -> Json {
    let mut profile = profile("tools", generation, 10);
    let enforcement = json!({"pods": "Audit", "workloads": "Off", "namespaceStages": "ByLabel"});
    palisade_objects::pod::merge(
        &mut profile,
        &json!({"spec": {"enforcement": enforcement, "rollout": {"waves": [{"percent": 100}]}}}),
    );
    palisade_objects::pod::merge(&mut profile, patch);
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

    // Nobody mutates pods here: this API server stores what it is sent.
    setup.observe(&with_rollout(1, &json!({"spec": {"mutation": {"defaults": "Secure"}}})));
    setup.until("the rollout waits", |_| says("before an engine is observed mutating pods")).await;
    assert!(!promoted("a") && !promoted("b"));
    setup.observe(&with_rollout(2, &json!({})));
    setup.until("both are promoted", |_| promoted("a") && promoted("b")).await;
}
