//! Objects that are stored: nothing is stripped of them, and an update gets the API server's answer. What the API server
//! says to many more requests is compared in `tests/apiserver` (`stored`).

use palisade_admission::{
    objects::{INVENTED_UID, Kinds, RequestContext},
    requests::{Cluster, Operation, Outcome, Review},
};
use palisade_cel::Minor;
use serde_json::{Value, json};

/// A cluster with one policy for all resources, with these validations.
fn cluster(minor: Minor, validations: &[&str]) -> Cluster {
    let mut cluster = Cluster::new(minor);
    let version = "admissionregistration.k8s.io/v1";
    let validations: Vec<_> = validations.iter().map(|text| json!({"expression": text, "message": text})).collect();
    let rule = json!({
        "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["CREATE", "UPDATE", "DELETE"], "resources": ["*/*"],
    });
    for object in [
        json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": "p"}, "spec": {
            "matchConstraints": {"resourceRules": [rule]}, "validations": validations,
        }}),
        json!({"apiVersion": version, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": "b"}, "spec": {
            "policyName": "p", "validationActions": ["Deny"],
        }}),
    ] {
        cluster.apply(object).unwrap();
    }
    cluster
}

fn delete(cluster: &Cluster, object: &Value) -> Review {
    cluster.admit(&cluster.request(Operation::Delete, "", object, None).unwrap())
}

fn update(cluster: &Cluster, subresource: &str, new: &Value, old: &Value) -> Review {
    cluster.admit(&cluster.request(Operation::Update, subresource, new, Some(old)).unwrap())
}

/// The text of a refusal, `allowed`, or `no verdict`.
fn answer(review: &Review) -> String {
    match &review.outcome {
        Outcome::Allowed => "allowed".to_owned(),
        Outcome::Denied(denials) => denials[0].message.clone(),
        Outcome::NoVerdict(why) => format!("no verdict: {why}"),
    }
}

fn claim(phase: &str) -> Value {
    json!({
        "apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "a", "namespace": "x"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": phase},
    })
}

fn pod(metadata: &Value) -> Value {
    let mut pod = json!({
        "apiVersion": "v1", "kind": "Pod", "metadata": metadata,
        "spec": {"containers": [{"name": "a", "image": "a"}]},
    });
    pod["metadata"]["name"] = json!("a");
    pod["metadata"]["namespace"] = json!("x");
    pod
}

#[test]
fn policy_sees_the_phase_of_a_deleted_claim() {
    for minor in Minor::ALL {
        let cluster = cluster(minor, &["oldObject.status.phase != 'Bound'"]);
        assert!(answer(&delete(&cluster, &claim("Bound"))).contains("denied request: oldObject.status.phase"));
        assert_eq!(answer(&delete(&cluster, &claim("Pending"))), "allowed");
        // A claim that says nothing of it is pending, as each is at first.
        let mut silent = claim("Bound");
        silent.as_object_mut().unwrap().remove("status");
        assert_eq!(answer(&delete(&cluster, &silent)), "allowed");
    }
}

#[test]
fn stored_object_keeps_all_its_metadata() {
    let dump = pod(&json!({
        "uid": "11111111-1111-4111-8111-111111111111", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 4,
        "deletionTimestamp": "2002-01-01T00:00:00Z", "deletionGracePeriodSeconds": 0, "resourceVersion": "17",
        "finalizers": ["example.org/a"], "labels": {"step": "a"},
    }));
    for minor in Minor::ALL {
        let kinds = Kinds::builtin(minor);
        let pods = kinds.by_plural("", "v1", "pods").unwrap();
        let stored = kinds.stored(pods, "", "x", &dump, &RequestContext::default()).unwrap();
        for (key, value) in dump["metadata"].as_object().unwrap() {
            assert_eq!(&stored["metadata"][key], value, "{minor} {key}");
        }
        // Decoded and with defaults, and no plugin adds anything to what it has seen long ago.
        assert_eq!(stored["spec"]["restartPolicy"], "Always");
        assert_eq!(stored["spec"]["volumes"], Value::Null);
    }
}

#[test]
fn stored_manifest_gets_server_fields_and_keeps_its_status() {
    let kinds = Kinds::builtin(Minor::V1_36);
    let pods = kinds.by_plural("", "v1", "pods").unwrap();
    let mut manifest = pod(&json!({"deletionTimestamp": "2002-01-01T00:00:00Z"}));
    manifest["status"] = json!({"phase": "Running"});
    let stored = kinds.stored(pods, "", "x", &manifest, &RequestContext::default()).unwrap();
    assert_eq!(stored["metadata"]["uid"], INVENTED_UID);
    assert_eq!(stored["metadata"]["generation"], 1);
    assert_eq!(stored["metadata"]["deletionTimestamp"], "2002-01-01T00:00:00Z");
    assert_eq!(stored["status"]["phase"], "Running");
    assert_eq!(stored["status"]["qosClass"], "BestEffort");
}

#[test]
fn manifest_update_behaves_like_kubectl_apply() {
    let cluster = cluster(
        Minor::V1_36,
        &["!has(object.metadata.labels) || object.metadata.labels['step'] != oldObject.metadata.labels['step']"],
    );
    let old = pod(&json!({"labels": {"step": "a"}}));
    let mut new = pod(&json!({"labels": {"step": "b"}}));
    assert_eq!(answer(&update(&cluster, "", &new, &old)), "allowed");
    assert!(answer(&update(&cluster, "", &old, &old)).contains("denied request"));
    new["spec"]["hostNetwork"] = json!(true);
    let said = answer(&update(&cluster, "", &new, &old));
    assert!(
        said.starts_with("Pod \"a\" is invalid: spec: Forbidden: pod updates may not change fields other"),
        "{said}"
    );
}

#[test]
fn finalizer_removal_is_judged_with_the_deletion_timestamp() {
    let cluster =
        cluster(Minor::V1_36, &["!has(object.metadata.deletionTimestamp) || has(object.metadata.finalizers)"]);
    let old = pod(&json!({
        "uid": "u", "resourceVersion": "1", "deletionTimestamp": "2002-01-01T00:00:00Z",
        "deletionGracePeriodSeconds": 0, "finalizers": ["example.org/a", "example.org/b"],
    }));
    let with = |finalizers: Value| {
        let mut new = old.clone();
        new["metadata"]["finalizers"] = finalizers;
        // What a client says of it does not count.
        new["metadata"].as_object_mut().unwrap().remove("deletionTimestamp");
        answer(&update(&cluster, "", &new, &old))
    };
    assert_eq!(with(json!(["example.org/b"])), "allowed");
    assert!(with(json!([])).contains("denied request"));
    assert_eq!(
        with(json!(["example.org/b", "example.org/c"])),
        "Pod \"a\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be added if the object is being \
         deleted, found new finalizers []string{\"example.org/c\"}"
    );
}

#[test]
fn delete_is_not_judged_again_during_the_grace_period() {
    let cluster = cluster(Minor::V1_36, &["false"]);
    let mut leaving =
        pod(&json!({"uid": "u", "deletionTimestamp": "2002-01-01T00:00:00Z", "deletionGracePeriodSeconds": 30}));
    assert_eq!(answer(&delete(&cluster, &leaving)), "allowed");
    leaving["metadata"]["deletionGracePeriodSeconds"] = json!(0);
    assert!(answer(&delete(&cluster, &leaving)).contains("denied request"));
}

#[test]
fn update_of_a_kind_without_known_rules_has_no_verdict() {
    let cluster = cluster(Minor::V1_36, &["true"]);
    let event = json!({
        "apiVersion": "v1", "kind": "Event", "metadata": {"name": "a", "namespace": "x"}, "reason": "A",
        "involvedObject": {"namespace": "x"},
    });
    let mut changed = event.clone();
    changed["reason"] = json!("B");
    let said = answer(&update(&cluster, "", &changed, &event));
    assert!(said.contains("no verdict: which changes of anything but metadata"), "{said}");
    assert_eq!(answer(&update(&cluster, "", &event, &event)), "allowed");
}

#[test]
fn applied_object_replaces_one_of_the_same_name() {
    let mut cluster = cluster(Minor::V1_36, &["object.spec.priority == 2"]);
    let class = |value: i64| json!({"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "c"}, "value": value});
    let mut wanted = pod(&json!({}));
    wanted["spec"]["priorityClassName"] = json!("c");
    let ask =
        |cluster: &Cluster| answer(&cluster.admit(&cluster.request(Operation::Create, "", &wanted, None).unwrap()));
    cluster.apply(class(1)).unwrap();
    assert!(ask(&cluster).contains("denied request"));
    cluster.apply(class(2)).unwrap();
    assert_eq!(ask(&cluster), "allowed");
}

#[test]
fn namespaces_of_a_dump_keep_their_status() {
    let mut cluster = cluster(Minor::V1_36, &["namespaceObject.status.phase != 'Terminating'"]);
    cluster
        .apply(json!({
            "apiVersion": "v1", "kind": "Namespace",
            "metadata": {"name": "x", "uid": "u", "resourceVersion": "7", "deletionTimestamp": "2002-01-01T00:00:00Z"},
            "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Terminating"},
        }))
        .unwrap();
    let said = answer(&delete(&cluster, &claim("Bound")));
    assert!(said.contains("denied request: namespaceObject"), "{said}");
}

/// A pod with resources, and with a policy for the resize of its memory.
fn sized(resources: &Value, policy: &str) -> Value {
    let mut pod = pod(&json!({"uid": "u", "resourceVersion": "1"}));
    pod["spec"]["containers"][0]["resources"] = resources.clone();
    if !policy.is_empty() {
        let policies = json!([{"resourceName": "memory", "restartPolicy": policy}]);
        pod["spec"]["containers"][0]["resizePolicy"] = policies;
    }
    pod
}

#[test]
fn resize_is_not_served_in_1_32_and_to_less_memory_is_rejected_in_1_33() {
    let resources = |memory: &str| {
        let limits = if memory.is_empty() { json!({}) } else { json!({"memory": memory}) };
        json!({"requests": {"cpu": "1", "memory": "100Mi"}, "limits": limits})
    };
    for (before, now, policy, wanted) in [
        ("", "1Gi", "", "added"),
        ("", "1Gi", "NotRequired", "added"),
        ("", "1Gi", "RestartContainer", ""),
        ("2Gi", "1Gi", "", "decreased"),
        ("2Gi", "2047Mi", "NotRequired", "decreased"),
        ("2Gi", "1Gi", "RestartContainer", ""),
        ("1Gi", "1024Mi", "", ""),
        ("1Gi", "2Gi", "NotRequired", ""),
    ] {
        let (old, new) = (sized(&resources(before), policy), sized(&resources(now), policy));
        for minor in Minor::ALL {
            let expected = if minor < Minor::V1_33 {
                "the server could not find the requested resource".to_owned()
            } else if wanted.is_empty() || minor > Minor::V1_33 {
                "allowed".to_owned()
            } else {
                format!(
                    "Pod \"a\" is invalid: spec.containers[0].resources.limits[memory]: Forbidden: memory limits \
                     cannot be {wanted} unless resizePolicy is RestartContainer"
                )
            };
            let said = answer(&update(&cluster(minor, &["true"]), "resize", &new, &old));
            assert_eq!(said, expected, "{minor} {before} {now} {policy}");
        }
    }
}

/// A Job as it is stored, suspended before it was started.
fn job() -> Value {
    let uid = "11111111-1111-4111-8111-111111111111";
    json!({
        "apiVersion": "batch/v1", "kind": "Job",
        "metadata": {"name": "a", "namespace": "x", "uid": uid, "resourceVersion": "1"},
        "spec": {
            "suspend": true,
            "selector": {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}},
            "template": {
                "metadata": {"labels": {
                    "batch.kubernetes.io/controller-uid": uid, "batch.kubernetes.io/job-name": "a",
                    "controller-uid": uid, "job-name": "a",
                }},
                "spec": {"restartPolicy": "Never", "containers": [{"name": "a", "image": "a"}]},
            },
        },
        "status": {},
    })
}

#[test]
fn job_update_does_not_validate_the_generated_selector_since_1_37() {
    for minor in Minor::ALL {
        let cluster = cluster(minor, &["true"]);
        let old = job();
        let mut new = job();
        new["spec"]["selector"]["matchLabels"] = json!({"a": "b"});
        let said = answer(&update(&cluster, "", &new, &old));
        assert_eq!(said.contains("`selector` not auto-generated"), minor < Minor::V1_37, "{minor}: {said}");
        for part in ["`selector` does not match template `labels`", "field is immutable"] {
            assert!(said.contains(part), "{minor}: {said}");
        }
        let mut new = job();
        new["spec"]["template"]["metadata"]["labels"]["job-name"] = json!("b");
        let said = answer(&update(&cluster, "", &new, &old));
        assert_eq!(said.contains("must be 'a'"), minor < Minor::V1_37, "{minor}: {said}");
    }
}

#[test]
fn job_that_was_never_started_may_get_other_nodes() {
    let suspended = json!([{"type": "Suspended", "status": "True"}]);
    for minor in Minor::ALL {
        for (conditions, allowed) in [(json!([]), minor != Minor::V1_36), (suspended.clone(), true)] {
            let mut old = job();
            old["status"]["conditions"] = conditions;
            let mut new = old.clone();
            new["spec"]["template"]["spec"]["nodeSelector"] = json!({"disk": "ssd"});
            let said = answer(&update(&cluster(minor, &["true"]), "", &new, &old));
            assert_eq!(said == "allowed", allowed, "{minor}: {said}");
        }
    }
}

#[test]
fn update_without_a_resource_version_is_rejected_in_the_words_of_the_minor() {
    for minor in Minor::ALL {
        let binding = |version: Value| {
            json!({
                "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicyBinding",
                "metadata": {"name": "b", "uid": "u", "resourceVersion": version},
                "spec": {"policyName": "p", "validationActions": ["Deny"]},
            })
        };
        let said = answer(&update(&cluster(minor, &["true"]), "", &binding(Value::Null), &binding(json!("7"))));
        let zero = if minor < Minor::V1_34 { "0x0" } else { "0" };
        let wanted = format!("metadata.resourceVersion: Invalid value: {zero}: must be specified for an update");
        assert!(said.ends_with(&wanted), "{minor}: {said}");
    }
}
