//! What is accepted is what each API server would take, whole; and what it would not is reported at its place in the profile.

use palisade_admission::create::{Refused, create};
use palisade_api::{Published, ToolSecurityProfile, names};
use palisade_cel::Minor;
use palisade_compiler::{Compiled, compile};
use palisade_gate::check;
use palisade_kube_json::pod;
use serde_json::{Value as Json, json};

fn named(name: &str, spec: &Json) -> ToolSecurityProfile {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": name},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}},
    });
    pod::merge(&mut profile["spec"], spec);
    serde_json::from_value(profile).unwrap()
}

fn profile(spec: &Json) -> ToolSecurityProfile {
    named("test", spec)
}

/// The paths of what is wrong with a profile, and the texts.
fn mistakes(profile: &ToolSecurityProfile) -> Vec<(String, String)> {
    let found = match compile(profile) {
        Ok(compiled) => match check(compiled) {
            Ok(_) => vec![],
            Err(rejected) => rejected.diagnostics,
        },
        Err(diagnostics) => diagnostics,
    };
    found.into_iter().map(|one| (one.location.to_string(), one.message)).collect()
}

fn selector(requirement: &Json) -> Json {
    json!({"namespaceSelector": {"matchExpressions": [requirement]}})
}

const QUALIFIED: &str = "name part must consist of alphanumeric characters";

#[test]
fn invalid_selector_of_a_wave_is_rejected_with_its_field_path() {
    let with = |selector: Json| {
        json!({
            "enforcement": {"namespaceStages": "ByLabel"},
            "rollout": {"waves": [{"percent": 1}, {"selector": selector}]},
        })
    };
    let at = |field: &str| format!("spec.rollout.waves[1].selector.{field}");
    for (selector, path) in [
        (json!({"matchLabels": {"a b": "c"}}), at("matchLabels")),
        (json!({"matchExpressions": [{"key": "a", "operator": "In"}]}), at("matchExpressions[0].values")),
    ] {
        let found = mistakes(&profile(&with(selector)));
        assert!(!found.is_empty() && found.iter().all(|(at, _)| *at == path), "{path}: {found:?}");
    }
    assert_eq!(mistakes(&profile(&with(json!({"matchLabels": {"a": "b"}})))), []);
}

#[test]
fn invalid_selector_is_rejected_with_its_field_path() {
    let at = |field: &str| format!("spec.namespaceSelector.matchExpressions[0].{field}");
    let cases = [
        (selector(&json!({"key": "a", "operator": "Foo"})), at("operator"), "not a valid selector operator"),
        (selector(&json!({"key": "a", "operator": "in", "values": ["b"]})), at("operator"), "\"in\""),
        (selector(&json!({"key": "a", "operator": "In"})), at("values"), "must be specified when"),
        (selector(&json!({"key": "a", "operator": "NotIn", "values": []})), at("values"), "must be specified when"),
        (selector(&json!({"key": "a", "operator": "Exists", "values": ["b"]})), at("values"), "may not be specified"),
        (selector(&json!({"key": "a b", "operator": "Exists"})), at("key"), QUALIFIED),
        (selector(&json!({"key": "", "operator": "Exists"})), at("key"), "name part must be non-empty"),
        (selector(&json!({"key": "A_/b", "operator": "Exists"})), at("key"), "prefix part"),
        (selector(&json!({"key": "a", "operator": "In", "values": ["b", "x y"]})), at("values[1]"), "a valid label"),
        (
            json!({"namespaceSelector": {"matchLabels": {"a b": "c"}}}),
            "spec.namespaceSelector.matchLabels".into(),
            QUALIFIED,
        ),
        (
            json!({"namespaceSelector": {"matchLabels": {"a": "x y/"}}}),
            "spec.namespaceSelector.matchLabels".into(),
            "a valid label",
        ),
        (json!({"excludeNamespaces": ["fine", "Not a name"]}), "spec.excludeNamespaces[1]".into(), "a valid label"),
    ];
    for (spec, path, text) in cases {
        // Whoever changes pods, and whatever else there is.
        for rest in [
            json!({"enforcement": {"workloads": "Off"}}),
            json!({"parameters": [{"name": "uid", "type": "Integer", "default": 7}], "enforcement": {"workloads": "Deny"}}),
            json!({"mutation": {"defaults": "Secure", "engine": "Native"}}),
            json!({"mutation": {"defaults": "Secure", "engine": "Webhook"}}),
        ] {
            let mut spec = spec.clone();
            pod::merge(&mut spec, &rest);
            let found = mistakes(&profile(&spec));
            assert!(found.iter().all(|(at, _)| *at == path), "{spec}: elsewhere than at {path}: {found:?}");
            assert!(found.iter().any(|(_, what)| what.contains(text)), "{spec}: expected {text:?}: {found:?}");
        }
    }
}

