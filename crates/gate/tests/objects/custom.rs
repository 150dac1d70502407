//! Custom checks with target Object.

use palisade_api::names;

use super::*;

fn spec() -> Json {
    json!({
        "parameters": [{"name": "team", "type": "String", "default": "none"}],
        "customChecks": [
            {
                "id": "serviceTypes", "target": "Object", "message": "the type must be ClusterIP",
                "kinds": [{"versions": ["v1"], "resource": "services"}],
                "expression": "object.spec.type == 'ClusterIP'",
            },
            {
                "id": "teamOfConfig", "target": "Object",
                "messageExpression": "'label team must be ' + params.spec.strings['team'] + ' and not ' + object.metadata.?labels[?'team'].orValue('')",
                "kinds": [
                    {"versions": ["v1"], "resource": "configmaps"},
                    {"group": "example.org", "versions": ["v1"], "resource": "widgets", "operations": ["CREATE"]},
                ],
                "expression": "object.metadata.?labels[?'team'].orValue('') == params.spec.strings['team']",
            },
            {
                "id": "sizeOfWidgets", "target": "Object", "message": "the size must not shrink, or be above 9",
                "kinds": [{"group": "example.org", "versions": ["v1"], "resource": "widgets"}],
                "expression": "// why\nobject.spec.size <= 9 &&\n(request.operation != 'UPDATE' || object.spec.size >= oldObject.spec.size)",
            },
        ],
    })
}

fn widget(size: i64, team: &str) -> Json {
    with(
        &object("example.org/v1", "Widget", &json!({"spec": {"size": size}})),
        "/metadata/labels",
        json!({"team": team}),
    )
}

#[test]
fn each_check_evaluates_its_kinds_and_one_denial_has_all_violations() {
    let compiled = compiled(&spec());
    for minor in Minor::ALL {
        let server = Enforced::complete(minor, &compiled);
        assert_eq!(server.create(&service("ClusterIP")), "");
        assert_eq!(
            server.create(&service("NodePort")),
            "1 violation of ToolSecurityProfile test: [serviceTypes] Service: the type must be ClusterIP"
        );
        let config = object("v1", "ConfigMap", &json!({"data": {"a": "b"}}));
        let denied =
            "1 violation of ToolSecurityProfile test: [teamOfConfig] ConfigMap: label team must be none and not";
        assert_eq!(server.create(&config), denied);
        assert_eq!(server.create(&with(&config, "/metadata/labels", json!({"team": "none"}))), "");
        // A kind without a schema.
        assert_eq!(server.create(&widget(9, "none")), "");
        assert_eq!(
            server.create(&widget(10, "x")),
            "2 violations of ToolSecurityProfile test: [teamOfConfig] Widget: label team must be none and not x; \
             [sizeOfWidgets] Widget: the size must not shrink, or be above 9"
        );
        // Kinds that no check names, and namespaces that the profile does not select.
        assert_eq!(server.create(&object("v1", "Secret", &json!({}))), "");
        assert_eq!(server.create(&with(&service("NodePort"), "/metadata/namespace", json!("other"))), "");
    }
}

#[test]
fn operations_and_versions_of_a_kind_are_those_of_the_check() {
    let compiled = compiled(&spec());
    for minor in Minor::ALL {
        let server = Enforced::complete(minor, &compiled);
        // The check of the label evaluates creation only.
        assert_eq!(server.update(&widget(5, "x"), &widget(5, "none")), "");
        assert_eq!(server.update(&widget(6, "x"), &widget(5, "none")), "");
        let shrunk =
            "1 violation of ToolSecurityProfile test: [sizeOfWidgets] Widget: the size must not shrink, or be above 9";
        assert_eq!(server.update(&widget(4, "x"), &widget(5, "none")), shrunk);
        // A request in another version is converted.
        let other = |size| with(&widget(size, "none"), "/apiVersion", json!("example.org/v2"));
        assert_eq!(server.create(&other(9)), "");
        assert_eq!(server.create(&other(10)), shrunk);
    }
}

#[test]
fn a_subresource_is_evaluated_only_if_it_is_named() {
    let of = |subresources: Json| {
        compiled(&json!({"customChecks": [{
            "id": "phases", "target": "Object", "message": "unknown phase",
            "kinds": [{"group": "example.org", "versions": ["v1"], "resource": "widgets", "subresources": subresources}],
            "expression": "object.?status.?phase.orValue('') in ['', 'Ready']",
        }]}))
    };
    let [good, bad] =
        ["Ready", "Odd"].map(|phase| object("example.org/v1", "Widget", &json!({"status": {"phase": phase}})));
    for minor in Minor::ALL {
        let status = |subresources| {
            let server = Enforced::complete(minor, &of(subresources));
            [(&bad, &good), (&good, &bad), (&bad, &bad)]
                .map(|(object, old)| server.denial(Operation::Update, "status", object, Some(old)))
        };
        let denied = "1 violation of ToolSecurityProfile test: [phases] Widget: unknown phase";
        assert_eq!(status(json!([])), ["", "", ""]);
        assert_eq!(status(json!(["status"])), [denied, "", ""]);
    }
}

