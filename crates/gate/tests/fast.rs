//! The fast path: what complies is passed over by the policy's match condition, and nothing else is.
//!
//! That nothing is passed over in which something is violated, [`Validator::judge`] asks of each request in all tests.

use palisade_api::{ToolSecurityProfile, names::Shape};
use palisade_cel::eval::PER_CALL_LIMIT;
use palisade_compiler::{Compiled, Options};
use palisade_gate::{Decision, Judgement, Operation, ValidationRequest, Validator, check};
use palisade_kube_json::{
    pod,
    workload::{WORKLOADS, Workload},
};
use serde_json::{Value as Json, json};

use crate::support::ShapePolicy;

const TOOLFORGE: &str = include_str!("../../../examples/toolforge/profile.yaml");

fn toolforge() -> ToolSecurityProfile {
    let mut profile: ToolSecurityProfile = serde_saphyr::from_str(TOOLFORGE).unwrap();
    profile.spec.enforcement.workloads = serde_json::from_value(json!("Deny")).unwrap();
    profile
}

fn profile(spec: &Json) -> ToolSecurityProfile {
    let mut whole = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "x"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "enforcement": {"workloads": "Deny"}},
    });
    pod::merge(&mut whole["spec"], spec);
    serde_json::from_value(whole).unwrap()
}

fn compile(profile: &ToolSecurityProfile) -> Compiled {
    palisade_compiler::compile(profile).unwrap_or_else(|error| panic!("{error:?}"))
}

fn leaves_early(judgement: &Judgement) -> bool {
    assert!(judgement.matched || judgement.decision == Decision::Admit, "{judgement:?}");
    !judgement.matched
}

/// Every profile of the kind that people write: a pod that complies is passed over, as a pod and in each workload.
#[test]
fn compliant_pods_take_the_fast_path() {
    let profiles = vec![
        toolforge(),
        profile(&json!({})),
        profile(&json!({"baseline": "Baseline"})),
        profile(&json!({"exceptions": [{
            "namespaces": ["a"], "reason": "x", "expires": "2099-01-01T00:00:00Z", "checks": ["runAsNonRoot"],
        }]})),
        profile(&json!({"exemptions": {"users": ["alice"], "groups": ["admins"], "runtimeClasses": ["kata"]}})),
        profile(&json!({
            "parameters": [{"name": "registries", "type": "StringList", "default": "registry.example/team"}],
            "images": {"allowedRegistries": ["quay.io", "$registries"]},
        })),
        profile(&json!({"customChecks": [
            {"id": "own", "target": "Containers", "expression": "!has(container.tty) || !container.tty", "message": "x"},
            {"id": "other", "expression": "size(variables.spec.?hostname.orValue('')) < 9", "message": "x"},
            {"id": "volumes", "target": "Volumes", "expression": "volume.?emptyDir.?medium.orValue('') != 'Memory'",
             "message": "x"},
        ]})),
        // Quantities can be wrong, so it stands in the condition as it is written.
        profile(&json!({"customChecks": [{
            "id": "own", "target": "Containers", "message": "x",
            "expression": "quantity(string(container.?resources.?limits.?memory.orValue('1Gi'))).isLessThan(quantity('2Gi'))",
        }]})),
    ];
    for profile in profiles {
        let compiled = compile(&profile);
        let complying = &compiled.probes.compliant.pod;
        let pods = ShapePolicy::new(&compiled, Shape::Pods);
        assert!(leaves_early(&pods.creates("Pod", complying)), "{complying}\n{:?}", profile.spec);
        let workloads = ShapePolicy::new(&compiled, Shape::Workloads);
        for workload in &WORKLOADS {
            let object = workload.around("workload", complying);
            assert!(leaves_early(&workloads.creates(workload.kind, &object)), "{object}\n{:?}", profile.spec);
        }
    }
}

