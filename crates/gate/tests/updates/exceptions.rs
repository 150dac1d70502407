//! What an approved exception lifts, it lifts for what an update makes of the object.

use palisade_api::ToolSecurityException;
use palisade_compiler::Request;
use palisade_gate::check;
use palisade_kube_json::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

use crate::updates::{BoundPolicies, OTHER_ANNOTATION, OTHER_LABEL, TENANT, compiled, set};

const COLLECTOR: &str = "system:serviceaccount:kube-system:generic-garbage-collector";

fn asked(checks: &[&str], scope: &Json) -> Request {
    let exception = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityException",
        "metadata": {"name": "x", "namespace": TENANT, "uid": "u", "generation": 3},
        "spec": {"profile": "test", "checks": checks, "scope": scope, "reason": "x", "expires": "2026-06-01T00:00:00Z"},
        "status": {"approval": {"uid": "u", "generation": 3}},
    });
    Request::from(&serde_json::from_value::<ToolSecurityException>(exception).unwrap())
}

fn privileged(image: &str) -> Json {
    let mut pod = pod::minimal("x");
    pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
    pod::set_container(&mut pod, &["image"], json!(image));
    pod
}

#[test]
fn an_exception_for_an_image_is_for_no_other_image_of_an_update() {
    for registries in [json!({}), json!({"allowedRegistries": ["evil.example", "registry.example"]})] {
        for ids in [&["privileged"][..], &["privileged", "own"]] {
            let own = json!({
                "id": "own", "target": "Containers", "message": "no",
                "expression": "!container.?securityContext.?privileged.orValue(false)",
            });
            let customs: Vec<_> = ids.iter().filter(|id| **id == "own").map(|_| own.clone()).collect();
            let compiled = compiled(&json!({
                "baseline": "Baseline", "images": registries, "exceptionRequests": {"checks": ids},
                "customChecks": customs,
            }));
            check(compiled.clone()).unwrap();
            let scope = json!({"kind": "Namespace", "imagePrefix": "registry.example/drivers/"});
            let judge = BoundPolicies::new(&compiled, &[asked(ids, &scope)]);
            let [approved, newer, evil] =
                ["registry.example/drivers/x:1", "registry.example/drivers/x:2", "evil.example/rootkit:1"]
                    .map(privileged);
            assert!(judge.creates(&approved) && !judge.creates(&evil));
            judge.updates(&approved, &newer, "alice", true, "another approved image");
            judge.updates(&approved, &evil, "alice", false, "an image that is not approved");
            let mut labelled = approved.clone();
            set(&mut labelled, &[OTHER_LABEL]);
            judge.updates(&approved, &labelled, "alice", true, "a label");
            let mut plain = approved.clone();
            pod::set_container(&mut plain, &["securityContext", "privileged"], json!(false));
            let mut other = plain.clone();
            pod::set_container(&mut other, &["image"], json!("evil.example/x"));
            judge.updates(&plain, &other, "alice", true, "a container that needs no exception");
        }
    }
}

#[test]
fn an_exception_for_a_workload_ends_with_what_makes_the_object_a_part_of_it() {
    let compiled = compiled(&json!({"baseline": "Baseline", "exceptionRequests": {"checks": ["privileged"]}}));
    let judge = BoundPolicies::new(&compiled, &[asked(&["privileged"], &json!({"kind": "Deployment", "name": "app"}))]);
    let owned = |object: &mut Json, kind: &str, name: &str| {
        let owner = json!([{"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": "1", "controller": true}]);
        object["metadata"]["ownerReferences"] = owner;
    };
    let mut pod = privileged("a");
    owned(&mut pod, "ReplicaSet", "app-abc");
    set(&mut pod, &[("/metadata/labels/pod-template-hash", "\"abc\"")]);
    let mut set_of = WORKLOADS[1].around("app-abc", &privileged("a"));
    owned(&mut set_of, "Deployment", "app");
    for object in [&pod, &set_of] {
        assert!(judge.creates(object));
        let mut freed = object.clone();
        set(&mut freed, &[("/metadata/ownerReferences", "null")]);
        judge.updates(object, &freed, "alice", false, "no owner");
        // Kubernetes releases what the tenant may not release, or a finalizer of the owner would stay.
        judge.updates(object, &freed, COLLECTOR, true, "no owner");
        let mut other = object.clone();
        owned(&mut other, "ReplicaSet", "other");
        judge.updates(object, &other, "alice", false, "another owner");
        let mut labelled = object.clone();
        set(&mut labelled, &[OTHER_LABEL, OTHER_ANNOTATION]);
        judge.updates(object, &labelled, "alice", true, "a label");
    }
    let mut relabelled = pod.clone();
    set(&mut relabelled, &[("/metadata/labels/pod-template-hash", "\"x\"")]);
    judge.updates(&pod, &relabelled, "alice", false, "another hash");
}
