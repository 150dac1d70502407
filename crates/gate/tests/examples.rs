//! The profiles in `examples`, as a tenant would attack them.

use palisade_api::{ToolSecurityProfile, names::Shape};
use palisade_compiler::{Compiled, Namespace, compile};
use palisade_gate::{Decision, ValidationRequest, Validator, check};
use palisade_kube_json::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

fn compiled(text: &str) -> Compiled {
    let profile: ToolSecurityProfile = serde_saphyr::from_str(text).unwrap();
    let compiled = compile(&profile).unwrap();
    check(compiled.clone()).unwrap();
    compiled
}

/// The parameters in a namespace.
fn params(compiled: &Compiled, namespace: &Namespace) -> Json {
    let params = compiled.params(namespace, [], "2026-11-22T00:00:00Z".parse().unwrap()).unwrap();
    assert_eq!(params.spec.problem, "");
    serde_json::to_value(params).unwrap()
}

/// What the policies say of a pod, itself and as the template of a workload: nothing, or a text.
fn said(compiled: &Compiled, params: &Json, pod: &Json) -> Vec<Option<String>> {
    Shape::OF_PODS
        .into_iter()
        .map(|shape| {
            let policy = Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap();
            let (kind, object) = match shape {
                Shape::Pods => ("Pod", pod.clone()),
                Shape::Workloads | Shape::Objects => (WORKLOADS[0].kind, WORKLOADS[0].around("x", pod)),
            };
            match policy
                .evaluate(&ValidationRequest { params: Some(params), ..ValidationRequest::create(kind, &object) })
                .unwrap()
            {
                Decision::Admit => None,
                Decision::Deny { message, .. } => Some(message),
            }
        })
        .collect()
}

mod toolforge {
    use super::*;

    const UID: i64 = 50_002;

    fn tool() -> (Compiled, Json) {
        let compiled = compiled(include_str!("../../../examples/toolforge/profile.yaml"));
        let namespace = Namespace {
            name: "tool-b".to_owned(),
            labels: [("tenancy".to_owned(), "tool".to_owned())].into(),
            annotations: [("toolforge.org/uid".to_owned(), UID.to_string())].into(),
        };
        let params = params(&compiled, &namespace);
        (compiled, params)
    }

    fn complying() -> Json {
        json!({
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "job"},
            "spec": {
                "securityContext": {
                    "runAsUser": UID, "runAsGroup": UID, "fsGroup": UID, "supplementalGroups": [UID],
                    "runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"},
                },
                "containers": [{
                    "name": "job", "image": "docker-registry.svc.toolforge.org/python:3",
                    "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
                }],
            },
        })
    }

    /// Each field that gives a process an id, with the check that must deny.
    fn fields(id: i64) -> Vec<(&'static str, Json)> {
        let container = |field: &str| json!({"spec": {"containers": [{"securityContext": {(field): id}}]}});
        let init = |field: &str| {
            let mut init = complying()["spec"]["containers"][0].clone();
            init["name"] = json!("init");
            init["securityContext"][field] = json!(id);
            json!({"spec": {"initContainers": [init]}})
        };
        vec![
            ("runAsUser", json!({"spec": {"securityContext": {"runAsUser": id}}})),
            ("runAsGroup", json!({"spec": {"securityContext": {"runAsGroup": id}}})),
            ("fsGroup", json!({"spec": {"securityContext": {"fsGroup": id}}})),
            ("supplementalGroups", json!({"spec": {"securityContext": {"supplementalGroups": [id]}}})),
            ("supplementalGroups", json!({"spec": {"securityContext": {"supplementalGroups": [UID, id]}}})),
            ("runAsUser", container("runAsUser")),
            ("runAsGroup", container("runAsGroup")),
            ("runAsUser", init("runAsUser")),
            ("runAsGroup", init("runAsGroup")),
        ]
    }

    #[test]
    fn tool_may_use_only_its_own_uid_in_every_field() {
        let (compiled, params) = tool();
        let said = |pod: &Json| said(&compiled, &params, pod);
        assert_eq!(said(&complying()), [None, None]);
        // Other tools, the ends of their range, root, and what a shared file system calls nobody.
        for other in [50_000, 50_001, UID - 1, UID + 1, 65_533, 65_534, 65_535, 0] {
            for (check, patch) in fields(other) {
                let mut pod = complying();
                pod::merge(&mut pod, &patch);
                for text in said(&pod) {
                    let text = text.unwrap_or_default();
                    assert!(text.contains(&format!("[{check}]")), "{check} is {other}, {patch}: {text:?}");
                }
            }
        }
        let mut shared = complying();
        shared["spec"]["securityContext"]["supplementalGroups"] = json!([1, 49_999, UID]);
        assert_eq!(said(&shared), [None, None], "groups that are no tool's");
    }
}

mod custom_checks {
    use super::*;

    const TAG: &str = "[imageVersion]";
    const MEMORY: &str = "[memoryLimit]";

    #[test]
    fn missing_tag_or_zero_memory_violates_the_example_checks() {
        let compiled = compiled(include_str!("../../../examples/custom-checks/profile.yaml"));
        let namespace = Namespace {
            name: "team-a".to_owned(),
            labels: [("tenancy".to_owned(), "team".to_owned()), ("team".to_owned(), "a".to_owned())].into(),
            annotations: std::collections::BTreeMap::default(),
        };
        let params = params(&compiled, &namespace);
        let of = |image: &str, memory: &str| {
            let mut pod = pod::minimal("x");
            pod["metadata"]["annotations"] = json!({"team": "a"});
            pod["spec"]["activeDeadlineSeconds"] = json!(60);
            pod::set_container(&mut pod, &["image"], json!(image));
            pod::set_container(&mut pod, &["resources"], json!({"limits": {"memory": memory}}));
            said(&compiled, &params, &pod)
        };
        for image in ["a.example/b:1", "a.example:5000/b:1", "b:1", "a.example/b@sha256:0a", "b:latest@sha256:0a"] {
            assert_eq!(of(image, "1Gi"), [None, None], "{image}");
        }
        for image in ["a.example/b:latest", "a.example/b", "b", "a.example:5000/b"] {
            for text in of(image, "1Gi") {
                assert!(text.is_some_and(|text| text.contains(TAG)), "{image}");
            }
        }
        for none in ["0", "0Mi", "0.0"] {
            for text in of("b:1", none) {
                assert!(text.is_some_and(|text| text.contains(MEMORY)), "{none}");
            }
        }
    }
}
