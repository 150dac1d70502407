//! The reconciliation of one profile while others, or some of its namespaces, fail. The clock is the test's.

use std::time::Duration;

use http::Method;
use kube::runtime::watcher::Event;
use palisade_api::names::{self, Part, Shape};
use serde_json::json;
use tokio::time::Instant;

use super::{
    BINDINGS, POLICIES, PROFILES, Setup,
    mock::{RecordedRequest, Respond},
    params_path, path, profile,
};
use crate::{
    api_request::LINGER,
    lanes::{health::Heartbeat, lane::Lane},
    queue::Next,
};

fn names_of(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("n{n}")).collect()
}

fn setup(namespaces: usize) -> Setup {
    let names = names_of(namespaces);
    Setup::new(&names.iter().map(String::as_str).collect::<Vec<_>>())
}

/// True if the object of a request is of a generation.
fn is_of_generation(asked: &RecordedRequest, generation: i64) -> bool {
    asked.body["metadata"]["annotations"][names::GENERATION_ANNOTATION].as_str()
        == Some(generation.to_string().as_str())
}

#[tokio::test(start_paused = true)]
async fn repair_is_not_delayed_by_hanging_requests() {
    let setup = setup(40);
    setup.run();
    setup.write("healthy", 1, 100);
    setup.in_force("healthy", 1).await;
    // From here on, whatever else is asked is never answered: parameters, probes, statuses, dry runs, revisions.
    setup.mock.rule(|asked| {
        let restored = asked.path.contains("palisade-healthy-") && !asked.is_dry_run() && !asked.is_of("namespaces");
        if restored { Respond::Normally } else { Respond::Never }
    });
    for broken in 0..25 {
        setup.write(&format!("broken-{broken}"), 1, 100);
        setup.add_namespace(&format!("new-{broken}"));
    }
    // And a new generation of its own waits for parameters that hang.
    let mut next = profile("healthy", 2, 100);
    next["spec"]["overrides"] = json!([{"namespaces": ["n1"], "parameters": {"uid": 7}}]);
    setup.observe(&next);
    tokio::time::sleep(Duration::from_secs(2)).await;
    for kind in [BINDINGS, POLICIES] {
        for _ in 0..3 {
            setup.delete(kind, "healthy");
            let took = setup.in_force("healthy", 1).await;
            assert!(took < Duration::from_millis(200), "{kind} was back after {took:?}");
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_deleted_while_the_answer_to_its_write_is_under_way_is_restored() {
    for kind in [BINDINGS, POLICIES] {
        let setup = setup(1);
        let is_late = move |asked: &RecordedRequest| asked.path == path(kind, "tools") && asked.is_write();
        setup.mock.rule(
            move |asked| {
                if is_late(asked) { Respond::Late(Duration::from_millis(100)) } else { Respond::Normally }
            },
        );
        setup.run();
        setup.write("tools", 1, 100);
        let at = path(kind, "tools");
        setup.until("it is written", |mock| mock.get(&at).is_some()).await;
        setup.show(kind, "tools");
        setup.delete(kind, "tools");
        setup.mock.rule(|_| Respond::Normally);
        setup.until("it is restored", |mock| mock.get(&at).is_some()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn new_namespace_is_served_before_the_backlog() {
    let setup = setup(1000);
    setup.mock.rule(|asked| {
        if asked.is_of("toolsecurityparams") { Respond::After(Duration::from_millis(100)) } else { Respond::Normally }
    });
    setup.run();
    setup.write("a", 1, 100);
    setup.write("b", 1, 100);
    for name in ["a", "b"] {
        let first = params_path(name, "n0");
        setup.until("the first parameters", |mock| mock.get(&first).is_some()).await;
    }
    setup.add_namespace("new");
    let new = ["a", "b"].map(|name| params_path(name, "new"));
    let took = setup.until("parameters", |mock| new.iter().all(|path| mock.get(path).is_some())).await;
    assert!(took < Duration::from_millis(500), "parameters after {took:?}");
    assert!(setup.mock.get(&params_path("a", "n999")).is_none(), "the others were written first");
    // Parameters come first when something is new.
    assert!(setup.mock.get(&path(POLICIES, "a")).is_none());
}

#[tokio::test(start_paused = true)]
async fn failing_namespace_is_reported_but_sets_no_condition_false() {
    let setup = setup(10);
    let (hangs, refused) = (params_path("tools", "n3"), params_path("tools", "n5"));
    let at = [hangs.clone(), refused.clone()];
    setup.mock.rule(move |asked| match at.iter().position(|path| *path == asked.path) {
        Some(0) => Respond::Never,
        Some(_) => Respond::Error(422),
        None => Respond::Normally,
    });
    setup.run();
    setup.write("tools", 1, 100);
    let took = setup.in_force("tools", 1).await;
    assert!(took < Duration::from_secs(6), "in force after {took:?}");
    let (status, _) = setup.condition("tools", "Programmed", "Programmed").await;
    assert_eq!(status, "True");
    // Asking goes on: here there is no namespace to ask in.
    let (status, _) = setup.condition("tools", "Enforced", "ProbeFailed").await;
    assert_eq!(status, "Unknown");
    let at = format!("{PROFILES}/tools/status");
    setup.until("both counted", |mock| mock.get(&at).unwrap()["status"]["namespaces"]["failed"] == 2).await;
    let status = setup.mock.get(&at).unwrap();
    let failed = status["status"]["failedNamespaces"].as_array().unwrap();
    assert_eq!([&failed[0]["name"], &failed[1]["name"]], ["n3", "n5"]);
    assert_eq!(
        status["status"]["namespaces"],
        json!({"summary": "8/10", "selected": 10, "ready": 8, "failed": 2, "byStage": {"deny": 10, "warn": 0, "audit": 0}})
    );
    let (status, message) = setup.condition("tools", "Programmed", "Programmed").await;
    assert_eq!(status, "True");
    assert!(message.contains("the parameters of 2 namespaces could not be written"), "{message}");
    // And when they can be written, they are.
    setup.mock.rule(|_| Respond::Normally);
    setup.until("written", |mock| mock.get(&hangs).is_some() && mock.get(&refused).is_some()).await;
    setup.until("none counted", |mock| mock.get(&at).unwrap()["status"]["namespaces"]["ready"] == 10).await;
}

#[tokio::test(start_paused = true)]
async fn rejected_generation_keeps_the_last_good_bundle() {
    let (policies, bindings) = ("validatingadmissionpolicies", "validatingadmissionpolicybindings");
    for (code, kind) in [(400, policies), (403, bindings), (413, policies), (422, bindings)] {
        let setup = setup(3);
        setup.run();
        setup.write("tools", 1, 100);
        setup.in_force("tools", 1).await;
        setup.condition("tools", "Programmed", "Programmed").await;
        setup.mock.rule(move |asked| {
            if asked.is_of(kind) && is_of_generation(asked, 2) { Respond::Error(code) } else { Respond::Normally }
        });
        setup.mock.asked();
        // Another value of the parameter, so that something would be written.
        let mut next = profile("tools", 2, 200);
        next["spec"]["overrides"] = json!([{"namespaces": ["n1"], "parameters": {"uid": 7}}]);
        setup.observe(&next);
        let (status, message) = setup.condition("tools", "Accepted", "RefusedByApiServer").await;
        assert_eq!(status, "False");
        assert!(message.contains(&format!("the mock says {code}")), "{message}");
        let (status, message) = setup.condition("tools", "Programmed", "LastGoodInForce").await;
        assert_eq!((status.as_str(), message.contains("generation 1")), ("False", true), "{message}");
        // Not even its parameters.
        let written = setup.mock.writes();
        let generated =
            |path: &&String| path.contains("/toolsecurityparams/") || path.contains("admissionregistration");
        assert_eq!(written.iter().find(generated), None, "{code} {kind}");
        setup.delete(POLICIES, "tools");
        setup.in_force("tools", 1).await;
        // It is asked again, and when it is taken, it is in force.
        setup.mock.rule(|_| Respond::Normally);
        setup.in_force("tools", 2).await;
        assert_eq!(setup.mock.get(&params_path("tools", "n1")).unwrap()["spec"]["integers"]["uid"], 7);
    }
}

#[tokio::test(start_paused = true)]
async fn a_generation_rejected_midway_is_rolled_back() {
    let setup = setup(3);
    setup.run();
    setup.write("tools", 1, 100);
    setup.in_force("tools", 1).await;
    // The dry run is answered well, and the policy is taken.
    setup.mock.rule(|asked| {
        let binding = asked.is_of("validatingadmissionpolicybindings") && !asked.is_dry_run();
        if binding && is_of_generation(asked, 2) { Respond::Error(403) } else { Respond::Normally }
    });
    let mut next = profile("tools", 2, 200);
    next["spec"]["overrides"] = json!([{"namespaces": ["n1"], "parameters": {"uid": 7}}]);
    setup.observe(&next);
    setup.condition("tools", "Accepted", "RefusedByApiServer").await;
    setup.in_force("tools", 1).await;
    let params = params_path("tools", "n1");
    setup.until("its parameters", |mock| mock.get(&params).unwrap()["spec"]["integers"]["uid"] == 50001).await;
}

#[tokio::test(start_paused = true)]
async fn a_policy_denies_until_the_one_that_takes_over_is_shown_to_deny() {
    let setup = Setup::new(&["n0", names::PROBE_NAMESPACE]);
    setup.run();
    let denies = |policy: &str| {
        let actions = setup.mock.get(&format!("{BINDINGS}/{policy}"))?["spec"]["validationActions"].clone();
        Some(actions == json!(["Deny"]))
    };
    let write = |generation, enforcement| {
        let mut profile = profile("tools", generation, 100);
        profile["spec"]["enforcement"] = enforcement;
        setup.observe(&profile);
    };
    let (own, none) = (json!({"pods": "Audit", "checks": {"privileged": "Deny"}}), json!({"pods": "Deny"}));
    let [of_shape, of_checks] =
        [Part::from(Shape::Pods), Part::Checks(Shape::Pods)].map(|part| names::policy("tools", part));
    let (of_shape, of_checks) = (&of_shape, &of_checks);
    write(1, own.clone());
    setup.condition("tools", "Programmed", "Programmed").await;
    assert_eq!((denies(of_shape), denies(of_checks)), (Some(false), Some(true)));
    for (generation, enforcement, first, second, left) in
        [(2, none, of_shape, of_checks, None), (3, own, of_checks, of_shape, Some(false))]
    {
        // The API server does not read the new policy.
        setup.mock.rule(|_| Respond::Normally);
        write(generation, enforcement);
        setup.condition("tools", "Programmed", "ApplyFailed").await;
        tokio::time::sleep(Duration::from_mins(3)).await;
        assert_eq!((denies(first), denies(second)), (Some(true), Some(true)), "{generation}");
        let (_, message) = setup.condition("tools", "Programmed", "ApplyFailed").await;
        assert!(message.contains(&format!("does not enforce policy {first} yet")), "{message}");
        // Now it does.
        let policy = first.clone();
        setup.mock.rule(move |asked| {
            if asked.is_dry_run() && asked.is_of("pods") { Respond::Denied(policy.clone()) } else { Respond::Normally }
        });
        setup.condition("tools", "Programmed", "Programmed").await;
        assert_eq!((denies(first), denies(second)), (Some(true), left), "{generation}");
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_written_without_a_dry_run_verdict() {
    for respond in [Respond::Error(409), Respond::Error(429), Respond::Error(500), Respond::Error(503), Respond::Never]
    {
        let setup = setup(3);
        setup.run();
        setup.write("tools", 1, 100);
        setup.in_force("tools", 1).await;
        setup.condition("tools", "Programmed", "Programmed").await;
        let answer = respond.clone();
        setup.mock.rule(move |asked| {
            if asked.is_dry_run() && is_of_generation(asked, 2) { answer.clone() } else { Respond::Normally }
        });
        setup.mock.asked();
        setup.write("tools", 2, 200);
        let (status, _) = setup.condition("tools", "Programmed", "ApplyFailed").await;
        assert_eq!(status, "False", "{respond:?}");
        tokio::time::sleep(Duration::from_mins(2)).await;
        let written = setup.mock.writes();
        assert!(!written.iter().any(|path| path.contains("admissionregistration")), "{respond:?}: {written:?}");
        setup.mock.rule(|_| Respond::Normally);
        setup.in_force("tools", 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_failed_repair_is_retried_and_reported() {
    for respond in [
        Respond::Error(409),
        Respond::Error(422),
        Respond::Error(429),
        Respond::Error(500),
        Respond::After(Duration::from_secs(3)),
        Respond::Never,
    ] {
        let setup = setup(3);
        setup.run();
        setup.write("tools", 1, 100);
        setup.in_force("tools", 1).await;
        setup.condition("tools", "Programmed", "Programmed").await;
        let (answer, late) = (respond.clone(), matches!(respond, Respond::After(_)));
        setup.mock.rule(move |asked| {
            if asked.is_write() && asked.is_of("validatingadmissionpolicybindings") {
                answer.clone()
            } else {
                Respond::Normally
            }
        });
        setup.delete(BINDINGS, "tools");
        if !late {
            let (status, message) = setup.condition("tools", "Programmed", "ApplyFailed").await;
            assert_eq!(status, "False", "{respond:?}: {message}");
            setup.mock.rule(|_| Respond::Normally);
        }
        let took = setup.in_force("tools", 1).await;
        assert!(took < Duration::from_secs(20), "{respond:?}: back after {took:?}");
        setup.condition("tools", "Programmed", "Programmed").await;
    }
}

#[tokio::test(start_paused = true)]
async fn profile_is_removed_after_any_failed_request() {
    let table = [
        ("validatingadmissionpolicybindings", Method::DELETE, Respond::Error(409)),
        ("validatingadmissionpolicybindings", Method::DELETE, Respond::Never),
        ("validatingadmissionpolicies", Method::DELETE, Respond::Error(429)),
        ("toolsecurityparams", Method::DELETE, Respond::Error(500)),
        ("toolsecurityparams", Method::DELETE, Respond::Never),
        ("controllerrevisions", Method::DELETE, Respond::Never),
        ("toolsecurityprofiles", Method::PATCH, Respond::Error(409)),
        ("toolsecurityprofiles", Method::PATCH, Respond::Error(500)),
    ];
    for (kind, method, respond) in table {
        let setup = setup(5);
        setup.run();
        setup.write("tools", 1, 100);
        setup.in_force("tools", 1).await;
        let (answer, stage) = (respond.clone(), method.clone());
        setup.mock.rule(
            move |asked| if asked.method == stage && asked.is_of(kind) { answer.clone() } else { Respond::Normally },
        );
        let mut deleted = profile("tools", 1, 100);
        deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
        setup.observe(&deleted);
        tokio::time::sleep(Duration::from_mins(2)).await;
        let finalizers = |setup: &Setup| {
            let profile = setup.mock.get(&format!("{PROFILES}/tools")).unwrap();
            profile["metadata"]["finalizers"].as_array().map_or(0, Vec::len)
        };
        assert_eq!(finalizers(&setup), 1, "{kind} {respond:?}: it was let go too early");
        setup.mock.rule(|_| Respond::Normally);
        setup.until("let go", |_| finalizers(&setup) == 0).await;
        for left in [path(POLICIES, "tools"), path(BINDINGS, "tools"), params_path("tools", "n4")] {
            assert!(setup.mock.get(&left).is_none(), "{kind} {respond:?}: {left} is left");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn hanging_delete_does_not_block_others() {
    let setup = setup(30);
    setup.run();
    for name in ["tools", "other"] {
        setup.write(name, 1, 100);
        setup.in_force(name, 1).await;
    }
    let hangs = params_path("tools", "n0");
    setup.mock.rule(move |asked| {
        if asked.method == Method::DELETE && asked.path == hangs { Respond::Never } else { Respond::Normally }
    });
    let mut deleted = profile("tools", 1, 100);
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    setup.observe(&deleted);
    let others: Vec<_> = (1..30).map(|n| params_path("tools", &format!("n{n}"))).collect();
    let took = setup.until("the others deleted", |mock| others.iter().all(|path| mock.get(path).is_none())).await;
    assert!(took < Duration::from_secs(15), "the others were deleted after {took:?}");
    setup.delete(BINDINGS, "other");
    assert!(setup.in_force("other", 1).await < Duration::from_millis(200));
}

#[tokio::test(start_paused = true)]
async fn parameters_of_an_unselected_namespace_are_deleted_after_a_delay() {
    let setup = setup(3);
    setup.run();
    setup.write("tools", 1, 100);
    setup.in_force("tools", 1).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut left = super::namespace("n1");
    left.metadata.labels = None;
    let concerned = setup.cx.store.observe_namespace(kube::runtime::watcher::Event::Apply(left));
    setup.cx.queues.params.trigger(concerned);
    let gone = params_path("tools", "n1");
    let took = setup.until("deleted", |mock| mock.get(&gone).is_none()).await;
    assert!(took >= Duration::from_secs(2), "deleted after {took:?}");
    assert!(setup.mock.get(&params_path("tools", "n0")).is_some());
}

#[tokio::test(start_paused = true)]
async fn a_panic_for_one_profile_does_not_affect_others() {
    let setup = setup(0);
    let start = Instant::now();
    Lane::start(
        &setup.cx,
        "test",
        &setup.cx.queues.reconcile,
        &std::sync::Arc::new(Heartbeat::new()),
        |cx, profile| {
            Box::pin(async move {
                cx.metrics.drifted(if profile == "bad" { "bad" } else { "good" });
                assert!(profile != "bad", "a bug");
                Next::Change
            })
        },
    );
    let count = |kind: &str| {
        let text = setup.cx.metrics.text().unwrap();
        let line =
            text.lines().find(|line| line.starts_with(&format!("palisade_drift_repaired_total{{kind=\"{kind}\"}}")));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    };
    setup.cx.queues.reconcile.trigger(["bad".to_owned(), "good".to_owned()]);
    setup.until("the other", |_| count("good") == 1).await;
    setup.until("again", |_| count("bad") == 2).await;
    assert!(start.elapsed() >= Duration::from_secs(9));
    assert!(!setup.cx.stop.is_cancelled());
}

#[tokio::test(start_paused = true)]
async fn parameters_without_a_namespace_are_removed_unless_it_is_only_not_shown_yet() {
    let setup = setup(1);
    setup.run();
    setup.write("tools", 1, 100);
    setup.in_force("tools", 1).await;
    let right = setup.mock.get(&params_path("tools", "n0")).unwrap();
    for namespace in ["gone", "new"] {
        let mut left = right.clone();
        left["metadata"]["namespace"] = namespace.into();
        setup.mock.put(&params_path("tools", namespace), left.clone());
        if namespace == "new" {
            setup.mock.put("/api/v1/namespaces/new", json!({"metadata": {"name": namespace}}));
        }
        let concerned = setup.cx.store.observe_params(Event::Apply(serde_json::from_value(left).unwrap()));
        setup.cx.queues.params.trigger(concerned);
    }
    let took = setup.until("those of no namespace are gone", |mock| mock.get(&params_path("tools", "gone")).is_none());
    assert!(took.await >= LINGER);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(setup.mock.get(&params_path("tools", "new")).is_some());
    setup.add_namespace("new");
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(setup.mock.get(&params_path("tools", "new")).is_some());
}
