//! What profiles compile to, and the messages about those that do not.

mod bindings;
mod generate;
mod objects;
mod own_stage;

use palisade_api::{ToolSecurityProfile, names};
use palisade_compiler::{Compiled, Namespace, compile, selects};
use serde_json::{Value as Json, json};

const TOOLFORGE: &str = include_str!("../../../../examples/toolforge/profile.yaml");

fn profile(spec: &Json) -> ToolSecurityProfile {
    let mut all = json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": "test", "generation": 3},
        "spec": {"namespaceSelector": {"matchLabels": {"tenancy": "tool"}}},
    });
    for (key, value) in spec.as_object().unwrap() {
        all["spec"][key] = value.clone();
    }
    serde_json::from_value(all).unwrap()
}

fn compiled(spec: &Json) -> Compiled {
    compile(&profile(spec)).unwrap()
}

fn namespace(name: &str, labels: &Json, annotations: &Json) -> Namespace {
    Namespace {
        name: name.to_owned(),
        labels: serde_json::from_value(labels.clone()).unwrap(),
        annotations: serde_json::from_value(annotations.clone()).unwrap(),
    }
}

#[test]
fn the_same_profile_gives_the_same_bytes() {
    let profile: ToolSecurityProfile = serde_saphyr::from_str(TOOLFORGE).unwrap();
    let bytes = || {
        let bundle = compile(&profile).unwrap().bundle;
        bundle
            .pairs()
            .map(|(_, pair)| serde_json::to_string(&(&pair.policy, &pair.binding, &pair.updates)).unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(bytes(), bytes());
}

#[test]
fn constants_are_inlined_and_references_read_from_parameters() {
    let text = |spec: &Json| serde_json::to_string(&compiled(spec).bundle.pods.policy).unwrap();
    let range = |end: Json| json!({"users": {"fsGroup": {"rule": "MustRunAs", "ranges": [{"min": end, "max": end}]}}});
    let constant = text(&range(json!(7)));
    assert!(constant.contains("!= 7") && !constant.contains("params."), "{constant}");
    let mut referring = range(json!("$gid"));
    referring["parameters"] = json!([{"name": "gid", "type": "Integer"}]);
    assert!(text(&referring).contains("params.spec.integers['gid']"));
}

/// Each expression of the policies that a profile becomes, with its name.
fn expressions(compiled: &Compiled) -> Vec<(String, String)> {
    let mut all = Vec::new();
    for (_, pair) in compiled.bundle.pairs() {
        let spec = pair.policy.spec.clone().unwrap();
        all.extend(spec.variables.unwrap().into_iter().map(|one| (one.name, one.expression)));
        for one in spec.validations.unwrap() {
            all.extend([("message".to_owned(), one.message_expression.unwrap()), (String::new(), one.expression)]);
        }
    }
    if let Some(pair) = &compiled.bundle.mutation {
        let spec = pair.policy.spec.clone().unwrap();
        all.extend(spec.variables.unwrap().into_iter().map(|one| (one.name, one.expression)));
        all.extend(spec.match_conditions.unwrap().into_iter().map(|one| (one.name, one.expression)));
        let patches = spec.mutations.unwrap().into_iter().map(|one| one.json_patch.unwrap().expression.unwrap());
        all.extend(patches.map(|patch| (String::new(), patch)));
    }
    all
}

fn toolforge_and_more() -> Compiled {
    let mut profile: ToolSecurityProfile = serde_saphyr::from_str(TOOLFORGE).unwrap();
    profile.spec.exceptions = serde_json::from_value(json!([
        {"namespaces": ["a"], "checks": ["privileged", "own"], "reason": "x", "expires": "2099-01-01T00:00:00Z"},
    ]))
    .unwrap();
    profile.spec.custom_checks = serde_json::from_value(json!([
        {"id": "own", "target": "Containers", "expression": "container.name != 'x'\n  // why\n", "message": "it's \"x\""},
    ]))
    .unwrap();
    profile.spec.mutation = serde_json::from_value(json!({"defaults": "Secure", "engine": "Native"})).unwrap();
    compile(&profile).unwrap()
}

#[test]
fn every_check_names_its_page_in_a_comment() {
    let compiled = toolforge_and_more();
    let all = expressions(&compiled);
    let comment = |name: &str| {
        let (_, found) = all.iter().find(|(found, _)| found == name).unwrap_or_else(|| panic!("no variable {name}"));
        found.lines().next().unwrap_or_default().to_owned()
    };
    for id in &compiled.checks {
        assert_eq!(comment(id), format!("// check {id}: docs/checks/{id}.md"));
    }
    assert_eq!(comment("hostPathsNotWritable"), "// part of check hostPathVolumes: docs/checks/hostPathVolumes.md");
    assert_eq!(comment("custom_own"), "// check own: spec.customChecks[0] of the profile; docs/custom-checks.md");
    let root = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    for (name, expression) in &all {
        for path in expression.split([' ', ';', '\n']).filter(|word| word.starts_with("docs/")) {
            assert!(root.join(path).exists(), "{name}: no page {path}");
        }
    }
}

/// Writers of YAML quote a text that has a line with a space at its end, and show others as a block.
#[test]
fn expressions_serialize_as_yaml_block_scalars() {
    let compiled = toolforge_and_more();
    let all = expressions(&compiled);
    for (name, expression) in &all {
        let plain = expression.chars().all(|c| matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{d7ff}'));
        assert!(plain && !expression.starts_with(' '), "{name}: {expression}");
        assert!(expression.lines().all(|line| !line.is_empty() && !line.ends_with(' ')), "{name}: {expression}");
        assert!(!expression.ends_with('\n'), "{name}: {expression}");
    }
    let yaml = serde_saphyr::to_string(&compiled.bundle.pods.policy).unwrap();
    assert!(yaml.contains("  - expression: |-\n      // check privileged: docs/checks/privileged.md\n"), "{yaml}");
    assert!(!yaml.contains("expression: \"") && !yaml.contains("expression: >"), "{yaml}");
}

#[test]
fn disabled_checks_are_left_out_of_the_policy() {
    let nothing: [&str; 0] = [];
    assert_eq!(compiled(&json!({"baseline": "Privileged"})).checks, nothing);
    let restricted = [
        "privileged",
        "windowsHostProcess",
        "hostNamespaces",
        "allowPrivilegeEscalation",
        "capabilities",
        "runAsNonRoot",
        "runAsUser",
        "seccompProfile",
        "appArmorProfile",
        "seLinuxOptions",
        "procMount",
        "sysctls",
        "hostPorts",
        "hostProbesAndHostLifecycle",
        "restrictedVolumes",
    ];
    assert_eq!(compiled(&json!({})).checks, restricted, "what is absent is as Restricted");
}

/// A custom check may name a part of the pod that no check of the catalogue reads, and in other ways than `variables.name`.
#[test]
fn parts_of_the_pod_are_left_out_only_where_nothing_can_read_them() {
    let parts = ["podSecurityContext", "volumes", "annotations"];
    let defined = |spec: &Json| {
        let bundle = compiled(spec).bundle;
        let policies = bundle.pairs().map(|(_, pair)| pair.policy.spec.clone().unwrap().variables.unwrap());
        let count = |name: &str, all: &[_]| {
            all.iter().filter(|one: &&k8s_openapi::api::admissionregistration::v1::Variable| one.name == name).count()
        };
        let policies: Vec<_> = policies.collect();
        parts.map(|name| policies.iter().map(|all| count(name, all)).sum::<usize>())
    };
    let privileged = json!({"baseline": "Privileged", "host": {"network": false}});
    // Pods have annotations that say which of them mirror static pods.
    assert_eq!(defined(&privileged), [0, 0, 1]);
    assert_eq!(defined(&json!({})), [2, 2, 2]);
    for (expression, expected) in [
        ("variables.?volumes.hasValue()", [2, 2, 2]),
        ("variables['volumes'].size() == 0", [2, 2, 2]),
        ("variables.podSecurityContext == {}", [2, 2, 2]),
        // The limits of all lists are checked before a custom check.
        ("true", [0, 2, 2]),
    ] {
        let mut custom = privileged.clone();
        custom["customChecks"] = json!([{"id": "own", "message": "m", "expression": expression}]);
        let compiled = compiled(&custom);
        assert_eq!(defined(&custom), expected, "{expression}");
        // The gate compiles each custom check with all of them.
        let offered: Vec<_> = compiled.bundle.pods.offered.iter().map(|one| one.name.as_str()).collect();
        assert!(parts.iter().all(|part| offered.contains(part)), "{expression}: {offered:?}");
    }
}

#[test]
fn a_level_is_implied_only_by_settings_that_are_all_as_strict() {
    let implied = |spec: &Json| {
        let found = compiled(spec).implied;
        (found.level.to_string(), found.reason)
    };
    for level in ["Privileged", "Baseline", "Restricted"] {
        for version in (0..=37).map(|minor| format!("v1.{minor}")) {
            let found = implied(&json!({"baseline": level, "baselineVersion": version}));
            assert_eq!(found.0, level, "{version}: {}", found.1);
        }
    }
    assert_eq!(compiled(&json!({})).implied.version, "v1.37", "what latest is, is said");
    let uid = |parameter: Json| {
        json!({
            "parameters": [parameter],
            "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
        })
    };
    let cases = [
        (uid(json!({"name": "uid", "type": "Integer", "minimum": 1})), "Restricted", "every setting"),
        (uid(json!({"name": "uid", "type": "Integer"})), "Baseline", "less strict than Restricted: users.runAsUser"),
        (
            json!({"privileges": {"procMount": ["Default"], "unmaskedInUserNamespaces": true}}),
            "Baseline",
            "less strict than Restricted: privileges.unmaskedInUserNamespaces",
        ),
        (json!({"volumes": {"allowed": ["emptyDir"], "hostPaths": [{"pathPrefix": "/"}]}}), "Restricted", "every"),
        (
            json!({"volumes": {"allowed": ["hostPath"], "hostPaths": [{"pathPrefix": "/data"}]}}),
            "Privileged",
            "less strict than Baseline: volumes.hostPaths",
        ),
        (json!({"privileges": {"sysctls": {"allowed": ["net.*"]}}}), "Privileged", "privileges.sysctls.allowed"),
        (
            json!({"baselineVersion": "v1.34", "users": {"relaxForUserNamespaces": true}}),
            "Baseline",
            "users.relaxForUserNamespaces",
        ),
        (
            json!({"baseline": "Privileged", "privileges": {"privileged": false}}),
            "Privileged",
            "less strict than Baseline: privileges.windowsHostProcess",
        ),
        (
            json!({"parameters": [{"name": "on", "type": "Boolean"}], "host": {"pid": "$on"}}),
            "Privileged",
            "less strict than Baseline: host.pid",
        ),
    ];
    for (spec, level, reason) in cases {
        let found = implied(&spec);
        assert!(found.0 == level && found.1.contains(reason), "{spec}: {found:?}");
    }
}

#[test]
fn protected_and_excluded_namespaces_are_never_selected() {
    let spec = json!({
        "namespaceSelector": {"matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "Exists"}]},
        "excludeNamespaces": ["ops"],
    });
    let profile = profile(&spec);
    let policy = compile(&profile).unwrap().bundle.pods.policy;
    let constraints = policy.spec.unwrap().match_constraints.unwrap();
    let excluded = constraints.namespace_selector.unwrap().match_expressions.unwrap().pop().unwrap();
    assert_eq!(excluded.operator, "NotIn");
    let values = excluded.values.unwrap();
    for name in names::PROTECTED_NAMESPACES.into_iter().chain(["ops"]) {
        assert!(values.iter().any(|value| value == name), "{name} in the policy");
        let labels = json!({"kubernetes.io/metadata.name": name});
        assert!(!selects(&profile.spec, &namespace(name, &labels, &json!({}))), "{name}");
    }
    assert!(selects(&profile.spec, &namespace("a", &json!({"kubernetes.io/metadata.name": "a"}), &json!({}))));
}

#[test]
fn binding_denies_missing_parameters_only_with_enforcement_deny() {
    for (stage, not_found, actions) in
        [("Deny", "Deny", vec!["Deny"]), ("Warn", "Allow", vec!["Warn", "Audit"]), ("Audit", "Allow", vec!["Audit"])]
    {
        let spec = json!({"enforcement": {"pods": stage}, "parameters": [{"name": "x", "type": "String"}]});
        let binding = compiled(&spec).bundle.pods.binding.spec;
        let param_ref = binding.param_ref.unwrap();
        assert_eq!(param_ref.parameter_not_found_action.as_deref(), Some(not_found));
        assert_eq!((param_ref.name.as_deref(), param_ref.namespace), (Some("test"), None));
        assert_eq!(binding.validation_actions, actions);
    }
}

#[test]
fn parameters_are_resolved_from_the_first_source_that_has_a_value() {
    let spec = json!({"parameters": [
        {"name": "uid", "type": "Integer", "minimum": 5, "maximum": 9, "default": 8,
         "sources": [{"namespaceAnnotation": "x/uid"}, {"namespaceLabel": "x/uid"}]},
        {"name": "tool", "type": "String", "pattern": "[a-z]+", "sources": [{"namespaceNameTrimPrefix": "tool-"}]},
        {"name": "on", "type": "Boolean", "default": "false", "sources": [{"namespaceLabel": "on"}]},
        {"name": "list", "type": "StringList", "default": "", "sources": [{"namespaceAnnotation": "list"}]},
    ], "overrides": [{"namespaces": ["tool-vip"], "parameters": {"uid": 6, "list": "a, b"}}]});
    let compiled = compiled(&spec);
    let resolve = |name: &str, labels: Json, annotations: Json| {
        serde_json::to_value(compiled.resolver.params(&namespace(name, &labels, &annotations))).unwrap()
    };
    let cases = [
        ("tool-a", json!({"x/uid": "6"}), json!({"x/uid": " 7 "}), json!({"uid": 7}), "a"),
        ("tool-a", json!({"x/uid": "6"}), json!({}), json!({"uid": 6}), "a"),
        ("tool-abc", json!({}), json!({}), json!({"uid": 8}), "abc"),
        ("tool-vip", json!({"x/uid": "9"}), json!({"list": "c"}), json!({"uid": 6}), "vip"),
    ];
    for (name, labels, annotations, integers, tool) in cases {
        let found = resolve(name, labels, annotations);
        assert_eq!(
            (&found["problem"], &found["integers"], &found["strings"]["tool"]),
            (&json!(""), &integers, &json!(tool))
        );
    }
    assert_eq!(resolve("tool-vip", json!({}), json!({"list": "c"}))["stringLists"]["list"], json!(["a", "b"]));
    assert_eq!(resolve("tool-a", json!({"on": "true"}), json!({"list": "a,,b ,"}))["booleans"]["on"], json!(true));

    let problems = [
        ("tool-a", json!({"x/uid": "4"}), json!({}), "parameter uid (label x/uid) is 4, below the minimum 5"),
        ("tool-a", json!({}), json!({"x/uid": "10"}), "is 10, above the maximum 9"),
        ("tool-a", json!({}), json!({"x/uid": ""}), "is \"\", must be an integer"),
        (
            "tool-a1",
            json!({}),
            json!({}),
            "parameter tool (the name of the namespace) is \"a1\", which does not match \"[a-z]+\"",
        ),
        ("other", json!({}), json!({}), "parameter tool is missing: the namespace has a name without tool-"),
        ("tool-", json!({}), json!({}), "parameter tool is missing"),
        ("tool-a", json!({"on": "yes"}), json!({}), "is \"yes\", must be true or false"),
        ("tool-a", json!({}), json!({"list": "x".repeat(300)}), "longer than 256 characters"),
    ];
    for (name, labels, annotations, problem) in problems {
        let found = resolve(name, labels, annotations);
        let text = found["problem"].as_str().unwrap();
        assert!(text.contains(problem), "{text}");
        assert_eq!(found["integers"], json!({}), "a failed namespace has no values");
    }
}

#[test]
fn all_profile_errors_are_reported_with_field_paths() {
    let spec = json!({
        "parameters": [
            {"name": "uid", "type": "Integer"}, {"name": "uid", "type": "String"},
            {"name": "bad", "type": "String", "pattern": "["}, {"name": "low", "type": "Integer", "minimum": 5, "default": 1},
        ],
        "overrides": [{"namespaces": ["a"], "parameters": {"nope": 1, "low": "x"}}],
        "users": {
            "runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$bad", "max": 5}]},
            "fsGroup": {"rule": "MustRunAs", "ranges": [{"min": 9, "max": 5}]},
            "runAsGroup": {"rule": "MayRunAs"},
        },
        "volumes": {"allowed": ["hostPath"], "hostPaths": [{"pathPrefix": "/data/$"}, {"pathPrefix": "relative"}]},
        "images": {"allowedRegistries": ["$missing"]},
    });
    let found: Vec<_> = compile(&profile(&spec)).unwrap_err().iter().map(ToString::to_string).collect();
    for expected in [
        "spec.parameters[1].name: \"uid\" is declared twice",
        "spec.parameters[2].pattern: \"[\": error: unclosed character class",
        "spec.parameters[3].default: is 1, below the minimum 5",
        "spec.overrides[0].parameters.nope: \"nope\" is not a declared parameter (declare it in spec.parameters)",
        "spec.overrides[0].parameters.low: is \"x\", must be an integer",
        "spec.users.runAsUser.ranges[0].min: $bad is of type String, must be Integer (parameters of type Integer: $low)",
        "spec.users.fsGroup.ranges[0]: min 9 is greater than max 5",
        "spec.users.runAsGroup.ranges: must not be empty",
        "spec.volumes.hostPaths[0].pathPrefix: \"$\" is not a reference to a parameter (write $$ for a dollar sign)",
        "spec.volumes.hostPaths[1].pathPrefix: \"relative\" is not a valid host path",
        "spec.images.allowedRegistries[0]: $missing is not a declared parameter",
    ] {
        assert!(found.iter().any(|found| found.starts_with(expected)), "{expected:?} is not in {found:#?}");
    }
}

#[test]
fn invalid_custom_check_is_rejected_with_its_field_path() {
    let diagnostics = |checks: Json| {
        let found = compile(&profile(&json!({"customChecks": checks}))).unwrap_err();
        found.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
    };
    let check = |id: &str| json!({"id": id, "expression": "true", "message": "m"});
    let found = diagnostics(json!([check("a-b"), check("privileged"), check("own"), check("own")]));
    for expected in [
        "spec.customChecks[0].id: \"a-b\" is not a valid id",
        "spec.customChecks[1].id: privileged is the id of a built-in check",
        "spec.customChecks[3].id: own is the id of another custom check",
    ] {
        assert!(found.contains(expected), "{found}");
    }
    assert!(!found.contains("customChecks[2]"), "{found}");
    let found = diagnostics(json!([{"id": "own", "expression": "true"}]));
    assert!(found.contains("spec.customChecks[0]: exactly one of message and messageExpression"), "{found}");
    // An exception may name it.
    let exceptions =
        json!([{"namespaces": ["n"], "checks": ["own"], "reason": "r", "expires": "2030-01-01T00:00:00Z"}]);
    let compiled = compiled(&json!({"customChecks": [check("own")], "exceptions": exceptions}));
    assert_eq!(compiled.customs.len(), 1);
}

#[test]
fn mutation_compiles_to_one_policy_of_v1_or_v1beta1() {
    assert_eq!(compiled(&json!({})).bundle.mutation, None);
    let mut spec = json!({"mutation": {"defaults": "Secure", "failurePolicy": "Fail"}});
    let pair = compiled(&spec).bundle.mutation.unwrap();
    for version in ["v1", "v1beta1"] {
        for (object, kind) in
            pair.objects(version).iter().zip(["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"])
        {
            assert_eq!(object["apiVersion"], format!("admissionregistration.k8s.io/{version}"));
            assert_eq!(
                (&object["kind"], &object["metadata"]["name"]),
                (&json!(kind), &json!("palisade-test-mutation"))
            );
        }
    }
    let [policy, binding] = pair.objects("v1");
    assert_eq!(policy["spec"]["failurePolicy"], "Fail");
    assert_eq!(policy["spec"]["mutations"].as_array().unwrap().len(), 1);
    // Without parameters none are asked for; with some, a namespace that has none is left to validation.
    assert_eq!((&policy["spec"]["paramKind"], &binding["spec"]["paramRef"]), (&Json::Null, &Json::Null));
    spec["parameters"] = json!([{"name": "uid", "type": "Integer"}]);
    let [_, binding] = compiled(&spec).bundle.mutation.unwrap().objects("v1");
    assert_eq!(binding["spec"]["paramRef"], json!({"name": "test", "parameterNotFoundAction": "Allow"}));
    // Where the webhook does it, the API server does not.
    spec["mutation"]["engine"] = json!("Webhook");
    let by_webhook = compiled(&spec);
    assert_eq!(by_webhook.bundle.mutation, None);
    assert!(by_webhook.mutation.is_some());
}

#[test]
fn redirect_target_that_is_not_a_registry_is_rejected() {
    for target in ["registry", "a.b/C", "a.b:x", "a b.c"] {
        let spec = json!({"images": {"redirect": {"target": target}}});
        let mistakes = compile(&profile(&spec)).unwrap_err();
        assert_eq!(mistakes[0].location.to_string(), "spec.images.redirect.target", "{target}");
    }
    assert!(compile(&profile(&json!({"images": {"redirect": {}}}))).is_err());
    let spec = json!({"images": {"redirect": {"target": "$none.example"}}});
    assert!(compile(&profile(&spec)).unwrap_err()[0].message.contains("$none is not a declared parameter"));
}
