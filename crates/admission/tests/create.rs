//! What the API server refuses at creation, in its words: expectations of `validation_test.go` of Kubernetes 1.36.1, and
//! what a kube-apiserver 1.36.1 answered.

use palisade_admission::create::{Refused, create};
use palisade_cel::Minor;
use serde_json::{Value as Json, json};

fn policy() -> Json {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "p"},
        "spec": {
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["apps"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["deployments"],
            }]},
            "validations": [{"expression": "object.spec.replicas <= 5"}],
        },
    })
}

fn binding() -> Json {
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicyBinding",
        "metadata": {"name": "b"},
        "spec": {"policyName": "p", "validationActions": ["Deny"]},
    })
}

fn with(mut object: Json, path: &str, value: Json) -> Json {
    let (parent, key) = path.rsplit_once('/').unwrap();
    let parent = object.pointer_mut(parent).unwrap();
    match parent {
        Json::Array(elements) => elements[key.parse::<usize>().unwrap()] = value,
        parent => parent[key] = value,
    }
    object
}

/// What is said after `is invalid: `; empty if nothing is.
fn said(minor: Minor, object: &Json, old: Option<&Json>) -> String {
    match create(minor, object, old) {
        Ok(_) => String::new(),
        Err(Refused::Status(status)) => {
            let prefix = format!(
                "{}.admissionregistration.k8s.io \"{}\" is invalid: ",
                object["kind"].as_str().unwrap(),
                object["metadata"]["name"].as_str().unwrap_or_default()
            );
            assert_eq!((status.code, &*status.reason), (422, "Invalid"), "{status:?}");
            assert!(!status.causes.is_empty());
            status.message.strip_prefix(&prefix).unwrap_or_else(|| panic!("{}", status.message)).to_owned()
        }
        Err(Refused::NoVerdict(why)) => format!("no verdict: {why}"),
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn policies() {
    let rule = "/spec/matchConstraints/resourceRules/0";
    let at = |path: &str| format!("{rule}/{path}");
    let long = "a".repeat(5 * 1024 + 1);
    let annotation = |key: &str, value: &str| json!([{"key": key, "valueExpression": value}]);
    let cases: Vec<(String, Json, &str)> = vec![
        (
            "/spec/failurePolicy".into(),
            json!("other"),
            r#"spec.failurePolicy: Unsupported value: "other": supported values: "Fail", "Ignore""#,
        ),
        (
            "/spec/validations".into(),
            json!([]),
            "[spec.validations: Required value: validations or auditAnnotations must contain at least one item, spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item]",
        ),
        ("/spec/matchConstraints".into(), Json::Null, "spec.matchConstraints: Required value"),
        (
            "/spec/matchConstraints/matchPolicy".into(),
            json!("other"),
            r#"spec.matchConstraints.matchPolicy: Unsupported value: "other": supported values: "Equivalent", "Exact""#,
        ),
        (
            "/spec/matchConstraints/resourceRules".into(),
            json!([]),
            "spec.matchConstraints.resourceRules: Required value",
        ),
        (at("operations"), json!([]), "spec.matchConstraints.resourceRules[0].operations: Required value"),
        (
            at("operations"),
            json!(["CREATE", "*"]),
            r#"spec.matchConstraints.resourceRules[0].operations: Invalid value: ["CREATE","*"]: if '*' is present, must not specify other operations"#,
        ),
        (
            at("operations"),
            json!(["PATCH"]),
            r#"spec.matchConstraints.resourceRules[0].operations[0]: Unsupported value: "PATCH": supported values: "*", "CONNECT", "CREATE", "DELETE", "UPDATE""#,
        ),
        (
            at("apiGroups"),
            json!(["a", "*"]),
            r#"spec.matchConstraints.resourceRules[0].apiGroups: Invalid value: ["a","*"]: if '*' is present, must not specify other API groups"#,
        ),
        (at("apiVersions"), json!([""]), "spec.matchConstraints.resourceRules[0].apiVersions[0]: Required value"),
        (
            at("resources"),
            json!(["*/*", "a"]),
            r#"spec.matchConstraints.resourceRules[0].resources: Invalid value: ["*/*","a"]: if '*/*' is present, must not specify other resources"#,
        ),
        (
            at("resources"),
            json!(["a/*", "a/x"]),
            r#"spec.matchConstraints.resourceRules[0].resources[1]: Invalid value: "a/x": if 'a/*' is present, must not specify a/x"#,
        ),
        (
            at("resources"),
            json!(["*/a", "x/a"]),
            r#"spec.matchConstraints.resourceRules[0].resources[1]: Invalid value: "x/a": if '*/a' is present, must not specify x/a"#,
        ),
        (
            at("resources"),
            json!(["*", "a"]),
            r#"spec.matchConstraints.resourceRules[0].resources: Invalid value: ["*","a"]: if '*' is present, must not specify other resources without subresources"#,
        ),
        (
            at("scope"),
            json!(""),
            r#"spec.matchConstraints.resourceRules[0].scope: Unsupported value: "": supported values: "*", "Cluster", "Namespaced""#,
        ),
        (
            at("resourceNames"),
            json!(["x", "x", "a/b"]),
            r#"[spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "x", spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "a/b": may not contain '/']"#,
        ),
        (
            "/spec/paramKind".into(),
            json!({"apiVersion": "v1/b/c", "kind": "A b"}),
            r#"[spec.paramKind.apiVersion: Invalid value: "v1/b/c": unexpected GroupVersion string: v1/b/c, spec.paramKind.kind: Invalid value: "A b": may have mixed case, but should otherwise match: a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')]"#,
        ),
        (
            "/spec/paramKind".into(),
            json!({}),
            "[spec.paramKind.apiVersion: Required value, spec.paramKind.kind: Required value]",
        ),
        (
            "/spec/validations/0/expression".into(),
            json!(" "),
            "spec.validations[0].expression: Required value: expression is not specified",
        ),
        (
            "/spec/validations/0/expression".into(),
            json!("object.x"),
            r#"spec.validations[0].expression: Invalid value: "object.x": must evaluate to bool but got dyn"#,
        ),
        (
            "/spec/validations/0/expression".into(),
            json!("int('x') == 1"),
            "spec.validations[0].expression: Internal error: program instantiation failed: ",
        ),
        (
            "/spec/validations/0/message".into(),
            json!("a\nb"),
            r#"spec.validations[0].message: Invalid value: "a\nb": must not contain line breaks"#,
        ),
        (
            "/spec/validations/0/messageExpression".into(),
            json!(" "),
            r#"spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified"#,
        ),
        (
            "/spec/validations/0/messageExpression".into(),
            json!("1"),
            r#"spec.validations[0].messageExpression: Invalid value: "1": must evaluate to string but got int"#,
        ),
        (
            "/spec/validations/0/reason".into(),
            json!("other"),
            r#"spec.validations[0].reason: Unsupported value: "other": supported values: "Forbidden", "Invalid", "RequestEntityTooLarge""#,
        ),
        (
            "/spec/variables".into(),
            json!([{"name": "in", "expression": "1"}]),
            r#"spec.variables[0].name: Invalid value: "in": must be a valid CEL identifier"#,
        ),
        (
            "/spec/variables".into(),
            json!([{"name": " ", "expression": ""}]),
            "[spec.variables[0].name: Required value: name is not specified, spec.variables[0].expression: Required value: expression is not specified]",
        ),
        (
            "/spec/matchConditions".into(),
            json!([{"name": "a b", "expression": " true "}]),
            r#"spec.matchConditions[0].name: Invalid value: "a b": name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"#,
        ),
        (
            "/spec/matchConditions".into(),
            json!(vec![json!({"name": "a", "expression": "true"}); 2]),
            r#"spec.matchConditions[1].name: Duplicate value: "a""#,
        ),
        (
            "/spec/auditAnnotations".into(),
            annotation("k", &long),
            "spec.auditAnnotations[0].valueExpression: Required value: must not exceed 5120 bytes in length",
        ),
        (
            "/spec/auditAnnotations".into(),
            annotation("k", " 1 "),
            r#"spec.auditAnnotations[0].valueExpression: Invalid value: " 1 ": must evaluate to one of [string null_type] but got int"#,
        ),
        (
            "/spec/auditAnnotations".into(),
            annotation("@", "'a'"),
            r#"spec.auditAnnotations[0].key: Invalid value: "p/@": name part must consist of"#,
        ),
        (
            "/metadata/labels".into(),
            json!({"a b": "c"}),
            r#"metadata.labels: Invalid value: "a b": name part must consist of"#,
        ),
    ];
    assert_eq!(said(Minor::V1_36, &policy(), None), "");
    for (path, value, expected) in cases {
        let found = said(Minor::V1_36, &with(policy(), &path, value), None);
        // Where the rest is a text that others have tests of, its beginning is enough.
        let partial = expected.ends_with("failed: ") || expected.ends_with("consist of");
        assert!(found == expected || partial && found.starts_with(expected), "{path}:\n{found}\n{expected}");
    }
    let conditions: Vec<_> = (0..65).map(|n| json!({"name": format!("a{n}"), "expression": "true"})).collect();
    let found = said(Minor::V1_36, &with(policy(), "/spec/matchConditions", conditions.into()), None);
    assert_eq!(found, "spec.matchConditions: Too many: 65: must have at most 64 items");
}

#[test]
fn update_accepts_expressions_that_were_already_stored() {
    // What a new expression cannot use, a stored one can: `sort` came with 1.34.
    let old = with(policy(), "/spec/validations/0/expression", json!("['b', 'a'].sort() == ['a', 'b']"));
    assert!(
        said(Minor::V1_34, &old, None).contains("undeclared reference to 'sort'"),
        "{}",
        said(Minor::V1_34, &old, None)
    );
    assert_eq!(said(Minor::V1_34, &old, Some(&old)), "");
    let broken = with(policy(), "/spec/matchConditions", json!([{"name": "a", "expression": "wrong"}]));
    assert!(!said(Minor::V1_36, &broken, None).is_empty());
    assert_eq!(said(Minor::V1_36, &broken, Some(&broken)), "");
}

#[test]
fn error_wording_follows_the_minor() {
    let object = with(policy(), "/spec/validations/0/message", json!("a\nb"));
    assert!(said(Minor::V1_33, &object, None).ends_with("message must not contain line breaks"));
    assert!(said(Minor::V1_34, &object, None).ends_with(": must not contain line breaks"));
}

/// A configuration with one webhook, in which this is changed.
fn webhook(path: &str, value: Json) -> Json {
    let entry = json!({
        "name": "a.b.c", "admissionReviewVersions": ["v1"], "sideEffects": "None",
        "clientConfig": {"service": {"name": "a", "namespace": "b"}},
        "rules": [{
            "apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"], "scope": "*",
        }],
    });
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "w"}, "webhooks": [with(entry, path, value)],
    })
}

