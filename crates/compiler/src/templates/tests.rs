//! Tests of the errors in templates, and of the objects in namespaces.

use std::sync::LazyLock;

use palisade_api::{ToolSecurityProfile, ToolSecurityProfileSpec};
use palisade_kube_json::json::set;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

use super::*;
use crate::{Compiled, compile};

fn profile(generate: &Json) -> ToolSecurityProfile {
    let spec: ToolSecurityProfileSpec = serde_json::from_value(json!({
        "namespaceSelector": {"matchLabels": {"tenancy": "tool"}},
        "parameters": [
            {"name": "tool", "type": "String", "sources": [{"namespaceNameTrimPrefix": "tool-"}]},
            {"name": "cpu", "type": "String", "sources": [{"namespaceAnnotation": "cpu"}], "default": "2"},
            {"name": "pods", "type": "Integer", "sources": [{"namespaceAnnotation": "pods"}], "default": 10},
            {"name": "shared", "type": "Boolean", "default": "false"},
            {"name": "hosts", "type": "StringList", "sources": [{"namespaceAnnotation": "hosts"}], "default": "a, b"},
        ],
        "overrides": [{"namespaces": ["tool-big"], "parameters": {"cpu": "8"}}],
        "generate": generate,
    }))
    .expect("a spec");
    ToolSecurityProfile::new("tools", spec)
}

fn compiled(generate: &Json) -> Compiled {
    compile(&profile(generate)).expect("it compiles")
}

fn tenant(name: &str, annotations: &[(&str, &str)]) -> Namespace {
    let annotations = annotations.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    Namespace { name: name.to_owned(), labels: [("tenancy".to_owned(), "tool".to_owned())].into(), annotations }
}

fn quota() -> Json {
    json!({
        "name": "quota",
        "template": {
            "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "tool-${tool}", "labels": {"pods": "$pods"}},
            "spec": {
                "hard": {"requests.cpu": "$cpu", "pods": "$pods", "limits.memory": "${pods}Gi"},
                "extra": {"list": "$hosts", "flag": "$shared", "text": "costs $$5 for $tool"},
            },
        },
    })
}

fn object(compiled: &Compiled, namespace: &Namespace) -> Json {
    let resolved = compiled.generated(namespace).remove(0);
    resolved.object.expect("an object").object
}

#[test]
fn parameters_keep_their_type_outside_of_strings_and_metadata() {
    let compiled = compiled(&json!([quota()]));
    let object = object(&compiled, &tenant("tool-abc", &[("pods", "7")]));
    assert_eq!(object["metadata"]["name"], "tool-abc");
    assert_eq!(object["metadata"]["namespace"], "tool-abc");
    assert_eq!(object["metadata"]["labels"]["pods"], "7");
    assert_eq!(object["metadata"]["labels"][names::TEMPLATE_LABEL], "quota");
    assert_eq!(object["metadata"]["labels"][names::PROFILE_LABEL], "tools");
    assert_eq!(
        object["spec"],
        json!({
            "hard": {"requests.cpu": "2", "pods": 7, "limits.memory": "7Gi"},
            "extra": {"list": ["a", "b"], "flag": false, "text": "costs $5 for abc"},
        })
    );
}

#[test]
fn overrides_take_precedence_and_change_the_digest() {
    let compiled = compiled(&json!([quota()]));
    let cpu = |name| object(&compiled, &tenant(name, &[("cpu", "3")]))["spec"]["hard"]["requests.cpu"].clone();
    assert_eq!((cpu("tool-abc"), cpu("tool-big")), (json!("3"), json!("8")));
    let digest = |annotations: &[(&str, &str)]| {
        let object = object(&compiled, &tenant("tool-abc", annotations));
        object["metadata"]["annotations"][names::DIGEST_ANNOTATION].clone()
    };
    assert_eq!(digest(&[]), digest(&[("other", "x")]));
    assert_ne!(digest(&[]), digest(&[("pods", "11")]));
}

