//! A profile that is being deleted: what is reported of it, what it waits for, and what it does not wait for.

use std::time::Duration;

use http::Method;
use palisade_api::names;
use serde_json::{Value as Json, json};

use super::{
    BINDINGS, POLICIES, PROFILES, Setup,
    mock::{Mock, RecordedRequest, Respond},
    params_path, path, profile, setup,
};

const STATUS: &str = "/apis/toolsecurity.dev/v1alpha1/toolsecurityprofiles/tools/status";

fn is_deletion_of_a_binding(asked: &RecordedRequest) -> bool {
    asked.method == Method::DELETE && asked.path.starts_with(BINDINGS)
}

/// Deletes the profile, with a changed spec.
fn delete(setup: &Setup, spec: impl FnOnce(&mut Json)) {
    let mut deleted = profile("tools", 2, 100);
    deleted["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    spec(&mut deleted["spec"]);
    setup.observe(&deleted);
}

fn is_let_go(mock: &Mock) -> bool {
    mock.get(&format!("{PROFILES}/tools"))
        .is_some_and(|profile| profile["metadata"]["finalizers"].as_array().is_none_or(Vec::is_empty))
}

async fn in_force() -> Setup {
    let setup = Setup::new(&["n0", "n1"]);
    setup.run();
    setup.write("tools", 1, 100);
    setup.in_force("tools", 1).await;
    setup
}

#[tokio::test(start_paused = true)]
async fn enforced_is_false_before_the_first_binding_is_deleted() {
    let setup = in_force().await;
    setup.mock.asked();
    delete(&setup, |_| ());
    setup.until("let go", is_let_go).await;
    let asked = setup.mock.asked();
    let said = asked.iter().position(|asked| {
        let conditions = asked.body["status"]["conditions"].as_array().into_iter().flatten();
        let of = |type_: &str| {
            conditions.clone().any(|it| it["type"] == type_ && it["status"] == "False" && it["reason"] == "Deleting")
        };
        asked.path == STATUS && of("Enforced") && of("Ready") && asked.body["status"]["namespaces"]["ready"] == 0
    });
    let deleted = asked.iter().position(is_deletion_of_a_binding);
    assert!(said.is_some() && said < deleted, "said {said:?}, deleted {deleted:?}");
}

#[tokio::test(start_paused = true)]
async fn a_status_that_cannot_be_written_delays_the_removal_and_one_that_is_rejected_does_not() {
    for (respond, waits) in [
        (Respond::Never, true),
        (Respond::Error(500), true),
        (Respond::Error(422), false),
        (Respond::Error(404), false),
    ] {
        let setup = in_force().await;
        setup.mock.asked();
        let answer = respond.clone();
        setup.mock.rule(move |asked| if asked.path == STATUS { answer.clone() } else { Respond::Normally });
        delete(&setup, |_| ());
        tokio::time::sleep(Duration::from_mins(2)).await;
        let deleted = setup.mock.asked().iter().any(is_deletion_of_a_binding);
        assert_eq!(deleted, !waits, "{respond:?}");
        setup.mock.rule(|_| Respond::Normally);
        setup.until("let go", is_let_go).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_compiled_for_a_profile_that_is_being_deleted() {
    // As after a restart: nothing of it is in memory, and its spec cannot be compiled.
    let setup = Setup::new(&["n0"]);
    setup.run();
    delete(&setup, |spec| spec["parameters"] = json!([{"name": "uid", "type": "Integer", "sources": []}]));
    setup.condition("tools", "Accepted", "Deleting").await;
    setup.until("let go", is_let_go).await;
    let asked = setup.mock.asked();
    let rejected = asked.iter().any(|asked| asked.body.to_string().contains("InvalidSpec"));
    assert!(!rejected, "it was compiled");
}

#[tokio::test(start_paused = true)]
async fn profile_is_removed_despite_finalizers_on_its_parameters() {
    let setup = in_force().await;
    let held = params_path("tools", "n1");
    let mut params = setup.mock.get(&held).expect("parameters");
    params["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
    params["metadata"]["finalizers"] = json!(["example.com/hold"]);
    setup.mock.put(&held, params);
    delete(&setup, |_| ());
    let took = setup.until("let go", is_let_go).await;
    assert!(took < Duration::from_secs(30), "it was let go after {took:?}");
    assert!(setup.mock.get(&held).is_some() && setup.mock.get(&params_path("tools", "n0")).is_none());
    assert!(setup.mock.get(&path(BINDINGS, "tools")).is_none());
}

#[tokio::test(start_paused = true)]
async fn finalizers_and_owners_of_parameters_are_removed() {
    let setup = in_force().await;
    let at = params_path("tools", "n0");
    let mut params = setup.mock.get(&at).expect("parameters");
    params["metadata"]["finalizers"] = json!(["example.com/hold"]);
    params["metadata"]["ownerReferences"] =
        json!([{"apiVersion": "v1", "kind": "ConfigMap", "name": "mine", "uid": "a"}]);
    params["metadata"]["namespace"] = "n0".into();
    params["metadata"]["resourceVersion"] = "900".into();
    setup.mock.put(&at, params.clone());
    let shown = serde_json::from_value(params).expect("parameters");
    let concerned = setup.cx.store.observe_params(kube::runtime::watcher::Event::Apply(shown));
    setup.cx.queues.params.trigger(concerned);
    setup
        .until("they are free", |mock| {
            let meta = mock.get(&at).unwrap_or_default()["metadata"].clone();
            meta["finalizers"].is_null() && meta["ownerReferences"].is_null() && meta["name"] == names::params("tools")
        })
        .await;
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