#[test]
fn values_are_printed_as_the_minor_prints_them() {
    let operations = "/spec/matchConstraints/resourceRules/0/operations";
    let annotations: Vec<_> = (0..21).map(|i| json!({"key": format!("k{i}"), "valueExpression": "'<'"})).collect();
    for (object, until_33, since_34) in [
        (
            webhook("/admissionReviewVersions", json!(["v2"])),
            r#"Invalid value: []string{"v2"}: must include at least one of v1, v1beta1"#,
            r#"Invalid value: ["v2"]: must include at least one of v1, v1beta1"#,
        ),
        (
            webhook("/rules/0/apiGroups", json!(["", "*"])),
            r#"Invalid value: []string{"", "*"}: if '*' is present, must not specify other API groups"#,
            r#"Invalid value: ["","*"]: if '*' is present, must not specify other API groups"#,
        ),
        (
            webhook("/rules/0/resources", json!(["*/*", "pods"])),
            r#"Invalid value: []string{"*/*", "pods"}: if '*/*' is present, must not specify other resources"#,
            r#"Invalid value: ["*/*","pods"]: if '*/*' is present, must not specify other resources"#,
        ),
        (
            webhook("/clientConfig/service/namespace", json!("")),
            "webhooks[0].clientConfig.service.name: Required value: service name is required",
            "webhooks[0].clientConfig.service.name: Required value",
        ),
        (
            webhook("/clientConfig/service/name", json!("")),
            "webhooks[0].clientConfig.service.namespace: Required value: service namespace is required",
            "webhooks[0].clientConfig.service.namespace: Required value",
        ),
        (
            webhook("/sideEffects", json!("<some>")),
            r#"webhooks[0].sideEffects: Unsupported value: "<some>": supported values: "None", "NoneOnDryRun""#,
            r#"webhooks[0].sideEffects: Unsupported value: "\u003csome\u003e": supported values: "None", "NoneOnDryRun""#,
        ),
        (
            with(policy(), operations, json!(["CREATE", "*"])),
            r#"Invalid value: []admissionregistration.OperationType{"CREATE", "*"}: if '*' is present, must not specify other operations"#,
            r#"Invalid value: ["CREATE","*"]: if '*' is present, must not specify other operations"#,
        ),
        (
            with(binding(), "/spec/validationActions", json!(["Deny", "Warn"])),
            r#"Invalid value: []admissionregistration.ValidationAction{"Deny", "Warn"}: must not contain both"#,
            r#"Invalid value: ["Deny","Warn"]: must not contain both"#,
        ),
        (
            with(policy(), "/spec/auditAnnotations", json!(annotations)),
            r#"Invalid value: []admissionregistration.AuditAnnotation{admissionregistration.AuditAnnotation{Key:"k0", ValueExpression:"'<'"}, admissionregistration.AuditAnnotation{"#,
            r#"Invalid value: [{"Key":"k0","ValueExpression":"'\u003c'"},{"#,
        ),
    ] {
        for minor in Minor::ALL {
            let found = said(minor, &object, None);
            assert_eq!(found.contains(until_33), minor < Minor::V1_34, "{minor}: {found}");
            assert!(minor < Minor::V1_34 || found.contains(since_34), "{minor}: {found}");
        }
    }
}

