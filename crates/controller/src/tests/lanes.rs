//! Lanes of one profile while others, or some of its namespaces, fail. The clock is the test's.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::{
    BINDINGS, POLICIES,
    mock::{RecordedRequest, Respond},
    path, profile, setup,
};
use crate::{
    lanes::{health::Heartbeat, lane::Lane},
    object_name::ProfileName,
    queue::Requeue,
};

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
async fn restores_object_deleted_during_write() {
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
                cx.metrics.writes.drifted(if profile.as_str() == "bad" { "bad" } else { "good" });
                assert!(profile.as_str() != "bad", "a bug");
                Requeue::Change
            })
        },
    );
    let count = |kind: &str| {
        let text = setup.cx.metrics.text().unwrap();
        let line =
            text.lines().find(|line| line.starts_with(&format!("palisade_drift_repaired_total{{kind=\"{kind}\"}}")));
        line.and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
    };
    setup.cx.queues.reconcile.trigger(["bad", "good"].map(ProfileName::new));
    setup.until("the other", |_| count("good") == 1).await;
    setup.until("again", |_| count("bad") == 2).await;
    assert!(start.elapsed() >= Duration::from_secs(9));
    assert!(!setup.cx.stop.is_cancelled());
}
