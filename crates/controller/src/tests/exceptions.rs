//! The controller's status of exception requests. The clock is the test's.

use std::time::Duration;

use kube::{core::DeserializeGuard, runtime::watcher::Event};
use palisade_api::ToolSecurityException;
use serde_json::{Value as Json, json};

use super::{
    Setup,
    mock::{Mock, Respond},
    params_path, profile,
};

const STATUS: &str = "/apis/toolsecurity.dev/v1alpha1/namespaces/a/toolsecurityexceptions/driver/status";

fn exception(approval: &Json) -> Json {
    json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException",
        "metadata": {"name": "driver", "namespace": "a", "uid": "u", "generation": 1, "resourceVersion": "7"},
        "spec": {
            "profile": "tools", "checks": ["privileged"], "scope": {"kind": "Deployment", "name": "encoder"},
            "reason": "x", "expires": "2999-01-01T00:00:00Z",
        },
        "status": {"approval": approval},
    })
}

/// The API server has an exception, and the watch shows it.
fn show(setup: &Setup, exception: &Json) {
    setup.mock.put(STATUS, exception.clone());
    show_only(setup, exception);
}

fn show_only(setup: &Setup, exception: &Json) {
    let read: DeserializeGuard<ToolSecurityException> = serde_json::from_value(exception.clone()).unwrap();
    let concerned = setup.cx.store.exceptions.observe(Event::Apply(read));
    setup.cx.queues.exceptions.trigger(concerned.namespaces);
    for (profile, namespaces) in concerned.profiles {
        for namespace in &namespaces {
            setup.cx.store.touch(&profile, namespace);
        }
        setup.cx.queues.params.trigger([profile]);
    }
}

fn condition(mock: &Mock, type_: &str) -> Option<Json> {
    let found = mock.get(STATUS)?;
    found["status"]["conditions"].as_array()?.iter().find(|one| one["type"] == type_).cloned()
}

/// Waits until it is in effect, or is not, for this reason.
async fn state(setup: &Setup, reason: &str) -> Duration {
    let found = |mock: &Mock| condition(mock, "Ready").is_some_and(|ready| ready["reason"] == reason);
    setup.until(&format!("state {reason}"), found).await
}

fn asked_for() -> Json {
    let mut profile = profile("tools", 1, 100);
    profile["spec"]["exceptionRequests"] = json!({"checks": ["privileged"]});
    profile
}

#[tokio::test(start_paused = true)]
async fn state_of_an_exception_is_reported_and_never_an_approval() {
    let setup = Setup::new(&["a", "b"]);
    setup.run();
    show(&setup, &exception(&Json::Null));
    state(&setup, "ProfileNotFound").await;
    let of = |type_: &str| condition(&setup.mock, type_).unwrap();
    assert_eq!(of("Ready")["message"], "ToolSecurityProfile tools does not exist");
    assert_eq!(
        [&of("Ready")["status"], &of("Stalled")["status"], &of("Approved")["status"]],
        ["False", "True", "False"]
    );
    setup.observe(&asked_for());
    state(&setup, "AwaitingApproval").await;
    assert_eq!([&of("Stalled")["status"], &of("Approved")["reason"]], ["False", "AwaitingApproval"]);
    setup.in_force("tools", 1).await;
    let at = params_path("tools", "a");
    assert_eq!(setup.mock.get(&at).unwrap()["spec"]["workloadExceptions"], Json::Null);

    let mut approved = exception(&json!({"uid": "u", "generation": 1}));
    approved["metadata"]["resourceVersion"] = "1000000".into();
    show(&setup, &approved);
    state(&setup, "InForce").await;
    assert_eq!(
        [&of("Ready")["status"], &of("Stalled")["status"], &of("Approved")["status"]],
        ["True", "False", "True"]
    );
    assert_eq!(of("Ready")["observedGeneration"], 1);
    assert_eq!(condition(&setup.mock, "InUse"), None, "the background scan has not run");
    let written = json!({"Deployment/encoder": {"privileged": "2999-01-01T00:00:00Z"}});
    setup.until("parameters", |mock| mock.get(&at).unwrap()["spec"]["workloadExceptions"] == written).await;
    let elsewhere = setup.mock.get(&params_path("tools", "b")).unwrap();
    assert_eq!(elsewhere["spec"]["workloadExceptions"], Json::Null);
    for request in setup.mock.asked().iter().filter(|request| request.path == STATUS) {
        assert!(request.body["status"].get("approval").is_none(), "{}", request.body);
        assert_eq!(request.body["metadata"], json!({"uid": "u"}));
    }
}

