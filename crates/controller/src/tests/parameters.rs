//! Parameters of namespaces: their order, failed writes, and deletion. The clock is the test's.

use std::time::Duration;

use kube::runtime::watcher::Event;
use serde_json::json;

use super::{POLICIES, PROFILES, mock::Respond, params_path, path, setup};
use crate::api_request::PARAMS_RETENTION;

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
async fn parameters_of_an_unselected_namespace_are_deleted_after_a_delay() {
    let setup = setup(3);
    setup.run();
    setup.write("tools", 1, 100);
    setup.in_force("tools", 1).await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mut left = super::namespace("n1");
    left.metadata.labels = None;
    let concerned = setup.cx.store.observe_namespace(Event::Apply(left));
    setup.cx.queues.params.trigger(concerned);
    let gone = params_path("tools", "n1");
    let took = setup.until("deleted", |mock| mock.get(&gone).is_none()).await;
    assert!(took >= Duration::from_secs(2), "deleted after {took:?}");
    assert!(setup.mock.get(&params_path("tools", "n0")).is_some());
}

#[tokio::test(start_paused = true)]
async fn parameters_without_a_namespace_are_removed_unless_it_is_new() {
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
    assert!(took.await >= PARAMS_RETENTION);
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(setup.mock.get(&params_path("tools", "new")).is_some());
    setup.add_namespace("new");
    tokio::time::sleep(Duration::from_mins(5)).await;
    assert!(setup.mock.get(&params_path("tools", "new")).is_some());
}
