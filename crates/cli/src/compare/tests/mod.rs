//! A change of a profile that changes an object of `spec.generate` is never reported as a change without an effect.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use palisade_api::{ToolSecurityProfile, names};
use palisade_cel::Minor;
use proptest::{prelude::*, sample::select, test_runner::Config};
use serde_json::{Value as Json, json};

use super::generated::Difference;
use crate::{
    namespaces::{self, Tenant},
    profiles::{self, Accepted},
};

/// A template: its kind, and where its object differs.
fn template(name: &'static str) -> impl Strategy<Value = Json> {
    let kinds = select(vec![("v1", "ConfigMap"), ("example.org/v1", "Widget"), ("example.com/v1", "Widget")]);
    let object_name = select(vec!["own", "$text", "shared"]);
    let value = select(vec![json!("a"), json!("$text"), json!("$number"), json!("x-$list"), json!(["$text"])]);
    let selector = select(vec![Json::Null, json!({"matchLabels": {"size": "large"}})]);
    let policy = select(vec!["Delete", "Orphan"]);
    (kinds, object_name, value, selector, policy, any::<bool>()).prop_map(
        move |((api_version, kind), object_name, value, selector, policy, adopt)| {
            let mut template = json!({
                "name": name, "deletionPolicy": policy, "adopt": adopt,
                "template": {"apiVersion": api_version, "kind": kind, "metadata": {"name": object_name}, "data": {"a": value}},
            });
            if !selector.is_null() {
                template["namespaceSelector"] = selector;
            }
            template
        },
    )
}

/// The parts of a profile's spec that can differ.
fn spec() -> impl Strategy<Value = Json> {
    let first = prop::option::of(template("first"));
    let second = prop::option::of(template("second"));
    let default = select(vec![Json::Null, json!("text")]);
    let overridden = select(vec![Json::Null, json!("b"), json!("c")]);
    let selected = select(vec!["tool", "batch"]);
    (first, second, default, overridden, selected).prop_map(|(first, second, default, overridden, selected)| {
        let mut text = json!({"name": "text", "type": "String", "sources": [{"namespaceAnnotation": "text"}]});
        if !default.is_null() {
            text["default"] = default;
        }
        let mut spec = json!({
            "namespaceSelector": {"matchExpressions": [{"key": "tenancy", "operator": "In", "values": ["all", selected]}]},
            "baseline": "Privileged",
            "parameters": [
                text,
                {"name": "number", "type": "Integer", "sources": [{"namespaceAnnotation": "number"}], "default": 1},
                {"name": "list", "type": "StringList", "sources": [{"namespaceAnnotation": "list"}], "default": "a"},
            ],
            "generate": first.into_iter().chain(second).collect::<Vec<_>>(),
        });
        if !overridden.is_null() {
            spec["overrides"] = json!([{"namespaces": ["b"], "parameters": {"text": overridden}}]);
        }
        spec
    })
}

/// Both specs: the second is another one, or the first with one other part.
fn change() -> impl Strategy<Value = (Json, Json)> {
    let parts = select(vec!["generate", "parameters", "overrides", "namespaceSelector", "none", "all"]);
    (spec(), spec(), parts).prop_map(|(before, other, part)| {
        let mut after = before.clone();
        match part {
            "all" => after = other,
            "none" => {}
            part => after[part] = other.get(part).cloned().unwrap_or_else(|| json!([])),
        }
        (before, after)
    })
}

/// The same with a change of one field of one template.
fn small_change() -> impl Strategy<Value = (Json, Json)> {
    (spec(), 0_usize..5, 0_usize..2).prop_map(|(before, field, index)| {
        let mut after = before.clone();
        if let Some(one) = after["generate"].get_mut(index) {
            match field {
                0 => one["adopt"] = json!(one["adopt"] != true),
                1 => one["deletionPolicy"] = if one["deletionPolicy"] == "Delete" { "Orphan" } else { "Delete" }.into(),
                2 => one["template"]["data"]["b"] = json!("c"),
                3 => one["template"]["metadata"]["labels"] = json!({"a": "$text"}),
                _ => one["name"] = "third".into(),
            }
        }
        (before, after)
    })
}