#[test]
fn bindings() {
    let param_ref = |value: Json| with(binding(), "/spec/paramRef", value);
    for (object, expected) in [
        (binding(), ""),
        (with(binding(), "/spec/policyName", json!("")), "spec.policyName: Required value"),
        (
            with(binding(), "/spec/validationActions", json!([])),
            "spec.validationActions: Required value: at least one validation action is required",
        ),
        (
            with(binding(), "/spec/validationActions", json!(["Deny", "Deny"])),
            r#"spec.validationActions[1]: Duplicate value: "Deny""#,
        ),
        (
            with(binding(), "/spec/validationActions", json!(["Deny", "Warn"])),
            r#"spec.validationActions: Invalid value: ["Deny","Warn"]: must not contain both Deny and Warn (repeating the same validation failure information in the API response and headers serves no purpose)"#,
        ),
        (
            with(binding(), "/spec/validationActions", json!(["illegal"])),
            r#"spec.validationActions[0]: Unsupported value: "illegal": supported values: "Audit", "Deny", "Warn""#,
        ),
        (
            param_ref(json!({"parameterNotFoundAction": "Deny"})),
            "spec.paramRef: Required value: one of name or selector must be specified",
        ),
        (param_ref(json!({"name": "a"})), "spec.paramRef.parameterNotFoundAction: Required value"),
        (
            param_ref(json!({"name": "a", "parameterNotFoundAction": "x"})),
            r#"spec.paramRef.parameterNotFoundAction: Unsupported value: "x": supported values: "Deny", "Allow""#,
        ),
        (
            param_ref(json!({"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"})),
            "[spec.paramRef.name: Forbidden: name and selector are mutually exclusive, spec.paramRef.selector: Forbidden: name and selector are mutually exclusive]",
        ),
        (
            with(
                binding(),
                "/spec/matchResources",
                json!({"namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}}),
            ),
            "spec.matchResources.namespaceSelector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'",
        ),
    ] {
        assert_eq!(said(Minor::V1_36, &object, None), expected);
    }
}

#[test]
fn parameter_action_has_a_default_in_v1alpha1_only() {
    let param_ref = with(binding(), "/spec/paramRef", json!({"name": "a"}));
    for (version, expected) in [
        ("v1alpha1", ""),
        ("v1beta1", "spec.paramRef.parameterNotFoundAction: Required value"),
        ("v1", "spec.paramRef.parameterNotFoundAction: Required value"),
    ] {
        let object = with(param_ref.clone(), "/apiVersion", json!(format!("admissionregistration.k8s.io/{version}")));
        assert_eq!(said(Minor::V1_36, &object, None), expected, "{version}");
    }
}

#[test]
fn reserved_names_are_warned_about() {
    let named = with(policy(), "/metadata/name", json!("a.static.k8s.io"));
    assert_eq!(create(Minor::V1_36, &named, None).unwrap().len(), 1);
    assert_eq!(create(Minor::V1_35, &named, None).unwrap().len(), 0);
    let mut existing = policy();
    existing["metadata"]["resourceVersion"] = json!("1");
    let Err(Refused::Status(status)) = create(Minor::V1_36, &existing, None) else { panic!() };
    assert_eq!((status.code, &*status.message), (500, "resourceVersion should not be set on objects to be created"));
}

#[test]
fn wrong_field_type_is_rejected_with_its_path() {
    let wrong = with(policy(), "/spec/validations/0/message", json!(false));
    let Err(Refused::Status(status)) = create(Minor::V1_36, &wrong, None) else { panic!() };
    assert_eq!((status.code, &*status.reason), (400, "BadRequest"));
    assert_eq!(
        status.message,
        "ValidatingAdmissionPolicy in version \"v1\" cannot be handled as a ValidatingAdmissionPolicy: json: cannot \
         unmarshal bool into Go struct field Validation.spec.validations.message of type string"
    );
    assert_eq!(status.causes[0].field, "spec.validations[0].message");
}

#[test]
fn crds_in_kubernetes_groups_require_approval() {
    let definition = |group: &str, approved: &str| {
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {
                "name": format!("widgets.{group}"),
                "annotations": if approved.is_empty() { json!({}) } else { json!({"api-approved.kubernetes.io": approved}) },
            },
            "spec": {
                "group": group, "scope": "Namespaced",
                "names": {"plural": "widgets", "singular": "widget", "kind": "Widget", "listKind": "WidgetList"},
                "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}}}],
            },
        })
    };
    let refused = |group: &str, approved: &str| match create(Minor::V1_36, &definition(group, approved), None) {
        Ok(_) => String::new(),
        Err(Refused::Status(status)) => status.message,
        Err(Refused::NoVerdict(why)) => panic!("{why}"),
    };
    assert_eq!(refused("test.example", ""), "");
    assert_eq!(refused("myk8s.io", ""), "");
    for group in ["k8s.io", "test.k8s.io", "test.kubernetes.io"] {
        assert_eq!(
            refused(group, ""),
            format!(
                "CustomResourceDefinition.apiextensions.k8s.io \"widgets.{group}\" is invalid: \
                 metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups must have approval \
                 annotation \"api-approved.kubernetes.io\", see https://github.com/kubernetes/enhancements/pull/1111"
            )
        );
        assert_eq!(refused(group, "https://github.com/kubernetes/enhancements/pull/1"), "");
        assert_eq!(refused(group, "unapproved, an experiment"), "");
        assert!(
            refused(group, "yes").contains("Invalid value: \"yes\": protected groups must have approval annotation")
        );
    }
}
