//! Who and what is not judged: exemptions, exceptions, and what stays as it is.

use palisade_api::{ToolSecurityParamsSpec, ToolSecurityProfile, names::Shape};
use palisade_compiler::{Compiled, compile};
use palisade_gate::{Decision, Operation, ValidationRequest, Validator, check};
use palisade_kube_json::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

fn compiled(spec: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Baseline"},
    });
    pod::merge(&mut profile["spec"], spec);
    let profile: ToolSecurityProfile = serde_json::from_value(profile).unwrap();
    let compiled = compile(&profile).unwrap();
    check(compiled.clone()).unwrap();
    compiled
}

fn policy(compiled: &Compiled, shape: Shape) -> Validator {
    Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap()
}

fn privileged() -> Json {
    let mut pod = pod::minimal("bad");
    pod::set_container(&mut pod, &["securityContext", "privileged"], json!(true));
    pod
}

#[track_caller]
fn admits(policy: &Validator, request: &ValidationRequest<'_>, expected: bool) {
    let decision = policy.evaluate(request).unwrap();
    assert_eq!(decision == Decision::Admit, expected, "{request:?}: {decision:?}");
}

#[test]
fn users_groups_and_runtime_classes_are_exempt_from_both_policies() {
    let compiled = compiled(&json!({"exemptions": {
        "users": ["system:serviceaccount:ops:deployer"], "groups": ["ops"], "runtimeClasses": ["kata"],
    }}));
    let mut confined = privileged();
    pod::set(&mut confined, &["runtimeClassName"], json!("kata"));
    let mut other = privileged();
    pod::set(&mut other, &["runtimeClassName"], json!("kata-2"));
    for shape in Shape::OF_PODS {
        let policy = policy(&compiled, shape);
        let shown = |pod: &Json| match shape {
            Shape::Pods => ("Pod", pod.clone()),
            Shape::Workloads | Shape::Objects => (WORKLOADS[0].kind, WORKLOADS[0].around("bad", pod)),
        };
        let (kind, bad) = shown(&privileged());
        let of = |user, groups| ValidationRequest { user, groups, ..ValidationRequest::create(kind, &bad) };
        admits(&policy, &of("tenant", &["system:authenticated"]), false);
        admits(&policy, &of("system:serviceaccount:ops:deployer", &[]), true);
        admits(&policy, &of("system:serviceaccount:ops:deployer2", &["ops2", "op"]), false);
        admits(&policy, &of("tenant", &["a", "ops"]), true);
        // The user's name is not a group, and a group is not a user.
        admits(&policy, &of("ops", &["system:serviceaccount:ops:deployer"]), false);
        admits(&policy, &ValidationRequest::create(kind, &shown(&confined).1), true);
        admits(&policy, &ValidationRequest::create(kind, &shown(&other).1), false);
        // In the namespace for probes nobody is exempt.
        let mut probe = bad.clone();
        probe["metadata"]["labels"] = json!({"toolsecurity.dev/profile": "test"});
        let asked = ValidationRequest {
            namespace: "palisade-probe",
            user: "system:serviceaccount:ops:deployer",
            ..ValidationRequest::create(kind, &probe)
        };
        admits(&policy, &asked, false);
    }
}

#[test]
fn mirror_pod_is_exempt_only_if_created_by_a_node() {
    let compiled = compiled(&json!({}));
    let policy = policy(&compiled, Shape::Pods);
    let mut mirror = privileged();
    mirror["metadata"]["annotations"] = json!({"kubernetes.io/config.mirror": "hash"});
    let bad = privileged();
    let of = |object, user, groups| ValidationRequest { user, groups, ..ValidationRequest::create("Pod", object) };
    admits(&policy, &of(&mirror, "system:node:worker-1", &["system:nodes", "system:authenticated"]), true);
    admits(&policy, &of(&bad, "system:node:worker-1", &["system:nodes", "system:authenticated"]), false);
    admits(&policy, &of(&mirror, "tenant", &["system:nodes"]), false);
    admits(&policy, &of(&mirror, "system:node:worker-1", &["system:authenticated"]), false);
    admits(&policy, &of(&mirror, "tenant", &["system:authenticated"]), false);
}