/// What an admin's own check may say and a match condition may not, or not so: the profile is accepted, and judges.
#[test]
fn check_without_a_fast_path_is_still_judged() {
    for (expression, admits) in [
        ("[?variables.spec.?hostname].all(x, x != 'a')", true),
        ("[?variables.spec.?hostname].size() == 1", false),
        ("'a' in [?variables.spec.?hostname]", false),
        ("variables.containers.exists(template, isQuantity(template.name)) || has(variables.spec.hostname)", false),
    ] {
        let spec = json!({"customChecks": [{"id": "own", "expression": expression, "message": "x"}]});
        let compiled = check(compile(&profile(&spec))).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let complying = &compiled.probes.compliant.pod;
        let object = WORKLOADS[0].around("workload", complying);
        for (shape, kind, object) in [(Shape::Pods, "Pod", complying), (Shape::Workloads, WORKLOADS[0].kind, &object)] {
            let judgement = ShapePolicy::new(&compiled, shape).creates(kind, object);
            assert_eq!(judgement.decision == Decision::Admit, admits, "{expression}, {kind}: {judgement:?}");
        }
    }
}

/// The cases that the red team tries on an API server (`tests/apiserver/tests/redteam/customs.rs`).
#[test]
fn custom_checks_get_the_same_verdict_with_the_fast_path() {
    let cases: Json =
        serde_saphyr::from_str(include_str!("../../../tests/apiserver/cases/custom/fast-path.yaml")).unwrap();
    for case in cases.as_array().unwrap() {
        let spec = json!({"baseline": "Privileged", "customChecks": case["checks"]});
        let compiled = check(compile(&profile(&spec))).unwrap_or_else(|error| panic!("{}: {error}", case["name"]));
        let judges = Shape::OF_PODS.map(|shape| ShapePolicy::new(&compiled, shape));
        for of in case["pods"].as_array().unwrap() {
            let mut object = pod::minimal("x");
            pod::merge(&mut object["spec"], &of["spec"]);
            if let Some(annotations) = of["metadata"].get("annotations") {
                object["metadata"]["annotations"] = annotations.clone();
            }
            let workload = WORKLOADS[0].around("workload", &object);
            for (judge, kind, object) in [(&judges[0], "Pod", &object), (&judges[1], WORKLOADS[0].kind, &workload)] {
                let admitted = judge.creates(kind, object).decision == Decision::Admit;
                assert_eq!(json!(admitted), of["admitted"], "{}, {kind}: {object}", case["name"]);
            }
        }
    }
}

/// An expression that fails denies, also where its value would not matter.
#[test]
fn pod_on_which_a_custom_check_fails_is_not_passed_over() {
    // Of containers with this name alone, so that the offline check accepts the profile.
    let fails = "(c.name == 'fails' ? c.workingDir == '' : true)";
    for expression in [
        format!("variables.spec.containers.all(c, {fails} ? true : true)"),
        format!("variables.spec.containers.filter(c, {fails}).all(c, true)"),
        format!("variables.spec.containers.filter(c, {fails}).size() <= 3"),
        format!("variables.spec.containers.map(c, {fails}, c.name).all(n, true)"),
        format!("variables.spec.containers.all(c, [{fails}].size() == 1)"),
        format!("variables.spec.containers.all(c, {{'a': {fails}}}.size() == 1)"),
        format!("variables.spec.containers.all(c, ({fails} ? [] : ['a']).all(x, true))"),
        format!("variables.spec.containers.all(c, {fails} == {fails})"),
        "variables.spec.?priority.orValue(0) + 9223372036854775807 > 0 ? true : true".to_owned(),
    ] {
        let spec = json!({"baseline": "Privileged", "customChecks": [{"id": "own", "expression": expression, "message": "m"}]});
        let compiled = check(compile(&profile(&spec))).unwrap_or_else(|error| panic!("{expression}: {error}"));
        let mut failing = pod::minimal("x");
        assert_eq!(
            ShapePolicy::new(&compiled, Shape::Pods).creates("Pod", &failing).decision,
            Decision::Admit,
            "{expression}"
        );
        failing["spec"]["containers"][0]["name"] = "fails".into();
        failing["spec"]["priority"] = 1.into();
        let workload = WORKLOADS[0].around("workload", &failing);
        for (shape, kind, object) in [(Shape::Pods, "Pod", &failing), (Shape::Workloads, WORKLOADS[0].kind, &workload)]
        {
            let policy = Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap();
            let found = policy.judge(&ValidationRequest::create(kind, object)).expect_err("it fails").to_string();
            assert!(!found.contains("excludes"), "{expression}, {kind}: {found}");
        }
    }
}