#[test]
fn all_selector_errors_are_reported_at_once() {
    let spec = json!({
        "namespaceSelector": {"matchLabels": {"a b": "x y"}, "matchExpressions": [
            {"key": "a", "operator": "Foo"}, {"key": "b", "operator": "In"},
        ]},
        // No namespace has this name, but it is a value of a label.
        "excludeNamespaces": ["A"],
        "customChecks": [{"id": "own", "expression": "nope", "message": "no"}],
    });
    let paths: Vec<_> = mistakes(&profile(&spec)).into_iter().map(|(path, _)| path).collect();
    let of_selector = "spec.namespaceSelector.match";
    let expected = [
        "spec.customChecks[0].expression:1:1".to_owned(),
        format!("{of_selector}Labels"),
        format!("{of_selector}Labels"),
        format!("{of_selector}Expressions[0].operator"),
        format!("{of_selector}Expressions[1].values"),
    ];
    assert_eq!(paths, expected);
}

#[test]
fn profile_name_invalid_for_objects_is_rejected() {
    for name in ["Test", "a_b", "-a", "a..b", "a'b", "a\nb"] {
        let found = mistakes(&named(name, &json!({"mutation": {"defaults": "Secure"}})));
        assert!(!found.is_empty(), "{name:?} is accepted");
        assert!(found.iter().all(|(path, _)| path == "metadata.name"), "{name:?}: {found:?}");
    }
    for name in ["a.b-1", &"a".repeat(50)] {
        assert_eq!(mistakes(&named(name, &json!({}))), [], "{name:?}");
    }
}

