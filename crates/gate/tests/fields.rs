//! Checks of what the API server itself sets in pods: an update finds it there, and a template has none of it.

use palisade_api::{ToolSecurityProfile, names::Shape};
use palisade_compiler::Compiled;
use palisade_gate::{Decision, Operation, ValidationRequest, Validator};
use palisade_kube_json::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

/// Every check that a level of the standards does not have, as strict as can be for a pod that says nothing.
fn strict() -> Json {
    json!({
        "users": {"supplementalGroupsPolicy": "Strict"},
        "privileges": {"shareProcessNamespace": false},
        "host": {"aliases": false},
        "volumes": {"mountPropagation": []},
        "identity": {"serviceAccounts": ["default"], "serviceAccountTokens": {"audiences": []}},
        "scheduling": {
            "priorityClasses": ["standard"], "schedulers": ["default-scheduler"], "nodeName": false,
            "nodeSelector": [{"key": "pool", "values": ["tenants"]}], "tolerations": [],
        },
    })
}

fn compile(settings: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "fields"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged"},
    });
    pod::merge(&mut profile["spec"], settings);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    palisade_compiler::compile(&profile).unwrap()
}

/// What is denied, or nothing.
fn denial(compiled: &Compiled, shape: Shape, request: &ValidationRequest<'_>) -> String {
    match Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap().evaluate(request).unwrap() {
        Decision::Admit => String::new(),
        Decision::Deny { message, .. } => message,
    }
}

/// What a template has to say itself.
fn template() -> Json {
    let mut pod = pod::minimal("fields");
    pod::merge(
        &mut pod["spec"],
        &json!({"nodeSelector": {"pool": "tenants"}, "securityContext": {"supplementalGroupsPolicy": "Strict"}}),
    );
    pod
}

/// A pod of it when policies are asked: with what the API server's defaults and its admission plugins ServiceAccount,
/// Priority and DefaultTolerationSeconds have set.
fn pod() -> Json {
    let toleration =
        |key: &str| json!({"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300});
    let mut pod = template();
    pod::merge(
        &mut pod["spec"],
        &json!({
            "automountServiceAccountToken": null, "serviceAccountName": "default", "serviceAccount": "default",
            "priorityClassName": "standard", "priority": 0, "preemptionPolicy": "PreemptLowerPriority",
            "schedulerName": "default-scheduler",
            "tolerations": [toleration("node.kubernetes.io/not-ready"), toleration("node.kubernetes.io/unreachable")],
            "volumes": [{"name": "kube-api-access-abcde", "projected": {"defaultMode": 420, "sources": [
                {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            ]}}],
        }),
    );
    let mount = json!({
        "name": "kube-api-access-abcde", "readOnly": true, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    });
    pod["spec"]["containers"][0]["volumeMounts"] = json!([mount]);
    pod
}

#[test]
fn fields_set_by_the_api_server_violate_nothing() {
    let compiled = compile(&strict());
    assert_eq!(denial(&compiled, Shape::Pods, &ValidationRequest::create("Pod", &pod())), "");
}

#[test]
fn ephemeral_container_of_a_scheduled_pod_is_allowed_and_judged() {
    let compiled = compile(&strict());
    let mut old = pod();
    old["spec"]["nodeName"] = "node-1".into();
    let created = denial(&compiled, Shape::Pods, &ValidationRequest::create("Pod", &old));
    assert!(created.contains("[nodeName] pod: spec.nodeName is node-1"), "{created}");
    let mut new = old.clone();
    new["spec"]["ephemeralContainers"] = json!([{"name": "debug", "image": "x"}]);
    let denied = |new: &Json| {
        let created = ValidationRequest::create("Pod", new);
        let request = ValidationRequest {
            operation: Operation::Update,
            subresource: "ephemeralcontainers",
            old_object: &old,
            ..created
        };
        denial(&compiled, Shape::Pods, &request)
    };
    assert_eq!(denied(&new), "");
    // It is judged, all the same.
    new["spec"]["tolerations"] = json!([{"operator": "Exists"}]);
    let updated = denied(&new);
    assert!(updated.contains("1 violation of") && updated.contains("[tolerations]"), "{updated}");
}

#[test]
fn pod_template_is_judged_by_its_own_fields() {
    let compiled = compile(&strict());
    let narrow =
        compile(&json!({"identity": {"serviceAccounts": ["builder"]}, "scheduling": {"schedulers": ["other"]}}));
    for workload in &WORKLOADS {
        let object = workload.around("fields", &template());
        let create = ValidationRequest::create(workload.kind, &object);
        // It has no priority class yet, which its pods get if the cluster has a default one.
        assert_eq!(denial(&compiled, Shape::Workloads, &create), "", "{}", workload.kind);
        // But what an absent service account and scheduler are is the same everywhere.
        let found = denial(&narrow, Shape::Workloads, &create);
        assert!(
            found.contains("spec.serviceAccountName is default") && found.contains("spec.schedulerName is default-"),
            "{}: {found}",
            workload.kind
        );
        let mut named = template();
        named["spec"]["nodeName"] = "node-1".into();
        named["spec"]["priorityClassName"] = "system-node-critical".into();
        let named = workload.around("fields", &named);
        let update = ValidationRequest {
            operation: Operation::Update,
            old_object: &object,
            ..ValidationRequest::create(workload.kind, &named)
        };
        for request in [ValidationRequest::create(workload.kind, &named), update] {
            let found = denial(&compiled, Shape::Workloads, &request);
            assert!(
                found.contains("[nodeName]") && found.contains("[priorityClasses]") && found.contains("2 violations"),
                "{}: {found}",
                workload.kind
            );
        }
    }
}