#[test]
fn exception_suspends_its_check_until_it_expires() {
    let compiled = compiled(&json!({"exceptions": [
        {"namespaces": ["tool-a"], "checks": ["privileged"], "reason": "a driver", "expires": "2026-06-01T00:00:00Z"},
        {"namespaces": ["tool-a", "tool-b"], "checks": ["hostNamespaces"], "reason": "x", "expires": "2026-07-01T00:00:00+02:00"},
    ]}));
    let at = |now: &str| now.parse().unwrap();
    let params = |namespace: &str, now| {
        let namespace = palisade_compiler::Namespace { name: namespace.to_owned(), ..Default::default() };
        json!({"spec": compiled.params(&namespace, [], at(now)).unwrap().spec})
    };
    let before = params("tool-a", "2026-05-31T23:59:59Z");
    assert_eq!(
        before["spec"]["exceptions"],
        json!({"privileged": "2026-06-01T00:00:00Z", "hostNamespaces": "2026-06-30T22:00:00Z"})
    );
    assert_eq!(
        params("tool-b", "2026-01-01T00:00:00Z")["spec"]["exceptions"],
        json!({"hostNamespaces": "2026-06-30T22:00:00Z"})
    );
    assert_eq!(
        params("tool-a", "2026-06-01T00:00:00Z")["spec"]["exceptions"],
        json!({"hostNamespaces": "2026-06-30T22:00:00Z"})
    );
    assert!(params("tool-a", "2026-08-01T00:00:00Z")["spec"].get("exceptions").is_none());
    assert_eq!(compiled.exceptions.next_end(at("2026-06-01T00:00:00Z")), Some(at("2026-06-30T22:00:00Z")));
    let counts = compiled.exceptions.counts(at("2026-06-01T00:00:00Z")).unwrap();
    assert_eq!((counts.active, counts.expired), (1, 1));

    for shape in Shape::OF_PODS {
        let policy = policy(&compiled, shape);
        let created = |pod: &Json, time: &str| {
            let (kind, mut object) = match shape {
                Shape::Pods => ("Pod", pod.clone()),
                Shape::Workloads | Shape::Objects => ("CronJob", WORKLOADS[5].around("bad", pod)),
            };
            object["metadata"]["creationTimestamp"] = time.into();
            (kind, object)
        };
        let judge = |pod: &Json, time: &str, params: &Json, expected: bool| {
            let (kind, object) = created(pod, time);
            admits(
                &policy,
                &ValidationRequest { params: Some(params), ..ValidationRequest::create(kind, &object) },
                expected,
            );
        };
        judge(&privileged(), "2026-05-31T23:59:59Z", &before, true);
        // Nobody has taken the exception away, and still it is over.
        judge(&privileged(), "2026-06-01T00:00:00Z", &before, false);
        judge(&privileged(), "2026-05-31T23:59:59Z", &params("tool-b", "2026-01-01T00:00:00Z"), false);
        judge(&privileged(), "2026-05-31T23:59:59Z", &params("tool-c", "2026-01-01T00:00:00Z"), false);
        // Other checks are made.
        let mut both = privileged();
        pod::set(&mut both, &["volumes"], json!([{"name": "root", "hostPath": {"path": "/"}}]));
        judge(&both, "2026-05-31T23:59:59Z", &before, false);
    }
    // A malformed namespace is denied, whatever is excepted.
    let mut broken = ToolSecurityParamsSpec::denying("no uid");
    broken.exceptions.insert("privileged".to_owned(), "2027-01-01T00:00:00Z".to_owned());
    let broken = json!({"spec": broken});
    let mut object = pod::minimal("good");
    object["metadata"]["creationTimestamp"] = "2026-05-01T00:00:00Z".into();
    let request = ValidationRequest { params: Some(&broken), ..ValidationRequest::create("Pod", &object) };
    admits(&policy(&compiled, Shape::Pods), &request, false);
}

#[test]
fn workloads_are_judged_only_when_their_template_changes() {
    let compiled = compiled(&json!({}));
    let policy = policy(&compiled, Shape::Workloads);
    for workload in &WORKLOADS {
        let (good, bad) = (workload.around("app", &pod::minimal("x")), workload.around("app", &privileged()));
        admits(&policy, &ValidationRequest::create(workload.kind, &good), true);
        admits(&policy, &ValidationRequest::create(workload.kind, &bad), false);
        let Decision::Deny { message, .. } = policy.evaluate(&ValidationRequest::create(workload.kind, &bad)).unwrap()
        else {
            unreachable!()
        };
        assert!(
            message.starts_with(
                "1 violation of ToolSecurityProfile test in the pod template: [privileged] container \"main\": "
            ),
            "{message}"
        );
        let update = |object, old_object| ValidationRequest {
            operation: Operation::Update,
            old_object,
            ..ValidationRequest::create(workload.kind, object)
        };
        let mut scaled = bad.clone();
        scaled["metadata"]["annotations"] = json!({"scaled": "by"});
        if workload.kind != "PodTemplate" {
            scaled["spec"]["replicas"] = json!(7);
        }
        admits(&policy, &update(&scaled, &bad), true);
        admits(&policy, &update(&bad, &good), false);
        admits(&policy, &update(&good, &bad), true);
        // Where the template is in another kind, there is nothing: it must not be mistaken for a template.
        let mut forged = bad.clone();
        let decoy = json!({"metadata": {}, "spec": pod::minimal("x")["spec"]});
        forged["template"] = if workload.kind == "PodTemplate" { forged["template"].clone() } else { decoy };
        admits(&policy, &ValidationRequest::create(workload.kind, &forged), false);
    }
    let without = json!({"apiVersion": "v1", "kind": "ReplicationController", "metadata": {"name": "x"}, "spec": {"replicas": 1}});
    admits(&policy, &ValidationRequest::create("ReplicationController", &without), true);
}
