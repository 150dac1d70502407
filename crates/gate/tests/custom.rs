//! An admin's own checks: what they find, and the messages about those that are wrong.

use palisade_api::{ToolSecurityProfile, names::Shape};
use palisade_compiler::{Compiled, compile};
use palisade_gate::{Decision, Rejected, ValidationRequest, Validator, check};
use palisade_kube_json::{pod, workload::WORKLOADS};
use serde_json::{Value as Json, json};

fn compiled(custom: &Json) -> Compiled {
    let profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged",
            "parameters": [{"name": "team", "type": "String", "default": "none"}],
            "exceptions": [{"namespaces": ["n"], "checks": ["own"], "reason": "r", "expires": "2030-01-01T00:00:00Z"}],
            "customChecks": [custom],
        },
    });
    compile(&serde_json::from_value::<ToolSecurityProfile>(profile).unwrap()).unwrap()
}

fn refused(custom: &Json) -> String {
    let Rejected { diagnostics } = check(compiled(custom)).unwrap_err();
    let texts: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
    texts.join("\n")
}

/// The message with which both policies deny a pod in a namespace; empty if they admit it.
fn denial(custom: &Json, namespace: &str, pod: &Json) -> String {
    let compiled = compiled(custom);
    let compiled = check(compiled).unwrap();
    let params = json!({"spec": compiled.probes.params});
    let template = WORKLOADS[0].around("name", pod);
    let [pods, workloads] =
        [(Shape::Pods, "Pod", pod), (Shape::Workloads, WORKLOADS[0].kind, &template)].map(|(shape, kind, object)| {
            let policy = Validator::new(&compiled.bundle.pair(shape).unwrap().policy).unwrap();
            let mut object = object.clone();
            object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
            let request =
                ValidationRequest { namespace, params: Some(&params), ..ValidationRequest::create(kind, &object) };
            match policy.evaluate(&request).unwrap() {
                Decision::Admit => String::new(),
                Decision::Deny { message, .. } => message.replace(" in the pod template", ""),
            }
        });
    assert_eq!(pods, workloads);
    pods
}

#[test]
fn custom_check_judges_and_names_every_target() {
    let mut bad = pod::minimal("bad");
    pod::set(
        &mut bad,
        &["volumes"],
        json!([{"name": "v", "emptyDir": {}}, {"name": "s", "secret": {"secretName": "s"}}]),
    );
    pod::set(&mut bad, &["hostNetwork"], json!(true));
    let of = |target: &str, expression: &str, message: &Json| {
        let mut custom = json!({"id": "own", "target": target, "expression": expression});
        pod::merge(&mut custom, message);
        denial(&custom, "tenant", &bad)
    };
    assert_eq!(
        of("Pod", "!variables.spec.?hostNetwork.orValue(false) // why\n", &json!({"message": "it's\nnot allowed"})),
        "1 violation of ToolSecurityProfile test: [own] pod: it's not allowed"
    );
    let message =
        json!({"messageExpression": "'image ' +\ncontainer.image + ' of team ' + params.spec.strings['team'] // x"});
    let found = of("Containers", "container.image.startsWith('registry.example/')", &message);
    assert!(found.contains("[own] container \"") && found.ends_with(" of team none"), "{found}");
    assert_eq!(
        of("Volumes", "has(volume.emptyDir)", &json!({"message": "must be an emptyDir"})),
        "1 violation of ToolSecurityProfile test: [own] volume \"s\": must be an emptyDir"
    );
    assert_eq!(of("Volumes", "volume.name != ''", &json!({"message": "m"})), "");
    // Where nobody knows a pod that complies, nothing is probed.
    let custom = json!({"id": "own", "expression": "false", "message": "never"});
    assert_eq!(denial(&custom, "palisade-probe", &bad), "");
    assert!(denial(&custom, "tenant", &bad).ends_with("[own] pod: never"));
}

#[test]
fn custom_check_error_is_located_in_the_profile() {
    let cases = [
        (
            json!({"expression": "variables.spec.hostNetwork ==", "message": "m"}),
            "spec.customChecks[0].expression:1:30: ",
        ),
        (
            json!({"expression": "true &&\n  variabels.spec.hostNetwork", "message": "m"}),
            "spec.customChecks[0].expression:2:3: undeclared reference to 'variabels'",
        ),
        (json!({"expression": "variables.spec.hostNetwork", "message": "m"}), "must evaluate to bool but got dyn"),
        (json!({"expression": "true", "messageExpression": "1"}), "spec.customChecks[0].messageExpression"),
        // Well formed only together with what stands around it in the policy.
        (json!({"expression": "true) || (true", "message": "m"}), "spec.customChecks[0].expression:1:5: "),
        (
            json!({"target": "Volumes", "expression": "container.name == ''", "message": "m"}),
            "undeclared reference to 'container'",
        ),
        (
            json!({"expression": "authorizer.group('').resource('pods').check('get').allowed()", "message": "m"}),
            "'authorizer'",
        ),
        // Typed by the schema.
        (
            json!({"expression": "true ||\n object.spec.hostNetwrok", "message": "m"}),
            "spec.customChecks[0].expression:2:13: undefined field 'hostNetwrok'",
        ),
        (
            json!({"expression": "!has(object.spec.hostNetwork)", "message": "m"}),
            "variables.spec is the spec of a pod or of a pod template",
        ),
        // On some pod.
        (
            json!({"target": "Containers", "expression": "container.securityContext.privileged == false", "message": "m"}),
            "spec.customChecks[0].expression: evaluation failed: no such key: securityContext",
        ),
        (
            json!({"expression": "false", "messageExpression": "variables.spec.nodeName"}),
            "spec.customChecks[0].messageExpression",
        ),
    ];
    for (mut custom, expected) in cases {
        custom["id"] = "own".into();
        let found = refused(&custom);
        assert!(found.contains(expected), "{custom}\nexpected: {expected}\nfound: {found}");
        assert!(!found.contains("policy.spec"), "{found}");
    }
}