/// An update without parameters is judged by what it changes, also by checks that ask whether it is one.
#[test]
fn check_that_asks_for_missing_parameters_is_judged() {
    let mut spec = json!({
        "baseline": "Privileged", "parameters": [{"name": "uid", "type": "Integer", "default": 7}],
        "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
        // The policy for workloads has no such variable.
        "enforcement": {"workloads": "Off"},
    });
    let expression = "variables.updated ? !variables.spec.?shareProcessNamespace.orValue(false) : true";
    spec["customChecks"] = json!([{"id": "own", "expression": expression, "message": "m"}]);
    let compiled = check(compile(&profile(&spec))).unwrap();
    let policy = Validator::new(&compiled.bundle.pods.policy).unwrap();
    let (mut older, mut newer) = (compiled.probes.compliant.pod.clone(), compiled.probes.compliant.pod.clone());
    older["spec"]["activeDeadlineSeconds"] = 1.into();
    newer["spec"]["shareProcessNamespace"] = true.into();
    let update = ValidationRequest {
        operation: Operation::Update,
        old_object: &older,
        ..ValidationRequest::create("Pod", &newer)
    };
    let found = policy.judge(&update).unwrap();
    assert!(matches!(found.decision, Decision::Deny { .. }), "{found:?}");
    let params = json!({"spec": compiled.probes.params});
    let created = ValidationRequest { params: Some(&params), ..ValidationRequest::create("Pod", &newer) };
    assert_eq!(policy.judge(&created).unwrap().decision, Decision::Admit);
}

/// An administrator turns the fast path off, for a profile or for all.
#[test]
fn fast_path_can_be_turned_off() {
    let mut off = toolforge();
    off.spec.mutation.defaults = serde_json::from_value(json!("Secure")).unwrap();
    let with = compile(&off);
    off.metadata.annotations = Some([("toolsecurity.dev/fast-path".to_owned(), "Off".to_owned())].into());
    let by_annotation = compile(&off);
    off.metadata.annotations = None;
    let options = Options { fast_path: false, ..Options::default() };
    let by_option = palisade_compiler::compile_with(&off, options).unwrap();
    assert_eq!(by_annotation.bundle.pods.policy.spec, by_option.bundle.pods.policy.spec);
    for shape in Shape::OF_PODS {
        assert!(with.bundle.pair(shape).unwrap().has_fast_path());
        assert!(!by_annotation.bundle.pair(shape).unwrap().has_fast_path());
        let complying = &with.probes.compliant.pod;
        let object = if shape == Shape::Pods { complying.clone() } else { WORKLOADS[0].around("workload", complying) };
        let kind = if shape == Shape::Pods { "Pod" } else { WORKLOADS[0].kind };
        let [with, without] =
            [&with, &by_annotation].map(|compiled| ShapePolicy::new(compiled, shape).creates(kind, &object));
        assert_eq!(with.decision, without.decision);
        assert!(!with.matched && without.matched);
    }
    let conditions = |compiled: &Compiled| palisade_compiler::match_conditions(compiled.mutation.as_ref().unwrap());
    let asks = |compiled: &Compiled| conditions(compiled).iter().any(|one| one.expression.contains("'CREATE'"));
    assert!(asks(&with) && !asks(&by_annotation) && !asks(&by_option), "{:?}", conditions(&by_option));
    check(by_option).unwrap();

    off.metadata.annotations = Some([("toolsecurity.dev/fast-path".to_owned(), "off".to_owned())].into());
    let wrong = palisade_compiler::compile(&off).unwrap_err();
    assert_eq!(
        wrong[0].to_string(),
        r#"metadata.annotations[toolsecurity.dev/fast-path]: "off" is not a valid value (write On or Off)"#
    );
}

