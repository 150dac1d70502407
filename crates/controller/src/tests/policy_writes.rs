//! How often policies are written. On API servers that can exit while they compile a policy, writes are in rounds. The
//! clock is the test's.

use std::{collections::BTreeMap, time::Duration};

use http::Method;
use palisade_api::names;
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use super::{
    BINDINGS, POLICIES, PROFILES, Setup,
    mock::{Mock, Respond},
    params_path, path, profile,
};
use crate::{
    generated::compare::needs_compilation,
    lanes::{health::Heartbeat, lane::Lane},
    rollout,
};

const PENDING: &str = "the policies will be written within 30 s";

/// How often each policy was written since the last time, by name.
fn policy_writes(mock: &Mock) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for asked in mock.asked() {
        if asked.is_write() && asked.is_of("validatingadmissionpolicies") {
            *counts.entry(asked.path.rsplit('/').next().unwrap().to_owned()).or_default() += 1;
        }
    }
    counts
}

/// Each policy in the cluster, once.
fn each_once(mock: &Mock) -> BTreeMap<String, usize> {
    let name = |policy: Json| policy["metadata"]["name"].as_str().unwrap().to_owned();
    mock.list("validatingadmissionpolicies").into_iter().map(|policy| (name(policy), 1)).collect()
}

/// API servers of this minor version.
fn serve(setup: &Setup, minor: &str) {
    setup.mock.put("/version", json!({"major": "1", "minor": minor}));
}

/// A profile with policies for pods and for workloads.
fn with_workloads(name: &str, generation: i64, max: i64) -> Json {
    let mut profile = profile(name, generation, max);
    profile["spec"]["enforcement"] = json!({"pods": "Deny", "workloads": "Deny"});
    profile
}

#[tokio::test(start_paused = true)]
async fn policies_are_written_only_if_they_differ() {
    for minor in ["33", "36"] {
        let setup = Setup::new(&["n0", "n1"]);
        serve(&setup, minor);
        setup.run();
        setup.observe(&with_workloads("tools", 1, 100));
        setup.condition("tools", "Programmed", "Programmed").await;
        let written = policy_writes(&setup.mock);
        assert!(written.len() >= 2, "{written:?}");
        assert_eq!(written, each_once(&setup.mock), "new profile, 1.{minor}");

        for new in ["new-0", "new-1", "new-2"] {
            setup.add_namespace(new);
            setup.until("its parameters", |mock| mock.get(&params_path("tools", new)).is_some()).await;
        }
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(policy_writes(&setup.mock), BTreeMap::new(), "new namespaces, 1.{minor}");

        setup.cx.stop.cancel();
        let setup = setup.restarted(&["n0", "n1", "new-0", "new-1", "new-2"]);
        setup.run();
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(policy_writes(&setup.mock), BTreeMap::new(), "restart, 1.{minor}");

        setup.observe(&with_workloads("tools", 2, 200));
        setup.in_force("tools", 2).await;
        tokio::time::sleep(Duration::from_mins(10)).await;
        assert_eq!(policy_writes(&setup.mock), each_once(&setup.mock), "edit, 1.{minor}");

        setup.delete(POLICIES, "tools");
        setup.in_force("tools", 2).await;
        let restored = [("palisade-tools-pods".to_owned(), 1)].into();
        assert_eq!(policy_writes(&setup.mock), restored, "restored, 1.{minor}");
        setup.cx.stop.cancel();
    }
}

#[tokio::test(start_paused = true)]
async fn a_rollout_writes_no_policy() {
    let setup = Setup::new(&["a", "b"]);
    serve(&setup, "33");
    for name in ["a", "b"] {
        setup.mock.put(&format!("/api/v1/namespaces/{name}"), json!(super::namespace(name)));
    }
    setup.run();
    let heartbeat = std::sync::Arc::new(Heartbeat::new());
    let mut profile = profile("tools", 1, 100);
    profile["spec"]["enforcement"] = json!({"pods": "Audit", "workloads": "Off", "namespaceStages": "ByLabel"});
    profile["spec"]["rollout"] = json!({"waves": [{"percent": 100}]});
    setup.observe(&profile);
    setup.condition("tools", "Programmed", "Programmed").await;
    policy_writes(&setup.mock);
    Lane::start(&setup.cx, "rollouts", &setup.cx.queues.rollouts, &heartbeat, rollout::work);
    let promoted = |mock: &Mock, name| {
        let namespace = mock.get(&format!("/api/v1/namespaces/{name}")).unwrap_or_default();
        namespace["metadata"]["labels"][names::stage_label("tools")] == "Deny"
    };
    setup.until("both are promoted", |mock| ["a", "b"].into_iter().all(|name| promoted(mock, name))).await;
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert_eq!(policy_writes(&setup.mock), BTreeMap::new());
}