fn accepted(spec: &Json) -> Option<Accepted> {
    let profile: ToolSecurityProfile = serde_json::from_value(json!({
        "apiVersion": names::API_VERSION, "kind": "ToolSecurityProfile", "metadata": {"name": "tools"}, "spec": spec,
    }))
    .unwrap();
    profiles::accept_live(profile).ok()
}

fn tenants() -> Vec<Tenant> {
    let tenant = |name: &str, labels: Json, annotations: Json| {
        let metadata = ObjectMeta {
            labels: serde_json::from_value(labels).unwrap(),
            annotations: serde_json::from_value(annotations).unwrap(),
            ..ObjectMeta::default()
        };
        namespaces::seen(name.to_owned(), metadata).unwrap()
    };
    vec![
        tenant("a", json!({"tenancy": "tool"}), json!({"text": "text", "number": "7", "list": "x,y"})),
        tenant("b", json!({"tenancy": "all", "size": "large"}), json!({"text": "UPPER"})),
        tenant("c", json!({"tenancy": "batch", "size": "large"}), json!({})),
        tenant("d", json!({"tenancy": "other"}), json!({"text": "text"})),
    ]
}

/// The objects that the controller keeps in a namespace, with what it does about objects of other owners; by apiVersion, kind
/// and name.
type Kept = BTreeMap<[String; 3], (Json, bool)>;

/// The objects in a namespace after the controller has worked, if `earlier` existed before.
fn kept(of: &Accepted, tenant: &Tenant, earlier: &Kept) -> Kept {
    let mut kept = Kept::new();
    if !palisade_compiler::selects(&of.profile.spec, tenant) {
        return kept;
    }
    let mut without_value = BTreeSet::new();
    for resolved in of.checked.generated(tenant) {
        match resolved.object {
            Ok(one) => {
                let mut object = one.object;
                object["metadata"]["annotations"].as_object_mut().unwrap().remove(names::DIGEST_ANNOTATION);
                kept.insert([one.object_type.api_version, one.object_type.kind, one.name], (object, one.adopt));
            }
            Err(_) => drop(without_value.insert(resolved.template)),
        }
    }
    for (key, (object, adopt)) in earlier {
        let template = object["metadata"]["labels"][names::TEMPLATE_LABEL].as_str().unwrap_or_default();
        if without_value.contains(template) {
            kept.entry(key.clone()).or_insert_with(|| (object.clone(), *adopt));
        }
    }
    kept
}

#[test]
fn change_of_a_generated_object_is_never_without_effect() {
    let config = Config { cases: 200, failure_persistence: None, ..Config::default() };
    let mut runner = proptest::test_runner::TestRunner::new_with_rng(
        config,
        proptest::test_runner::TestRng::deterministic_rng(proptest::test_runner::RngAlgorithm::ChaCha),
    );
    let count = std::cell::Cell::new([0; 3]);
    let tenants = tenants();
    let result = runner.run(&prop_oneof![change(), small_change()], |(before, after)| {
        let (Some(one), Some(other)) = (accepted(&before), accepted(&after)) else { return Ok(()) };
        let is_changed = tenants.iter().any(|tenant| {
            let existing = kept(&one, tenant, &Kept::new());
            kept(&other, tenant, &existing) != existing
        });
        let [mut changed, mut quiet, mut may] = count.get();
        let difference = Difference::new(&[one], &[other], &tenants, Minor::DEFAULT)
            .map_err(|_| TestCaseError::fail("no difference"))?;
        for whole in [true, false] {
            let sentence = difference.sentence(whole);
            let says_nothing = sentence.contains("no effect");
            prop_assert_eq!(says_nothing, !difference.matters(whole), "{}", sentence);
            prop_assert!(!(is_changed && says_nothing), "{} {} {}", before, after, sentence);
            // Other namespaces may have other objects.
            let is_other =
                before["generate"] != after["generate"] || before["namespaceSelector"] != after["namespaceSelector"];
            prop_assert!(whole || !is_other || !says_nothing, "{} {} {}", before, after, sentence);
            changed += usize::from(is_changed);
            quiet += usize::from(says_nothing);
            may += usize::from(!says_nothing && !is_changed);
        }
        count.set([changed, quiet, may]);
        Ok(())
    });
    assert!(result.is_ok(), "{result:?}");
    let [changed, quiet, may] = count.get();
    assert!(changed > 50 && quiet > 20 && may > 5, "{changed} {quiet} {may}");
}
