//! The objects that each tool of Wikimedia Toolforge gets, from the example.

use palisade_api::ToolSecurityProfile;
use palisade_compiler::{Namespace, compile};
use serde_json::{Value as Json, json};

/// The objects of a namespace. The API server reads a number as a quantity.
fn objects(name: &str) -> Vec<Json> {
    let text = include_str!("../../../../examples/toolforge/objects.yaml");
    let profile: ToolSecurityProfile = serde_saphyr::from_str(text).unwrap();
    let compiled = compile(&profile).unwrap();
    let labels = [("tenancy".to_owned(), "tool".to_owned())].into();
    let namespace = Namespace { name: name.to_owned(), labels, ..Namespace::default() };
    let resolved = compiled.generated(&namespace).into_iter();
    resolved.map(|one| one.object.unwrap().object).collect()
}

fn quantities(hard: &Json) -> Json {
    let text = |value: &Json| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    hard.as_object().unwrap().iter().map(|(key, value)| (key.clone(), json!(text(value)))).collect()
}

#[test]
fn a_tool_has_its_quota_limits_and_role() {
    let found = objects("tool-weather");
    let [quota, limits, role] = found.as_slice() else { panic!("{found:?}") };
    assert!(found.iter().all(|object| object["metadata"]["namespace"] == "tool-weather"));
    assert_eq!((&quota["kind"], &quota["metadata"]["name"]), (&json!("ResourceQuota"), &json!("tool-weather")));
    let expected = json!({
        "requests.cpu": "2", "requests.memory": "6Gi", "limits.cpu": "2", "limits.memory": "8Gi", "pods": "10",
        "services": "1", "services.nodeports": "0", "replicationcontrollers": "1", "secrets": "10", "configmaps": "10",
        "persistentvolumeclaims": "3", "count/cronjobs.batch": "50", "count/jobs.batch": "15",
        "count/deployments.apps": "3",
    });
    assert_eq!(quantities(&quota["spec"]["hard"]), expected);
    assert_eq!((&limits["kind"], &limits["metadata"]["name"]), (&json!("LimitRange"), &json!("tool-weather")));
    let expected = json!([{
        "type": "Container", "default": {"cpu": "500m", "memory": "512Mi"},
        "defaultRequest": {"cpu": "150m", "memory": "256Mi"}, "max": {"cpu": "1", "memory": "4Gi"},
        "min": {"cpu": "50m", "memory": "100Mi"},
    }]);
    assert_eq!(limits["spec"]["limits"], expected);
    assert_eq!(role["metadata"]["name"], "weather-tool-binding");
    let group = "rbac.authorization.k8s.io";
    assert_eq!(role["roleRef"], json!({"apiGroup": group, "kind": "ClusterRole", "name": "tools-user"}));
    assert_eq!(role["subjects"], json!([{"apiGroup": group, "kind": "User", "name": "weather"}]));
}

#[test]
fn an_override_enlarges_the_quota_of_one_tool() {
    let hard = quantities(&objects("tool-encoder")[0]["spec"]["hard"]);
    assert_eq!((&hard["limits.cpu"], &hard["pods"], &hard["services"]), (&json!("8"), &json!("24"), &json!("1")));
}
