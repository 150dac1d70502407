//! What the controller says of the exceptions that tenants ask for. The clock is the test's.

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

/// The watch shows an exception.
fn show(setup: &Setup, exception: &Json) {
    setup.mock.put(STATUS, exception.clone());
    let read: DeserializeGuard<ToolSecurityException> = serde_json::from_value(exception.clone()).unwrap();
    let concerned = setup.cx.store.asked.observe(Event::Apply(read));
    setup.cx.queues.exceptions.trigger(concerned.namespaces);
    for (profile, namespaces) in concerned.profiles {
        for namespace in &namespaces {
            setup.cx.store.touch(&profile, namespace);
        }
        setup.cx.queues.params.trigger([profile]);
    }
}

async fn state(setup: &Setup, state: &str) -> Duration {
    let found = |mock: &Mock| mock.get(STATUS).is_some_and(|it| it["status"]["state"] == state);
    setup.until(&format!("state {state}"), found).await
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
    state(&setup, "Invalid").await;
    let message = setup.mock.get(STATUS).unwrap()["status"]["message"].clone();
    assert_eq!(message, "there is no ToolSecurityProfile tools");
    setup.observe(&asked_for());
    state(&setup, "Pending").await;
    setup.in_force("tools", 1).await;
    let at = params_path("tools", "a");
    assert_eq!(setup.mock.get(&at).unwrap()["spec"]["workloadExceptions"], Json::Null);

    let mut approved = exception(&json!({"uid": "u", "generation": 1}));
    approved["metadata"]["resourceVersion"] = "1000000".into();
    show(&setup, &approved);
    state(&setup, "Approved").await;
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
    let took = state(&setup, "Approved").await;
    assert!(took < Duration::from_secs(15), "{took:?}");
}