#[test]
fn violating_pod_is_judged_in_full() {
    let compiled = compile(&toolforge());
    let violating = &compiled.probes.violating.as_ref().unwrap().pod;
    let judgement = ShapePolicy::new(&compiled, Shape::Pods).creates("Pod", violating);
    assert!(judgement.matched && judgement.decision != Decision::Admit, "{judgement:?}");
}

/// What updates leave alone is not judged, whatever it violates, and with or without parameters.
#[test]
fn update_without_a_pod_spec_change_takes_the_fast_path() {
    let compiled = compile(&toolforge());
    let mut violating = compiled.probes.violating.as_ref().unwrap().pod.clone();
    pod::set(&mut violating, &["hostNetwork"], json!(true));
    let update = |judge: &ShapePolicy, kind: &str, object: &Json, old: &Json| {
        let request = ValidationRequest {
            operation: Operation::Update,
            old_object: old,
            ..ValidationRequest::create(kind, object)
        };
        judge.judge(&request)
    };
    let without = |shape| ShapePolicy::with(&compiled, shape, None);
    for judge in [ShapePolicy::new(&compiled, Shape::Pods), without(Shape::Pods)] {
        let mut labelled = violating.clone();
        labelled["metadata"]["labels"] = json!({"new": "label"});
        assert!(leaves_early(&update(&judge, "Pod", &labelled, &violating)));
        let mut changed = labelled.clone();
        pod::set(&mut changed, &["activeDeadlineSeconds"], json!(1));
        assert!(!leaves_early(&update(&judge, "Pod", &changed, &violating)));
    }
    let is_scaled = |workload: &&Workload| workload.kind == "Deployment";
    let deployment = WORKLOADS.iter().find(is_scaled).unwrap().around("workload", &violating);
    let mut scaled = deployment.clone();
    scaled["spec"]["replicas"] = 3.into();
    assert!(leaves_early(&update(&ShapePolicy::new(&compiled, Shape::Workloads), "Deployment", &scaled, &deployment)));
}

/// A namespace without parameters, or with a problem, denies although nothing in the pod is wrong.
#[test]
fn fast_path_is_not_taken_with_invalid_parameters() {
    let compiled = compile(&toolforge());
    let complying = &compiled.probes.compliant.pod;
    let mut judge = ShapePolicy::new(&compiled, Shape::Pods);
    judge.params.as_mut().unwrap()["spec"]["problem"] = "no uid".into();
    assert!(!leaves_early(&judge.creates("Pod", complying)));
}

fn with_containers(complying: &Json, count: usize) -> Json {
    let mut pod = complying.clone();
    let container = pod["spec"]["containers"][0].clone();
    let named = |index| {
        let mut container = container.clone();
        container["name"] = format!("c{index}").into();
        container
    };
    pod["spec"]["containers"] = (0..count).map(named).collect();
    pod
}

/// Each list as long as the fast path takes it, and one longer: then the policy judges in full, to the same end.
#[test]
fn lists_beyond_the_fast_path_are_judged_in_full() {
    let compiled = compile(&toolforge());
    let judge = ShapePolicy::new(&compiled, Shape::Pods);
    let complying = &compiled.probes.compliant.pod;
    for (count, early) in [(1, true), (20, true), (32, true), (33, false), (42, false), (100, false)] {
        let judgement = judge.creates("Pod", &with_containers(complying, count));
        assert_eq!(judgement.decision, Decision::Admit);
        assert_eq!(leaves_early(&judgement), early, "{count} containers");
    }
}