#[tokio::test(start_paused = true)]
async fn an_approval_is_not_lost_if_conditions_are_written_right_after_it() {
    let setup = Setup::new(&["a"]);
    setup.run();
    setup.observe(&asked_for());
    setup.in_force("tools", 1).await;
    // The API server has the approval already, and the watch is late.
    setup.mock.put(STATUS, exception(&json!({"uid": "u", "generation": 1})));
    show_only(&setup, &exception(&Json::Null));
    state(&setup, "AwaitingApproval").await;
    show_only(&setup, &setup.mock.get(STATUS).unwrap());
    let at = params_path("tools", "a");
    let has = |mock: &Mock| mock.get(&at).is_some_and(|it| it["spec"]["workloadExceptions"].is_object());
    setup.until("parameters", has).await;
    state(&setup, "InForce").await;
}

#[tokio::test(start_paused = true)]
async fn an_exception_is_in_force_when_its_parameters_are_written() {
    let setup = Setup::new(&["a"]);
    let at = params_path("tools", "a");
    let exception_in = |body: &Json| body["spec"]["workloadExceptions"].is_object();
    setup.mock.rule(move |asked| {
        if asked.path == at && exception_in(&asked.body) { Respond::Error(500) } else { Respond::Normally }
    });
    setup.run();
    setup.observe(&asked_for());
    setup.in_force("tools", 1).await;
    show(&setup, &exception(&json!({"uid": "u", "generation": 1})));
    state(&setup, "Pending").await;
    let ready = condition(&setup.mock, "Ready").unwrap();
    assert_eq!([&ready["status"], &condition(&setup.mock, "Approved").unwrap()["status"]], ["False", "True"]);
    setup.mock.rule(|_| Respond::Normally);
    state(&setup, "InForce").await;
}

#[tokio::test(start_paused = true)]
async fn emits_expiry_event_once() {
    let setup = Setup::new(&["a"]);
    setup.run();
    setup.observe(&asked_for());
    setup.in_force("tools", 1).await;
    let mut over = exception(&json!({"uid": "u", "generation": 1}));
    over["spec"]["expires"] = "2026-01-01T00:00:00Z".into();
    show(&setup, &over);
    state(&setup, "Expired").await;
    let events = |mock: &Mock| {
        let said = |body: &Json| body["reason"] == "Expired" && body["regarding"]["name"] == "driver";
        mock.asked().iter().filter(|asked| asked.path.ends_with("/events") && said(&asked.body)).count()
    };
    setup.until("an event", |mock| events(mock) == 1).await;
    // An event of an earlier process is not repeated.
    let mut known = setup.mock.get(STATUS).unwrap();
    known["metadata"]["resourceVersion"] = "1000000".into();
    known["status"]["conditions"][0]["message"] = "another client wrote this".into();
    show(&setup, &known);
    setup.until("mended", |mock| condition(mock, "Approved").is_some_and(|one| one["message"] == "")).await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(events(&setup.mock), 0);
}

#[tokio::test(start_paused = true)]
async fn state_that_cannot_be_written_is_written_later_and_delays_no_parameters() {
    let setup = Setup::new(&["a"]);
    setup.mock.rule(|asked| if asked.path == STATUS { Respond::Error(500) } else { Respond::Normally });
    setup.run();
    setup.observe(&asked_for());
    setup.in_force("tools", 1).await;
    show(&setup, &exception(&json!({"uid": "u", "generation": 1})));
    let at = params_path("tools", "a");
    let has = |mock: &Mock| mock.get(&at).is_some_and(|it| it["spec"]["workloadExceptions"].is_object());
    let took = setup.until("parameters", has).await;
    assert!(took < Duration::from_secs(1), "{took:?}");
    setup.mock.rule(|_| Respond::Normally);
    let took = state(&setup, "InForce").await;
    assert!(took < Duration::from_secs(15), "{took:?}");
}
