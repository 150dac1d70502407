//! Labels and annotations: updates are evaluated if they change what the checks read. Errors in rules.

use super::*;

const INGRESS: &str = "networking.k8s.io/v1";

#[test]
fn updates_are_evaluated_if_they_change_annotations() {
    let compiled = compiled(&json!({"network": {"annotations": {"denied": ["nginx.ingress.kubernetes.io/*"]}}}));
    let snippet = json!({"nginx.ingress.kubernetes.io/server-snippet": "return 200;"});
    let plain = object(INGRESS, "Ingress", &json!({"spec": {"rules": [{"host": "a.example.org"}]}}));
    let old = with(&plain, "/metadata/annotations", snippet.clone());
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &compiled, None);
        let is_denied = |found: String| found.contains("[networkAnnotations] Ingress: metadata.annotations: ");
        assert!(is_denied(server.update(&old, &plain)));
        // Changes beside the annotations of an older object.
        assert_eq!(server.update(&with(&old, "/metadata/labels", json!({"a": "b"})), &old), "");
        assert_eq!(server.update(&plain, &old), "");
        let mut more = old.clone();
        more["metadata"]["annotations"]["example.org/a"] = json!("b");
        assert!(is_denied(server.update(&more, &old)));
        assert!(is_denied(server.update(&with(&old, "/spec/ingressClassName", json!("a")), &old)));
    }
}

#[test]
fn a_rule_evaluates_only_its_operations() {
    let rule = |key: &str, kind: Json| {
        let mut kinds = json!({"group": "example.org", "versions": ["v1"], "resource": "widgets"});
        kinds.as_object_mut().unwrap().extend(kind.as_object().unwrap().clone());
        json!({"kinds": [kinds], "labels": [{"key": key, "required": true}]})
    };
    let compiled = compiled(&json!({"metadata": {"rules": [
        rule("created", json!({"operations": ["CREATE"]})), rule("updated", json!({"operations": ["UPDATE"]})),
        rule("both", json!({})),
    ]}}));
    let widget = |size: i32| object("example.org/v1", "Widget", &json!({"spec": {"size": size}}));
    let required = |found: &str| -> Vec<String> {
        let keys = found.split("metadata.labels['").skip(1).filter_map(|rest| rest.split('\'').next());
        keys.map(str::to_owned).collect()
    };
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &compiled, None);
        assert_eq!(required(&server.create(&widget(1))), ["created", "both"], "{minor}");
        assert_eq!(required(&server.update(&widget(2), &widget(1))), ["updated", "both"], "{minor}");
    }
}

#[test]
fn updates_are_evaluated_if_they_change_labels_of_rules() {
    let rule = json!({
        "kinds": [{"group": "example.org", "versions": ["v1"], "resource": "widgets"}],
        "labels": [{"key": "team", "required": true, "values": ["$team"]}], "annotations": [{"key": "a", "values": ["1"]}],
    });
    let compiled = compiled(&json!({
        "parameters": [{"name": "team", "type": "String", "sources": [{"namespaceLabel": "team"}]}],
        "metadata": {"rules": [rule]},
    }));
    let params = palisade_api::ToolSecurityParamsSpec {
        strings: [("team".to_owned(), "weather".to_owned())].into(),
        ..Default::default()
    };
    let labelled = |team: &str| {
        let widget = object("example.org/v1", "Widget", &json!({"spec": {"size": 1}}));
        with(&widget, "/metadata/labels", json!({"team": team, "other": "x"}))
    };
    let old = labelled("other");
    for minor in Minor::ALL {
        let server = Enforced::new(minor, &compiled, Some(&json!(params)));
        assert_eq!(server.create(&labelled("weather")), "");
        assert!(server.create(&old).contains("[metadata] Widget: metadata.labels['team']: forbidden values: other"));
        // The other version of the kind is converted.
        let second = with(&old, "/apiVersion", json!("example.org/v2"));
        assert!(server.create(&second).contains("[metadata] Widget: "));
        assert_eq!(server.update(&with(&old, "/metadata/labels/other", json!("y")), &old), "");
        assert_eq!(server.update(&with(&old, "/metadata/annotations", json!({"b": "2"})), &old), "");
        assert_eq!(server.update(&with(&old, "/metadata/finalizers", json!([])), &old), "");
        assert!(server.update(&with(&old, "/metadata/annotations", json!({"a": "2"})), &old).contains("[metadata]"));
        assert!(server.update(&with(&old, "/spec/size", json!(2)), &old).contains("[metadata]"));
        assert_eq!(server.update(&labelled("weather"), &old), "");
        let mut without = labelled("weather");
        without["metadata"]["labels"].as_object_mut().unwrap().remove("team");
        assert!(server.update(&without, &labelled("weather")).contains("metadata.labels['team'] is required"));
    }
}

#[test]
fn errors_in_rules_have_their_place() {
    let rejected = |rule: Json| rejected(&json!({"metadata": {"rules": [rule]}}));
    let kinds = |kind: Json| json!({"kinds": [kind], "labels": [{"key": "a", "required": true}]});
    for (rule, expected) in [
        (
            kinds(json!({"versions": ["v1"], "resource": "pods"})),
            "spec.metadata.rules[0].kinds[0].resource: must not be pods",
        ),
        (
            kinds(json!({"group": "apps", "versions": ["v1"], "resource": "deployment"})),
            "spec.metadata.rules[0].kinds[0].resource: Kubernetes has no resource deployment.apps",
        ),
        (
            kinds(json!({"versions": ["v1"], "resource": "nodes"})),
            "spec.metadata.rules[0].kinds[0].resource: nodes are not namespaced",
        ),
        (
            kinds(json!({"versions": ["*"], "resource": "services"})),
            "spec.metadata.rules[0].kinds[0].versions[0]: \"*\" is not",
        ),
        (
            json!({"kinds": [{"versions": ["v1"], "resource": "services"}], "annotations": [{"key": "a/b/c"}]}),
            "spec.metadata.rules[0].annotations[0].key: \"a/b/c\" is not a key",
        ),
        (
            json!({"kinds": [{"versions": ["v1"], "resource": "services"}], "allowedLabels": ["$team"]}),
            "spec.metadata.rules[0].allowedLabels[0]: $team is not a declared parameter",
        ),
    ] {
        let found = rejected(rule);
        assert!(found.contains(expected), "{expected}: {found}");
    }
    // Another check reads the kind in other versions, and would not see requests in the version of the rule.
    let found = super::rejected(&json!({
        "network": {"allowedHosts": ["a.example.org"]},
        "metadata": {"rules": [{
            "kinds": [{"group": "gateway.networking.k8s.io", "versions": ["v1"], "resource": "httproutes"}],
            "labels": [{"key": "a", "required": true}],
        }]},
    }));
    let expected =
        "spec.metadata.rules[0].kinds[0].versions: the check networkHosts evaluates httproutes in versions v1, v1beta1";
    assert!(found.contains(expected), "{found}");
}
