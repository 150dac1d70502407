//! Exceptions for one object.

use super::*;

/// An exception for one object waives its checks for the object of this kind and name, and for no other.
#[test]
fn an_exception_for_one_object_waives_nothing_else() {
    let check = |id: &str| {
        json!({
            "id": id, "target": "Object", "message": "m", "expression": "false",
            "kinds": [{"versions": ["v1"], "resource": "services"}, {"versions": ["v1"], "resource": "configmaps"}],
        })
    };
    let compiled = compiled(&json!({
        "exceptionRequests": {"checks": ["own", "privileged"]}, "customChecks": [check("own"), check("other")],
        "network": {"annotations": {}},
    }));
    let request = |scope: Json, checks: &[&str]| palisade_compiler::Request {
        profile: "test".to_owned(),
        checks: checks.iter().map(|&check| check.to_owned()).collect(),
        scope: serde_json::from_value(scope).unwrap(),
        expires: "2027-01-01T00:00:00Z".parse().unwrap(),
        approval: palisade_api::ApprovalState::Current,
    };
    let namespace = palisade_compiler::Namespace { name: "tool-weather".to_owned(), ..Default::default() };
    let params = |requests: &[palisade_compiler::Request]| {
        compiled.params(&namespace, requests, "2026-01-01T00:00:00Z".parse().unwrap()).unwrap().spec
    };
    let named = |kind: &str, name: &str| {
        let object = if kind == "Service" { service("ClusterIP") } else { object("v1", kind, &json!({})) };
        with(&object, "/metadata/name", json!(name))
    };
    let object = json!({"kind": "Object", "resource": "services", "name": "web"});
    let one = params(&[request(object.clone(), &["own"])]);
    // It ends by the clock of the API server, also if the controller does not remove it.
    let past = palisade_compiler::Request {
        expires: "2020-01-01T00:00:00Z".parse().unwrap(),
        ..request(object.clone(), &["own"])
    };
    let ended = compiled.params(&namespace, &[past], "2019-01-01T00:00:00Z".parse().unwrap()).unwrap().spec;
    assert_eq!(ended.workload_exceptions.len(), 1, "{ended:?}");
    let [with_requests, none, ended] = [one, params(&[]), ended].map(|params| Some(json!(params)));
    for minor in Minor::ALL {
        let violated = |params: &Option<Json>, object: &Json| -> Vec<&str> {
            let found = Enforced::new(minor, &compiled, params.as_ref()).create(object);
            ["own", "other"].into_iter().filter(|id| found.contains(&format!("[{id}]"))).collect()
        };
        assert_eq!(violated(&with_requests, &named("Service", "web")), ["other"]);
        assert_eq!(violated(&none, &named("Service", "web")), ["own", "other"]);
        assert_eq!(violated(&ended, &named("Service", "web")), ["own", "other"]);
        assert_eq!(violated(&with_requests, &named("Service", "web2")), ["own", "other"]);
        assert_eq!(violated(&with_requests, &named("ConfigMap", "web")), ["own", "other"]);
    }
    // Checks of pods have no exception for one object.
    let pods = params(&[request(object, &["privileged"])]);
    assert!(pods.workload_exceptions.is_empty(), "{pods:?}");
}
