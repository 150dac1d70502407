//! Kinds and requests: what the golden files of objects do not have.

use palisade_admission::objects::{Kinds, Refused, RequestContext, Submission, receive};
use palisade_cel::Minor;
use serde_json::{Value, json};

fn pod(spec: &Value) -> Value {
    let mut pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": spec});
    pod["spec"]["containers"] = json!([{"name": "a", "image": "a"}]);
    pod
}

fn received(
    kinds: &Kinds,
    object: &Value,
    old: Option<&Value>,
    subresource: &str,
    around: &RequestContext<'_>,
) -> Result<Value, Refused> {
    let text = |key: &str| object[key].as_str().unwrap();
    let resource = match subresource {
        "" | "status" => kinds.by_kind(text("apiVersion"), text("kind")).unwrap(),
        _ => kinds.by_plural("", "v1", "pods").unwrap(),
    };
    let old = old.map(|old| kinds.stored(resource, subresource, "default", old, around)).transpose()?;
    receive(kinds, Submission { resource, subresource, namespace: "default", object, old: old.as_ref() }, around)
        .map(|received| received.object)
}

#[test]
fn subresources_have_their_own_kinds() {
    let kinds = Kinds::builtin(Minor::V1_36);
    let pods = kinds.by_plural("", "v1", "pods").unwrap();
    let kind = |name: &str| {
        let found = pods.subresource(name).unwrap();
        format!("{}/{}", found.api_version(), found.kind)
    };
    assert_eq!(kind("eviction"), "policy/v1/Eviction");
    assert_eq!(kind("binding"), "v1/Binding");
    assert_eq!(kind("exec"), "v1/PodExecOptions");
    assert_eq!(kind("ephemeralcontainers"), "v1/Pod");
    let deployments = kinds.by_kind("apps/v1", "Deployment").unwrap();
    assert_eq!(deployments.subresource("scale").unwrap().api_version(), "autoscaling/v1");
    let accounts = kinds.by_plural("", "v1", "serviceaccounts").unwrap();
    assert_eq!(accounts.subresource("token").unwrap().kind, "TokenRequest");
}

#[test]
fn resources_with_the_same_objects_are_equivalent() {
    let kinds = Kinds::builtin(Minor::V1_36);
    let equivalents = |group: &str, version: &str, plural: &str, subresource: &str| -> Vec<String> {
        let resource = kinds.by_plural(group, version, plural).unwrap();
        kinds.equivalents(resource, subresource).iter().map(|r| r.api_version()).collect()
    };
    assert_eq!(equivalents("", "v1", "events", ""), ["v1", "events.k8s.io/v1"]);
    assert_eq!(
        equivalents("autoscaling", "v2", "horizontalpodautoscalers", "status"),
        ["autoscaling/v2", "autoscaling/v1"]
    );
    assert_eq!(equivalents("apps", "v1", "deployments", ""), ["apps/v1"]);
    // Versions that are not stable are not served by default.
    assert!(
        !kinds.by_plural("admissionregistration.k8s.io", "v1beta1", "mutatingadmissionpolicies").unwrap().by_default
    );
    assert_eq!(equivalents("coordination.k8s.io", "v1", "leases", ""), ["coordination.k8s.io/v1"]);
}

#[test]
fn every_minor_has_kinds() {
    for minor in Minor::ALL {
        let kinds = Kinds::builtin(minor);
        assert!(kinds.resources().len() > 60, "{minor}");
        assert!(kinds.by_kind("v1", "Pod").is_some_and(|pods| pods.namespaced && pods.by_default));
    }
}

#[test]
fn update_keeps_fields_a_client_cannot_change() {
    let kinds = Kinds::builtin(Minor::V1_36);
    let around = RequestContext::default();
    let old = received(&kinds, &pod(&json!({})), None, "", &around).unwrap();
    assert_eq!(old["metadata"]["generation"], 1);

    let mut labelled = pod(&json!({}));
    labelled["metadata"]["labels"] = json!({"a": "b"});
    labelled["status"] = json!({"phase": "Failed"});
    let new = received(&kinds, &labelled, Some(&old), "", &around).unwrap();
    assert_eq!(new["status"], old["status"]);
    assert_eq!(new["metadata"]["uid"], old["metadata"]["uid"]);
    assert_eq!(new["metadata"]["generation"], 1);
    assert_eq!(new["metadata"]["labels"], json!({"a": "b"}));

    let mut failed = old.clone();
    failed["status"]["phase"] = json!("Failed");
    failed["spec"]["hostNetwork"] = json!(true);
    let new = received(&kinds, &failed, Some(&old), "status", &around).unwrap();
    assert_eq!(new["status"]["phase"], "Failed");
    assert_eq!(new["spec"], old["spec"]);

    let mut debugged = old.clone();
    debugged["spec"]["ephemeralContainers"] = json!([{"name": "d", "image": "d"}]);
    debugged["metadata"]["labels"] = json!({"x": "y"});
    let new = received(&kinds, &debugged, Some(&old), "ephemeralcontainers", &around).unwrap();
    assert_eq!(new["spec"]["ephemeralContainers"][0]["imagePullPolicy"], "Always");
    assert_eq!(new["metadata"]["labels"], Value::Null);
}

#[test]
fn a_subresource_receives_its_own_kind() {
    let kinds = Kinds::builtin(Minor::V1_36);
    let eviction = json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a"}, "x": 1});
    let found = received(&kinds, &eviction, None, "eviction", &RequestContext::default()).unwrap();
    assert_eq!(
        found,
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "a", "namespace": "default"}})
    );
}

#[test]
fn unservable_crd_is_rejected_with_the_reason() {
    let crd = json!({"metadata": {"name": "x"}, "spec": {"group": "g", "names": {"plural": "x"}}});
    let problem = Kinds::builtin(Minor::V1_36).add_crd(&crd).unwrap_err();
    assert_eq!(
        problem.to_string(),
        "CustomResourceDefinition x: spec.names.kind: Required value; the API server would serve no such kind"
    );
}