#[test]
fn parameters_that_are_missing_or_invalid_deny_only_the_kinds_of_checks_that_read_them() {
    let compiled = compiled(&spec());
    let (config, released) = (object("v1", "ConfigMap", &json!({"data": {"a": "b"}})), service("ClusterIP"));
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &compiled, None);
        for created in [&config, &service("ClusterIP")] {
            assert!(server.create(created).contains("no params found"), "{}", server.create(created));
        }
        assert_eq!(server.create(&object("v1", "Secret", &json!({}))), "");
        // A namespace that is being deleted may have lost its parameters. Checks that read none are evaluated.
        let denied = "1 violation of ToolSecurityProfile test: [serviceTypes] Service: the type must be ClusterIP";
        assert_eq!(server.update(&service("NodePort"), &released), denied);
        assert_eq!(server.update(&with(&config, "/data/a", json!("c")), &config), "");
        assert_eq!(server.update(&service("NodePort"), &service("NodePort")), "");
        assert_eq!(server.update(&released, &with(&released, "/metadata/finalizers", json!(["example.com/a"]))), "");
        let problem = json!(palisade_api::ToolSecurityParamsSpec::denying("a problem"));
        let server = Enforced::new(minor, &compiled, Some(&problem));
        assert_eq!(
            server.create(&config),
            "1 violation of ToolSecurityProfile test: [parameters] namespace: a problem"
        );
        assert_eq!(server.create(&service("ClusterIP")), "");
    }
}

#[test]
fn exceptions_and_exemptions_hold_for_objects() {
    let mut spec = spec();
    spec["exceptions"] = json!([{
        "namespaces": ["tool-weather"], "checks": ["serviceTypes"], "reason": "r", "expires": "2027-01-01T00:00:00Z",
    }]);
    let excepted = compiled(&spec);
    let mut params = excepted.probes.params.clone().unwrap();
    params.exceptions = [("serviceTypes".to_owned(), "2027-01-01T00:00:00Z".to_owned())].into();
    let exempt = compiled(
        &json!({"exemptions": {"users": ["editor"]}, "customChecks": spec["customChecks"], "parameters": spec["parameters"]}),
    );
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &excepted, Some(&json!(params)));
        assert_eq!(server.create(&service("NodePort")), "");
        let late = with(&service("NodePort"), "/metadata/creationTimestamp", json!("2027-01-01T00:00:00Z"));
        assert!(server.create(&late).contains("[serviceTypes]"), "{}", server.create(&late));
        assert_eq!(Enforced::complete(minor, &exempt).create(&service("NodePort")), "");
    }
}

#[test]
fn stages_of_objects_are_those_of_the_profile() {
    let actions = |enforcement: Json| {
        let mut spec = spec();
        spec["enforcement"] = enforcement;
        spec["privileges"] = json!({"privileged": false});
        let bundle = compiled(&spec).bundle;
        let of = |pair: Option<&palisade_compiler::PolicyWithBindings>| {
            pair.map(|pair| pair.binding.spec.validation_actions.join(","))
        };
        [of(bundle.objects.as_deref()), of(bundle.checks_of_objects.as_deref()), of(bundle.checks_of_pods.as_deref())]
            .map(Option::unwrap_or_default)
    };
    assert_eq!(actions(json!({})), ["Deny", "", ""]);
    assert_eq!(actions(json!({"pods": "Audit"})), ["Audit", "", ""]);
    assert_eq!(actions(json!({"pods": "Audit", "objects": "Warn"})), ["Warn,Audit", "", ""]);
    assert_eq!(actions(json!({"objects": "Off"})), ["", "", ""]);
    // A check with a separate stage is in a separate policy; there is none for pods, which have no such check.
    assert_eq!(actions(json!({"pods": "Warn", "checks": {"serviceTypes": "Deny"}})), ["Warn,Audit", "Deny", ""]);
    let all = json!({"serviceTypes": "Audit", "teamOfConfig": "Audit", "sizeOfWidgets": "Audit"});
    assert_eq!(actions(json!({"checks": all, "workloads": "Off"})), ["", "Audit", ""]);
}

#[test]
fn a_profile_without_checks_of_objects_has_no_policy_for_them() {
    let bundle = compiled(&json!({"enforcement": {"objects": "Deny"}})).bundle;
    assert!(bundle.objects.is_none() && bundle.checks_of_objects.is_none());
    // The checks of objects change nothing of the policies for pods.
    let with_objects = spec();
    let mut without = with_objects.clone();
    without.as_object_mut().unwrap().remove("customChecks");
    let [with_objects, without] = [&with_objects, &without].map(|spec| compiled(spec).bundle);
    assert_eq!((&with_objects.pods, &with_objects.workloads), (&without.pods, &without.workloads));
    assert!(
        with_objects
            .objects
            .is_some_and(|pair| pair.policy.metadata.name == Some(names::policy("test", names::Shape::Objects)))
    );
}