/// The message with which the policy for pods denies a pod in this namespace; empty if it admits it. That its match
/// condition excludes no such pod is part of judging.
fn denial_in(compiled: &Compiled, namespace: &Json, pod: &Json) -> String {
    let policy = Validator::new(&compiled.bundle.pods.policy).unwrap();
    let params = json!({"spec": compiled.probes.params});
    let mut pod = pod.clone();
    pod["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
    let namespace = Some(namespace);
    let request = ValidationRequest {
        params: Some(&params),
        namespace_object: namespace,
        ..ValidationRequest::create("Pod", &pod)
    };
    match policy.evaluate(&request).unwrap() {
        Decision::Admit => String::new(),
        Decision::Deny { message, .. } => message,
    }
}

/// Match conditions do not see the namespace, so a check that reads it is no part of one.
#[test]
fn a_check_may_read_the_namespace() {
    let expression =
        "namespaceObject.metadata.?labels[?'tier'].orValue('') == 'lab' || !variables.spec.?hostNetwork.orValue(false)";
    let message = "'only labs may, and ' + namespaceObject.metadata.name + ' is ' \
                   + namespaceObject.metadata.?annotations[?'owner'].orValue('nobody') + '\\'s'";
    let of = |labels: &Json, annotations: &Json| {
        let texts = |of: &Json| serde_json::from_value(of.clone()).unwrap();
        palisade_gate::namespace("tenant", &texts(labels), &texts(annotations))
    };
    let plain = pod::minimal("plain");
    let mut network = plain.clone();
    pod::set(&mut network, &["hostNetwork"], json!(true));
    for expression in [
        expression.to_owned(),
        // Of these, no test without the namespace is sufficient.
        format!("[{expression}].all(x, x)"),
        format!("({expression}) ? namespaceObject.metadata.name != '' : namespaceObject.metadata.name == ''"),
    ] {
        let custom = json!({"id": "own", "expression": expression, "messageExpression": message});
        let compiled = compiled(&custom);
        palisade_gate::check(compiled.clone()).unwrap_or_else(|error| panic!("{expression}: {error}"));
        for pair in compiled.bundle.pairs().map(|(_, pair)| pair) {
            let spec = pair.policy.spec.as_ref().unwrap();
            let conditions = spec.match_conditions.iter().flatten();
            assert!(!conditions.clone().any(|one| one.expression.contains("namespaceObject")), "{expression}");
        }
        let found = denial_in(&compiled, &of(&json!({}), &json!({"owner": "ann"})), &network);
        assert!(found.ends_with("[own] pod: only labs may, and tenant is ann's"), "{expression}: {found}");
        let found = denial_in(&compiled, &of(&json!({"tier": "prod"}), &json!({})), &network);
        assert!(found.ends_with("only labs may, and tenant is nobody's"), "{expression}: {found}");
        assert_eq!(denial_in(&compiled, &of(&json!({"tier": "lab"}), &json!({})), &network), "", "{expression}");
        assert_eq!(denial_in(&compiled, &of(&json!({}), &json!({})), &plain), "", "{expression}");
    }
    // Of each container, and by a label that each namespace of the profile has.
    let custom = json!({
        "id": "own", "target": "Containers", "message": "m",
        "expression": "container.image.startsWith(namespaceObject.metadata.labels['a'] + '.example/')",
    });
    let compiled = compiled(&custom);
    check(compiled.clone()).unwrap();
    assert!(denial_in(&compiled, &of(&json!({"a": "b"}), &json!({})), &plain).contains("[own] container"));
    let image = plain["spec"]["containers"][0]["image"].as_str().unwrap();
    let own = json!({"a": image.split_once(".invalid").unwrap().0});
    let mut there = plain.clone();
    pod::set_container(&mut there, &["image"], image.replace(".invalid", ".example").into());
    assert_eq!(denial_in(&compiled, &of(&own, &json!({})), &there), "");
}

#[test]
fn a_label_that_a_namespace_need_not_have_is_a_mistake() {
    for expression in
        ["namespaceObject.metadata.labels['tier'] != 'lab'", "namespaceObject.metadata.annotations.size() == 0"]
    {
        let found = refused(&json!({"id": "own", "expression": expression, "message": "m"}));
        assert!(found.starts_with("spec.customChecks[0].expression: evaluation failed: no such key: "), "{found}");
        assert!(found.contains("namespaceObject.metadata.?annotations[?'tier'].orValue('')"), "{found}");
    }
    let custom = json!({"id": "own", "expression": "namespaceObject.metadata.lables.size() == 0", "message": "m"});
    assert!(refused(&custom).contains("undefined field 'lables'"));
}

/// No pod is known to violate a custom check. Without other checks, policies deny the probe by its name, also beside a
/// fast path that would skip it, and where checks have a separate stage.
#[test]
fn profile_of_custom_checks_alone_has_probes() {
    let of = |target: &str, expression: &str| json!({"id": format!("of{target}"), "target": target, "message": "no", "expression": expression});
    let (of_pod, of_containers) =
        (of("Pod", "!has(variables.spec.hostNetwork)"), of("Containers", "has(container.image)"));
    for (checks, stages) in [
        (json!([of_pod]), json!({"workloads": "Deny"})),
        (json!([of_containers]), json!({})),
        (json!([of("Volumes", "volume.name != 'a'")]), json!({})),
        (json!([of("Pod", "1 == 1")]), json!({})),
        (json!([of_pod, of_containers]), json!({"pods": "Warn", "checks": {"ofPod": "Deny"}})),
        (json!([of_pod, of_containers]), json!({"checks": {"ofPod": "Audit"}})),
        (json!([of_pod, of_containers]), json!({"pods": "Audit", "checks": {"ofPod": "Audit"}})),
    ] {
        let profile = json!({
            "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
            "spec": {
                "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Privileged", "enforcement": stages,
                "customChecks": checks,
            },
        });
        let compiled = compile(&serde_json::from_value::<ToolSecurityProfile>(profile).unwrap()).unwrap();
        // The gate asks each policy for its answers to the probes.
        let checked = check(compiled).unwrap_or_else(|rejected| panic!("{stages}: {rejected}"));
        for (part, pair) in checked.bundle.pairs() {
            assert!(pair.has_fast_path(), "{stages} {part:?}");
            let question = checked.probes.question(part).unwrap();
            let kind = question.violating["kind"].as_str().unwrap();
            let policy = Validator::new(&pair.policy).unwrap();
            let admits = |namespace: &str, object: &Json| {
                let mut object = object.clone();
                object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
                let request = ValidationRequest { namespace, ..ValidationRequest::create(kind, &object) };
                policy.evaluate(&request).unwrap() == Decision::Admit
            };
            let answers = ["palisade-probe", "tenant"]
                .map(|namespace| [&question.compliant, &question.violating].map(|object| admits(namespace, object)));
            assert_eq!(answers, [[true, false], [true, true]], "{stages} {part:?}");
        }
    }
}

/// A policy has the variables of the catalogue that its custom checks read, however they write the names, and no others.
#[test]
fn policies_have_the_variables_that_custom_checks_read() {
    let all = ["podSecurityContext", "containers", "volumes", "annotations"];
    for (expression, expected) in [
        ("1 == 1", &[][..]),
        ("variables.volumes.size() < 3", &["volumes"]),
        ("variables\n  // it's a list\n  . volumes.size() < 3", &["volumes"]),
        ("has(variables.volumes)", &["volumes"]),
        ("variables.podSecurityContext == {} && variables.annotations == {}", &["podSecurityContext", "annotations"]),
        // A string and a loop variable name no variable of the policy.
        ("'variables.volumes' != variables.annotations[?'a'].orValue('')", &["annotations"]),
    ] {
        let custom = json!({"id": "own", "expression": expression, "message": "no"});
        let compiled = compiled(&custom);
        let policy = compiled.bundle.pods.policy.spec.as_ref().unwrap();
        let names: Vec<_> = policy.variables.iter().flatten().map(|one| one.name.as_str()).collect();
        let found: Vec<_> = all.into_iter().filter(|name| names.contains(name)).collect();
        // Exempt requests are known by annotations, and the limits of lists are those of all of a pod's lists.
        assert!(expected.iter().all(|name| found.contains(name)), "{expression}: {found:?}");
        assert_eq!(found.contains(&"podSecurityContext"), expected.contains(&"podSecurityContext"), "{expression}");
        check(compiled).unwrap_or_else(|rejected| panic!("{expression}: {rejected}"));
    }
    // The names that no policy has are errors, with or without other checks.
    let custom = json!({"id": "own", "expression": "variables.volums == []", "message": "no"});
    assert!(refused(&custom).contains("undefined field 'volums'"), "{}", refused(&custom));
}