/// Everything else that an admin may write and that does not end as a policy. The CRD rejects some of it, too
/// (`invalid_profiles_are_rejected_by_the_crd`); for a file that no API server has seen, the gate reports it.
#[test]
fn invalid_profile_is_rejected_with_its_field_path() {
    let own = |fields: Json| {
        let mut check = json!({"id": "own", "message": "no", "expression": "true"});
        pod::merge(&mut check, &fields);
        json!({"customChecks": [check]})
    };
    let expression = |text: &str| own(json!({"expression": text}));
    let nested = "variables.containers.all(a, ".repeat(5) + "true" + &")".repeat(5);
    let cases: Vec<(Json, &str)> = vec![
        (expression("1 +"), "spec.customChecks[0].expression"),
        (expression("1"), "spec.customChecks[0].expression"),
        (expression("'a'"), "spec.customChecks[0].expression"),
        (expression("foo(1)"), "spec.customChecks[0].expression"),
        (expression("nope.x"), "spec.customChecks[0].expression"),
        (expression("object.spec.nope == 1"), "spec.customChecks[0].expression"),
        (expression("object.spec.nodeName == 'x'"), "spec.customChecks[0].expression"),
        (expression("1 / 0 == 1"), "spec.customChecks[0].expression"),
        (expression("'a'.matches('(')"), "spec.customChecks[0].expression"),
        (expression(&format!("{}true{}", "(".repeat(300), ")".repeat(300))), "spec.customChecks[0].expression"),
        (expression("true) ? [] : ['x'] //"), "spec.customChecks[0].expression"),
        (expression("\"\"\""), "spec.customChecks[0].expression"),
        (expression("variables.violations.size() == 0"), "spec.customChecks[0].expression"),
        (expression("variables.own.size() == 0"), "spec.customChecks[0].expression"),
        (expression("true\n) ? [] : [] + (\ntrue"), "spec.customChecks[0].expression"),
        (own(json!({"id": "privileged"})), "spec.customChecks[0].id"),
        (json!({"images": {"allowedRegistries": ["$nope"]}}), "spec.images.allowedRegistries"),
        (
            json!({"parameters": [{"name": "on", "type": "Boolean"}], "images": {"allowedRegistries": ["a.example/$on"]}}),
            "spec.images.allowedRegistries",
        ),
        (json!({"parameters": [{"name": "s", "type": "String", "pattern": "("}]}), "spec.parameters[0].pattern"),
        (
            json!({"parameters": [{"name": "s", "type": "String", "pattern": "((a{100}){100}){100}"}]}),
            "spec.parameters[0].pattern",
        ),
        (
            json!({"parameters": [{"name": "s", "type": "String", "pattern": "(a+)+$", "default": "aaaaaaaa!"}]}),
            "spec.parameters[0].default",
        ),
        (
            json!({"parameters": [{"name": "u", "type": "Integer"}, {"name": "u", "type": "String"}]}),
            "spec.parameters[1].name",
        ),
        (
            json!({"exceptions": [{
                "namespaces": ["t"], "checks": ["nope"], "reason": "r", "expires": "2027-01-01T00:00:00Z",
            }]}),
            "spec.exceptions[0].checks[0]",
        ),
        (json!({"namespaceSelector": {"matchLabels": null}}), "spec.namespaceSelector"),
        (
            json!({"images": {"allowedRegistries": ["a.example"], "redirect": {"target": "b.example"}}}),
            "mutation.policy",
        ),
        (json!({"images": {"redirect": {"target": "http://x"}}}), "spec.images.redirect.target"),
    ];
    for (spec, path) in cases {
        let found = mistakes(&profile(&spec));
        assert!(found.iter().any(|(at, _)| at.starts_with(path)), "{spec}: nothing at {path}: {found:?}");
    }
    // What looks bad and is not: it is compiled as an expression of its own, whatever it looks like.
    for (spec, what) in [(expression("true //"), "a comment"), (expression(&nested), "nested loops")] {
        assert_eq!(mistakes(&profile(&spec)), [], "{what}");
    }
}

/// Nothing that a profile may say in texts leads to an object that an API server refuses.
#[test]
fn any_text_in_a_profile_yields_valid_objects() {
    let texts = ["ops", "it's", "a\\", "\"", "a\nb", "${x}", "\u{0}", "ü😀", &"x".repeat(256)];
    let spec = json!({
        "exemptions": {"users": texts, "groups": texts, "runtimeClasses": texts},
        "parameters": [{"name": "uid", "type": "Integer", "default": 7}],
        "exceptions": [{
            "namespaces": ["t"], "checks": ["privileged"], "reason": "it's\n\"so\"",
            "expires": "2027-01-01T00:00:00Z",
        }],
        "images": {"redirect": {"target": "registry.example:5000"}},
    });
    for engine in ["Native", "Webhook"] {
        let mut spec = spec.clone();
        spec["mutation"] = json!({"defaults": "Secure", "engine": engine});
        assert_eq!(mistakes(&profile(&spec)), [], "{engine}");
    }
}

#[test]
fn gate_accepts_every_exemption_with_every_engine() {
    for exempt in [json!({"users": ["ops"]}), json!({"groups": ["ops"]}), json!({"runtimeClasses": ["kata"]})] {
        for engine in ["Native", "Webhook"] {
            let spec = json!({
                "exemptions": exempt, "mutation": {"defaults": "Secure", "engine": engine},
                "images": {"redirect": {"target": "registry.example:5000"}},
            });
            assert_eq!(mistakes(&profile(&spec)), [], "{spec}");
        }
    }
}