#[test]
fn a_template_without_a_failing_parameter_is_not_affected() {
    let policy = json!({"name": "deny", "template": {
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": "deny"},
        "spec": {"podSelector": {}, "ingress": [], "policyTypes": ["Ingress"]},
    }});
    let compiled = compiled(&json!([quota(), policy]));
    let resolved = compiled.generated(&tenant("tool-abc", &[("pods", "many")]));
    let problem = resolved[0].object.as_ref().unwrap_err();
    assert!(problem.contains("parameter pods") && problem.contains("must be an integer"), "{problem}");
    assert_eq!(resolved[1].object.as_ref().unwrap().object["spec"]["ingress"], json!([]));
}

#[test]
fn selector_limits_a_template_to_its_namespaces() {
    let mut small = quota();
    set(&mut small, &["namespaceSelector"], json!({"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]}));
    let mut large = quota();
    set(&mut large, &["name"], json!("large"));
    set(&mut large, &["namespaceSelector"], json!({"matchLabels": {"tier": "large"}}));
    let mut again = large.clone();
    set(&mut again, &["name"], json!("again"));
    let compiled = compiled(&json!([small, large, again]));
    let of = |labels: &[(&str, &str)]| {
        let mut namespace = tenant("tool-abc", &[]);
        namespace.labels.extend(labels.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        compiled.generated(&namespace)
    };
    assert_eq!(of(&[]).iter().map(|one| one.template.as_str()).collect::<Vec<_>>(), ["quota"]);
    let both = of(&[("tier", "large")]);
    assert!(both[0].object.is_ok());
    assert_eq!(both[1].object.as_ref().unwrap_err(), "gives ResourceQuota tool-abc, as template large does");
}

#[test]
fn value_that_gives_no_valid_name_is_a_problem_of_the_namespace() {
    let template = json!([{"name": "x", "template": {
        "apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "$cpu"}, "spec": {},
    }}]);
    let compiled = compiled(&template);
    for (value, valid) in
        [("abc", true), ("a.b-c", true), ("A", false), ("a/b", false), ("../x", false), ("a b", false)]
    {
        let resolved = compiled.generated(&tenant("tool-abc", &[("cpu", value)]));
        assert_eq!(resolved[0].object.is_ok(), valid, "{value}");
    }
}

#[test]
fn each_mistake_has_its_place() {
    let change = |path: &[&str], value: Json| {
        let mut template = quota();
        set(&mut template, path, value);
        template
    };
    for (generate, expected) in [
        (json!([quota(), quota()]), "spec.generate[1].name: \"quota\" is used twice"),
        (
            json!([quota(), change(&["name"], json!("b"))]),
            "spec.generate[1].template.metadata.name: is the name of the same",
        ),
        (json!([change(&["name"], json!("A"))]), "spec.generate[0].name: \"A\" is not a valid name"),
        (
            json!([change(&["template", "kind"], json!("$tool"))]),
            "spec.generate[0].template.kind: \"$tool\" is not valid",
        ),
        (json!([change(&["template", "kind"], json!(null))]), "spec.generate[0].template.kind: is required"),
        (json!([change(&["template", "apiVersion"], json!("a/b/c"))]), "template.apiVersion: \"a/b/c\" is not valid"),
        (json!([change(&["template", "kind"], json!("Secret"))]), "template.kind: Secret cannot be generated"),
        (
            json!([change(&["template", "kind"], json!("Namespace"))]),
            "template.kind: Namespace cannot be generated: it has no",
        ),
        (
            json!([change(&["template", "apiVersion"], json!("toolsecurity.dev/v1alpha1"))]),
            "template.kind: ResourceQuota cannot be generated: Palisade reads this kind",
        ),
        (json!([change(&["template", "status"], json!({}))]), "template.status: must not be set"),
        (json!([change(&["template", "metadata", "name"], json!(null))]), "template.metadata.name: is required"),
        (
            json!([change(&["template", "metadata", "name"], json!("A"))]),
            "template.metadata.name: \"A\" is not a valid",
        ),
        (json!([change(&["template", "metadata", "namespace"], json!("x"))]), "metadata.namespace: must not be set"),
        (
            json!([change(&["template", "metadata", "labels", names::TEMPLATE_LABEL], json!("x"))]),
            "must not be set: the",
        ),
        (json!([change(&["template", "metadata", "labels", "a"], json!(1))]), "1 is not a string"),
        (json!([change(&["template", "metadata", "labels", "a"], json!("$hosts"))]), "$hosts is a list"),
        (json!([change(&["template", "spec", "a"], json!("x-$hosts"))]), "template.spec.a: $hosts is a list"),
        (json!([change(&["template", "spec", "a"], json!("$unknown"))]), "template.spec.a: $unknown is not a declared"),
        (json!([change(&["template", "spec", "a"], json!(["a", "$9"]))]), "template.spec.a[1]: "),
        (json!([change(&["template", "spec", "a"], json!(null))]), "template.spec.a: must not be null"),
        (json!([change(&["template", "spec", "$tool"], json!("x"))]), "names of fields cannot contain parameters"),
        (json!([change(&["template", "spec", "a"], json!("x".repeat(17_000)))]), "more than 16384"),
    ] {
        let diagnostics = compile(&profile(&generate)).expect_err(expected);
        let texts: Vec<_> = diagnostics.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.contains(expected)), "{expected}\n{texts:#?}");
        assert!(texts.iter().all(|text| text.starts_with("spec.generate")), "{texts:#?}");
    }
}

/// The structure of a value: its fields and the number of its elements, without values of leaves.
fn structure(value: &Json) -> Json {
    match value {
        Json::Array(elements) => elements.iter().map(structure).collect(),
        Json::Object(fields) => {
            Json::Object(fields.iter().map(|(key, value)| (key.clone(), structure(value))).collect())
        }
        _ => Json::Null,
    }
}

static OF_QUOTA: LazyLock<Compiled> = LazyLock::new(|| compiled(&json!([quota()])));
static OF_VALUES: LazyLock<Compiled> = LazyLock::new(|| {
    compiled(&json!([{"name": "x", "template": {
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "x", "annotations": {"a": "$cpu"}},
        "data": {"whole": "$cpu", "part": "a: $cpu\nb", "number": "${pods}"}, "list": ["$cpu", {"a": "$pods"}],
    }}]))
});

proptest! {
    /// A namespace decides on values only.
    #[test]
    fn no_value_changes_the_structure_of_an_object(text in "\\PC{1,40}", number in any::<i64>()) {
        let compiled = &*OF_VALUES;
        let sample = structure(&object(compiled, &tenant("tool-abc", &[])));
        let number = number.to_string();
        let namespace = tenant("tool-abc", &[("cpu", text.as_str()), ("pods", number.as_str())]);
        if let Ok(found) = &compiled.generated(&namespace)[0].object {
            prop_assert_eq!(structure(&found.object), sample);
            let value = text.trim();
            prop_assert_eq!(&found.object["data"]["whole"], value);
            prop_assert_eq!(&found.object["data"]["part"], &json!(format!("a: {value}\nb")));
            prop_assert_eq!(&found.object["metadata"]["annotations"]["a"], value);
        } else {
            prop_assert!(text.trim().is_empty(), "{text:?}");
        }
    }

    /// The same input gives the same bytes, and the digest is of the object.
    #[test]
    fn equal_digests_are_of_equal_objects(one in "[a-z]{1,4}", other in "[a-z]{1,4}") {
        let of = |cpu: &str| OF_QUOTA.generated(&tenant("tool-abc", &[("cpu", cpu)])).remove(0).object.unwrap();
        let (first, second) = (of(&one), of(&other));
        prop_assert_eq!(first.digest == second.digest, first.object == second.object);
        prop_assert_eq!(first.object == second.object, one == other);
    }
}