#[tokio::test(start_paused = true)]
async fn edits_of_all_profiles_are_written_in_rounds() {
    let setup = Setup::new(&["n0"]);
    serve(&setup, "32+");
    setup.run();
    for name in ["a", "b", "c"] {
        setup.observe(&with_workloads(name, 1, 100));
    }
    let begin = Instant::now();
    for name in ["a", "b", "c"] {
        let waits = |mock: &Mock| {
            let status = mock.get(&format!("{PROFILES}/{name}/status")).unwrap_or_default();
            let mut conditions = status["status"]["conditions"].as_array().into_iter().flatten();
            let programmed = conditions.find(|condition| condition["type"] == "Programmed");
            let message = programmed.and_then(|programmed| programmed["message"].as_str()).unwrap_or_default();
            message.contains(PENDING) && message.contains("(1.32)")
        };
        setup.until("Programmed reports the wait", waits).await;
    }
    // Parameters do not wait.
    assert!(setup.mock.get(&params_path("a", "n0")).is_some() && setup.mock.get(&path(POLICIES, "a")).is_none());
    for name in ["a", "b", "c"] {
        setup.in_force(name, 1).await;
    }
    let took = begin.elapsed();
    assert!((Duration::from_secs(4)..Duration::from_secs(6)).contains(&took), "{took:?}");
    assert_eq!(policy_writes(&setup.mock), each_once(&setup.mock));

    // Two minutes with an edit every three seconds: of `a`, and once of `b`.
    for edit in 0..40 {
        setup.observe(&with_workloads("a", 2 + edit, 200 + edit));
        if edit == 20 {
            setup.observe(&with_workloads("b", 2, 200));
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
    }
    let last = setup.in_force("a", 41).await;
    assert!(last <= Duration::from_secs(30), "{last:?}");
    let written = policy_writes(&setup.mock);
    assert_eq!(written["palisade-b-pods"], 1, "{written:?}");
    assert!((4..=5).contains(&written["palisade-a-pods"]), "{written:?}");
    assert!(!written.contains_key("palisade-c-pods"), "{written:?}");

    let (_, message) = setup.condition("a", "Programmed", "Programmed").await;
    assert!(message.contains("; warning: API servers can exit") && message.contains("(1.32)"), "{message}");
    let metric = "palisade_api_server_can_exit{server=\"the configured address\"} 1";
    assert!(setup.cx.metrics.text().unwrap().contains(metric));
}

#[tokio::test(start_paused = true)]
async fn failed_reports_do_not_prolong_the_wait() {
    for respond in [Respond::Error(422), Respond::Error(500), Respond::After(Duration::from_secs(20)), Respond::Never] {
        let setup = Setup::new(&["n0"]);
        serve(&setup, "33");
        setup.run();
        setup.observe(&with_workloads("tools", 1, 100));
        setup.in_force("tools", 1).await;
        let answer = respond.clone();
        setup.mock.rule(move |asked| if asked.path.ends_with("/status") { answer.clone() } else { Respond::Normally });
        setup.observe(&with_workloads("tools", 2, 200));
        let took = setup.in_force("tools", 2).await;
        assert!(took <= Duration::from_secs(31), "{respond:?}: {took:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn restoring_and_deleting_do_not_wait_for_a_round() {
    let setup = Setup::new(&["n0"]);
    serve(&setup, "33");
    setup.run();
    setup.observe(&with_workloads("tools", 1, 100));
    setup.in_force("tools", 1).await;
    for kind in [POLICIES, BINDINGS] {
        for _ in 0..3 {
            setup.delete(kind, "tools");
            let took = setup.in_force("tools", 1).await;
            assert!(took < Duration::from_millis(200), "{kind} was back after {took:?}");
        }
    }
    // Deleted while an edit waits.
    setup.observe(&with_workloads("tools", 2, 200));
    let mut deleted = with_workloads("tools", 3, 200);
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    tokio::time::sleep(Duration::from_secs(1)).await;
    setup.observe(&deleted);
    let took = setup.until("the bindings are deleted", |mock| mock.get(&path(BINDINGS, "tools")).is_none()).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn a_rejected_generation_is_taken_back_without_a_wait() {
    let setup = Setup::new(&["n0"]);
    serve(&setup, "33");
    setup.run();
    setup.observe(&with_workloads("tools", 1, 100));
    setup.in_force("tools", 1).await;
    setup.mock.rule(|asked| {
        let of_second = asked.body["metadata"]["annotations"][names::GENERATION_ANNOTATION] == "2";
        let binding = asked.is_of("validatingadmissionpolicybindings") && asked.is_write();
        if binding && of_second { Respond::Error(403) } else { Respond::Normally }
    });
    setup.observe(&with_workloads("tools", 2, 200));
    setup.condition("tools", "Accepted", "RefusedByApiServer").await;
    let took = setup.in_force("tools", 1).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn probes_wait_until_policies_are_compiled() {
    let setup = Setup::new(&["n0", names::PROBE_NAMESPACE]);
    serve(&setup, "33");
    setup.run();
    setup.observe(&with_workloads("tools", 1, 100));
    setup.in_force("tools", 1).await;
    let begin = Instant::now();
    setup.mock.asked();
    let probed = |mock: &Mock| {
        let asked = mock.asked();
        asked.iter().any(|asked| asked.method == Method::POST && asked.is_of("pods") && asked.is_dry_run())
    };
    setup.until("a probe", probed).await;
    let took = begin.elapsed();
    assert!((Duration::from_secs(3)..Duration::from_secs(5)).contains(&took), "{took:?}");
}

/// For each field of each policy and binding, and without each of them: API servers compile exactly the policies that
/// differ and those that had no binding.
#[tokio::test(start_paused = true)]
async fn each_difference_of_a_policy_needs_a_compilation() {
    let setup = Setup::new(&["n0"]);
    serve(&setup, "36");
    setup.run();
    setup.observe(&with_workloads("tools", 1, 100));
    setup.condition("tools", "Programmed", "Programmed").await;
    let accepted = setup.cx.states.of("tools").in_force().accepted.clone().unwrap();
    setup.cx.stop.cancel();
    let mut objects = setup.mock.list("validatingadmissionpolicies");
    objects.extend(setup.mock.list("validatingadmissionpolicybindings"));
    let bindings_of =
        |objects: &[Json], policy: &Json| objects.iter().filter(|other| other["spec"]["policyName"] == *policy).count();
    let needed = |objects: &[Json]| {
        let next = Setup::new(&["n0"]);
        for object in objects {
            let at = if object["kind"] == "ValidatingAdmissionPolicy" { POLICIES } else { BINDINGS };
            next.mock.put(&format!("{at}/{}", object["metadata"]["name"].as_str().unwrap()), object.clone());
        }
        needs_compilation(&next.restarted(&["n0"]).cx.store, "tools", &accepted)
    };
    assert!(!needed(&objects), "nothing differs");
    let mut tried = 0;
    for (i, object) in objects.iter().enumerate() {
        let of_policy = object["kind"] == "ValidatingAdmissionPolicy";
        for pointer in leaves(object, "") {
            let identity = ["/apiVersion", "/kind", "/metadata/name", "/metadata/resourceVersion"];
            if identity.contains(&pointer.as_str()) {
                continue;
            }
            let mut changed = objects.clone();
            let value = changed[i].pointer_mut(&pointer).unwrap();
            *value = match &*value {
                Json::String(text) => format!("{text}x").into(),
                Json::Bool(flag) => (!flag).into(),
                Json::Number(number) => (number.as_i64().unwrap() + 1).into(),
                other => panic!("{pointer}: {other}"),
            };
            tried += 1;
            let alone = !of_policy && bindings_of(&changed, &object["spec"]["policyName"]) == 0;
            assert_eq!(needed(&changed), of_policy || alone, "{pointer} of {}", object["metadata"]["name"]);
        }
        let mut fewer = objects.clone();
        fewer.remove(i);
        let alone = !of_policy && bindings_of(&fewer, &object["spec"]["policyName"]) == 0;
        assert_eq!(needed(&fewer), of_policy || alone, "without {}", object["metadata"]["name"]);
    }
    assert!(tried > 100, "{tried}");
}

/// The pointers to all values in an object that have no content.
fn leaves(of: &Json, at: &str) -> Vec<String> {
    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
    match of {
        Json::Object(fields) => {
            fields.iter().flat_map(|(key, value)| leaves(value, &format!("{at}/{}", escaped(key)))).collect()
        }
        Json::Array(items) => {
            items.iter().enumerate().flat_map(|(i, value)| leaves(value, &format!("{at}/{i}"))).collect()
        }
        Json::Null => Vec::new(),
        _ => vec![at.to_owned()],
    }
}