/// The longest lists that the condition takes, of volumes that are looked at in each mount of each container.
#[test]
fn the_condition_stays_within_its_budget() {
    let compiled = compile(&toolforge());
    let mut pod = with_containers(&compiled.probes.compliant.pod, 16);
    let name = |index: usize| format!("v{index:02}-{}", "x".repeat(59));
    pod["spec"]["volumes"] = (0..32)
        .map(|index| json!({"name": name(index), "hostPath": {"path": format!("/etc/ldap.conf/{}", "x".repeat(497))}}))
        .collect();
    let mounts: Json = (0..16).map(|index| json!({"name": name(index), "mountPath": "/x", "readOnly": true})).collect();
    let ports: Json = (0..16).map(|index| json!({"containerPort": 1000 + index})).collect();
    for container in pod["spec"]["containers"].as_array_mut().unwrap() {
        container["volumeMounts"] = mounts.clone();
        container["ports"] = ports.clone();
    }
    let mut init = pod["spec"]["containers"].clone();
    for (index, container) in init.as_array_mut().unwrap().iter_mut().enumerate() {
        container["name"] = format!("i{index}").into();
    }
    pod["spec"]["initContainers"] = init;
    let judgement = ShapePolicy::new(&compiled, Shape::Pods).creates("Pod", &pod);
    println!("{} of {PER_CALL_LIMIT}", judgement.matching);
    assert!(leaves_early(&judgement), "{:?}", judgement.decision);
    assert!(judgement.matching > 30_000 && judgement.matching < PER_CALL_LIMIT, "{}", judgement.matching);
}

/// A text costs by its length wherever something asks what it begins with, as some versions count it. The condition looks
/// at no longer ones, and is within its budget for as many prefixes as it has.
#[test]
fn long_texts_and_many_prefixes_stay_within_the_budget() {
    let registry = |n: usize| format!("r{n:02}.example/{}", "x".repeat(20));
    for count in [1, 24] {
        let registries: Vec<_> = (0..count).map(registry).collect();
        let compiled =
            compile(&profile(&json!({"baseline": "Privileged", "images": {"allowedRegistries": registries}})));
        let judge = ShapePolicy::new(&compiled, Shape::Pods);
        for (length, early) in [(60, true), (512, true), (513, false)] {
            let mut image = format!("{}/", registry(count - 1));
            image.push_str(&"x".repeat(length - image.len()));
            let mut pod = with_containers(&compiled.probes.compliant.pod, 32);
            pod::set_containers(&mut pod, &["image"], &json!(image));
            pod["spec"]["initContainers"] = pod["spec"]["containers"].clone();
            let judgement = judge.creates("Pod", &pod);
            println!("{count} registries, images of {length}: {} of {PER_CALL_LIMIT}", judgement.matching);
            assert!(judgement.matching < PER_CALL_LIMIT, "{length}: {}", judgement.matching);
            assert_eq!(
                (judgement.decision.clone(), leaves_early(&judgement)),
                (Decision::Admit, early),
                "{count} {length}"
            );
        }
    }
}

/// The gate finds a condition that passes over what it must not, and one that fails. That is no mistake of the profile,
/// which is enforced without it.
#[test]
fn gate_leaves_out_a_wrong_match_condition() {
    for wrong in [
        "false",
        // Asked of a pod without one.
        "object.spec.securityContext.runAsNonRoot == true",
        "has(object.spec.hostNetwork) && object.spec.hostNetwork",
        "no such expression",
    ] {
        for shape in Shape::OF_PODS {
            let mut compiled = compile(&toolforge());
            let pair = match shape {
                Shape::Pods => &mut compiled.bundle.pods,
                Shape::Workloads | Shape::Objects => compiled.bundle.workloads.as_mut().unwrap(),
            };
            let spec = pair.policy.spec.as_mut().unwrap();
            wrong.clone_into(&mut spec.match_conditions.as_mut().unwrap()[0].expression);
            let checked = check(compiled).unwrap_or_else(|rejected| panic!("{wrong}: {rejected}"));
            assert!(!checked.bundle.pair(shape).unwrap().has_fast_path(), "{wrong}");
        }
    }
    let checked = check(compile(&toolforge())).unwrap();
    assert!(Shape::OF_PODS.iter().all(|&shape| checked.bundle.pair(shape).unwrap().has_fast_path()));
}