/// The gate goes by the objects, and not by the profile that they were made of.
#[test]
fn gate_rejects_any_invalid_generated_object() {
    let spoiled = |spoil: fn(&mut Compiled)| {
        let spec = json!({
            "parameters": [{"name": "uid", "type": "Integer", "default": 7}], "mutation": {"defaults": "Secure"},
        });
        let mut compiled = compile(&profile(&spec)).unwrap();
        spoil(&mut compiled);
        let rejected = check(compiled).expect_err("it is refused");
        rejected.to_string()
    };
    let found = spoiled(|compiled| compiled.bundle.pods.binding.spec.validation_actions = vec!["Nope".into()]);
    assert!(found.starts_with("binding.spec.validationActions[0]: Kubernetes 1.33 rejects it"), "{found}");
    let found = spoiled(|compiled| {
        compiled.bundle.workloads.as_mut().unwrap().binding.spec.policy_name = "No Name".into();
    });
    assert!(found.starts_with("workloads.binding.spec.policyName: "), "{found}");
    let found = spoiled(|compiled| {
        compiled.bundle.mutation.as_mut().unwrap().binding.spec.as_mut().unwrap().policy_name = None;
    });
    assert!(found.contains("mutation.binding.spec.policyName: Kubernetes 1.34 rejects it"), "{found}");
    let found = spoiled(|compiled| {
        let params = compiled.probes.params.as_mut().unwrap();
        params.integers.extend((0..64).map(|n| (format!("p{n}"), n)));
    });
    assert!(found.contains("params.spec.integers: Kubernetes 1.33 rejects it"), "{found}");
}

/// What an API server says of a registration, after `is invalid: `.
fn said(entry: &Json) -> String {
    let object = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "x"}, "webhooks": [entry],
    });
    match create(Minor::V1_36, &object, None) {
        Ok(_) => String::new(),
        Err(Refused::Status(status)) => status.message.split_once("is invalid: ").unwrap().1.to_owned(),
        Err(Refused::NoVerdict(why)) => format!("no verdict: {why}"),
    }
}

/// The texts are those that API servers of 1.33, 1.35 and 1.36 answered
/// (`registration_errors_match_the_api_server`).
#[test]
fn gate_rejects_registrations_with_api_server_messages() {
    let compiled = compile(&profile(&json!({"mutation": {"defaults": "Secure", "engine": "Webhook"}}))).unwrap();
    let published = Published { authorities: None, url: None, timeout_seconds: 3 };
    let entry = json!(compiled.mutation.unwrap().webhook(&published));
    assert_eq!(entry["clientConfig"]["service"]["path"], names::webhook_path("test"));
    assert_eq!(said(&entry), "");
    for (patch, expected) in [
        (json!({"name": "x.y"}), "should be a domain with at least three segments separated by dots"),
        (json!({"sideEffects": "Some"}), "Unsupported value: \"Some\": supported values: \"None\", \"NoneOnDryRun\""),
        (json!({"timeoutSeconds": 31}), "Invalid value: 31: the timeout value must be between 1 and 30 seconds"),
        (json!({"clientConfig": {"url": "https://a/b"}}), "exactly one of url or service is required"),
        (
            json!({"clientConfig": {"service": null, "url": "http://a/b?c"}}),
            "[webhooks[0].clientConfig.url: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired \
             format: https://host[/path], webhooks[0].clientConfig.url: Invalid value: \"c\": query parameters are not \
             permitted in the URL]",
        ),
        (json!({"clientConfig": {"service": {"path": "/A"}}}), "segment[0]: a lowercase RFC 1123 subdomain"),
        (json!({"admissionReviewVersions": ["v2"]}), "must include at least one of v1, v1beta1"),
        (json!({"matchConditions": [{"name": "x", "expression": "params.x"}]}), "undeclared reference to 'params'"),
        (json!({"namespaceSelector": {"matchLabels": {"a b": "c"}}}), "webhooks[0].namespaceSelector.matchLabels"),
    ] {
        let mut entry = entry.clone();
        pod::merge(&mut entry, &patch);
        let said = said(&entry);
        assert!(said.contains(expected), "{patch}: {said}");
    }
}