#[test]
fn mistakes_have_their_place_in_the_profile() {
    let of = |change: Json| {
        let mut custom = json!({
            "id": "own", "target": "Object", "message": "m", "expression": "true",
            "kinds": [{"versions": ["v1"], "resource": "services"}],
        });
        for (key, value) in change.as_object().unwrap() {
            custom[key] = value.clone();
        }
        rejected(&json!({"customChecks": [custom]}))
    };
    for (change, expected) in [
        (json!({"kinds": []}), "spec.customChecks[0].kinds: is required with target Object"),
        (json!({"target": "Pod"}), "spec.customChecks[0].kinds: is only allowed with target Object"),
        (
            json!({"kinds": [{"versions": ["v1"], "resource": "pods"}]}),
            "kinds[0].resource: must not be pods (write a custom check with target: Pod",
        ),
        (
            json!({"kinds": [{"versions": ["*"], "resource": "services"}]}),
            "kinds[0].versions[0]: \"*\" is not an API version",
        ),
        (
            json!({"kinds": [{"versions": ["v1"], "resource": "services/status"}]}),
            "kinds[0].resource: \"services/status\" is not",
        ),
        (
            json!({"kinds": [{"group": "*", "versions": ["v1"], "resource": "services"}]}),
            "kinds[0].group: \"*\" is not an API group",
        ),
        (
            json!({"kinds": [{"versions": ["v1"], "resource": "namespaces"}]}),
            "kinds[0].resource: namespaces are not namespaced",
        ),
        (
            json!({"kinds": [{"group": "networking.k8s.io", "versions": ["v1"], "resource": "ingress"}]}),
            "Kubernetes has no resource ingress.networking.k8s.io",
        ),
        (json!({"expression": "object.spec.type =="}), "spec.customChecks[0].expression:1:20: "),
        (json!({"expression": "variables.spec.x"}), "spec.customChecks[0].expression:1:10: undefined field 'spec'"),
        (
            json!({"expression": "true &&\n object.spec.tipe == ''"}),
            "spec.customChecks[0].expression:2:13: undefined field 'tipe' (/v1, Kind=Service)",
        ),
        (json!({"expression": "object.spec.type"}), "must evaluate to bool"),
        (json!({"default": {"path": "a", "value": "b"}}), "a check of volumes or objects cannot have a default"),
    ] {
        let found = of(change.clone());
        assert!(found.contains(expected), "{change}: {found}");
    }
    let kinds = |one: Json, other: Json| {
        let custom = |id: &str, kinds: Json| json!({"id": id, "target": "Object", "message": "m", "expression": "true", "kinds": kinds});
        rejected(&json!({"customChecks": [custom("a", one), custom("b", other)]}))
    };
    let widgets = |versions: Json| json!([{"group": "example.org", "versions": versions, "resource": "widgets"}]);
    let found = kinds(widgets(json!(["v1"])), widgets(json!(["v1", "v2"])));
    assert!(
        found.contains("spec.customChecks[1].kinds[0].versions: another check evaluates widgets in versions v1 ("),
        "{found}"
    );
    let routes = |versions: Json| {
        let kinds = json!([{"group": "gateway.networking.k8s.io", "versions": versions, "resource": "httproutes"}]);
        let check = json!({"id": "a", "target": "Object", "message": "m", "expression": "true", "kinds": kinds});
        json!({"customChecks": [check], "network": {"allowedHosts": ["a.example.org"]}})
    };
    let found = rejected(&routes(json!(["v1"])));
    let expected =
        "spec.customChecks[0].kinds[0].versions: the check networkHosts evaluates httproutes in versions v1, v1beta1 (";
    assert!(found.contains(expected), "{found}");
    compiled(&routes(json!(["v1beta1", "v1"])));
    let events = |group: &str| json!([{"group": group, "versions": ["v1"], "resource": "events"}]);
    let found = kinds(events(""), events("events.k8s.io"));
    assert!(
        found.contains("spec.customChecks[1].kinds[0].group: another check evaluates events in group \"\""),
        "{found}"
    );
}

/// Pipelines of Tekton have such a field.
#[test]
fn a_field_with_the_name_of_parameters_needs_none() {
    let compiled = compiled(&json!({"customChecks": [{
        "id": "few", "target": "Object", "message": "too many",
        "kinds": [{"group": "example.org", "versions": ["v1"], "resource": "widgets"}],
        "expression": "object.spec.?params.orValue([]).size() < 2 && object.spec['params'].all(p, p != 'params')",
    }]}));
    assert!(!compiled.is_parameterized());
    let of = |params: Json| object("example.org/v1", "Widget", &json!({"spec": {"params": params}}));
    for minor in Minor::ALL {
        let server = Enforced::complete(minor, &compiled);
        assert_eq!(server.create(&of(json!(["a"]))), "");
        assert!(server.create(&of(json!(["a", "b"]))).contains("[few]"));
    }
}
