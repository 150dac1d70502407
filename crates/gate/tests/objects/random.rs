//! Random custom checks of random objects: an update is exempt only if the check finds the same before and after it.

use palisade_gate::{Decision, ValidationRequest, Validator};
use proptest::{collection::vec, prelude::*, sample, test_runner::Config};

use super::*;

/// Expressions of type bool that are valid for each object below, in each operation.
const ATOMS: &[&str] = &[
    "object.spec.a == 1",
    "object.?spec.?b.orValue(0) == 1",
    "object.?data.?a.orValue('x') == 'x'",
    "object.?data.orValue({}).exists(k, k == 'b')",
    "'status' in object",
    "object.?status.?phase.orValue('') == 'Ready'",
    "object[?('da' + 'ta')].hasValue()",
    "object.exists(k, k != 'spec' && k != 'metadata' && object[k] == {'a': 'x'})",
    "object.metadata.?labels[?'a'].orValue('') == 'x'",
    "object.metadata.?labels.orValue({}).size() == 1",
    "object.metadata.?annotations[?object.metadata.?labels[?'a'].orValue('')].hasValue()",
    "'b' in object.metadata.?labels.orValue({})",
    "object.metadata.?finalizers.orValue([]).size() < 2",
    "has(object.metadata.ownerReferences)",
    "object.?data.optMap(object, object.size() == 1).orValue(true)",
    "[object].all(o, o.spec.a == 1)",
    "[1].all(spec, object.spec.a != spec)",
    "object.metadata.name == 'x' && object.kind == 'Widget'",
];

prop_compose! {
    /// An atom, or two.
    fn expression()(
        atoms in vec(sample::select(ATOMS), 1..4), negated in vec(any::<bool>(), 4), or in any::<bool>(),
    ) -> String {
        let terms = atoms.iter().zip(negated).map(|(atom, not)| if not { format!("!({atom})") } else { format!("({atom})") });
        terms.collect::<Vec<_>>().join(if or { " || " } else { " && " })
    }
}

fn some(values: Vec<Json>) -> impl Strategy<Value = Json> {
    sample::select(values)
}

prop_compose! {
    /// An object of a kind without a schema.
    fn widget()(
        spec in some(vec![json!({"a": 1}), json!({"a": 2}), json!({"a": 1, "b": 1})]),
        data in some(vec![Json::Null, json!({"a": "x"}), json!({"b": "x"}), json!({"a": "x", "b": "y"})]),
        status in some(vec![Json::Null, json!({"phase": "Ready"}), json!({"a": "x"})]),
        labels in some(vec![Json::Null, json!({"a": "x"}), json!({"a": "y", "b": "x"}), json!({"b": "x"})]),
        annotations in some(vec![Json::Null, json!({"x": "1"}), json!({"y": "1"})]),
        finalizers in some(vec![Json::Null, json!(["f/a"]), json!(["f/a", "f/b"])]),
        owners in some(vec![Json::Null, json!([{"apiVersion": "v1", "kind": "A", "name": "a", "uid": "u"}])]),
    ) -> Json {
        let mut object = object("example.org/v1", "Widget", &json!({"spec": spec}));
        for (key, value) in [("data", data), ("status", status)] {
            if !value.is_null() {
                object[key] = value;
            }
        }
        for (key, value) in
            [("labels", labels), ("annotations", annotations), ("finalizers", finalizers), ("ownerReferences", owners)]
        {
            if !value.is_null() {
                object["metadata"][key] = value;
            }
        }
        object
    }
}

fn policy(expression: &str) -> Validator {
    let spec = json!({"customChecks": [{
        "id": "own", "target": "Object", "message": "m", "expression": expression,
        "kinds": [{"group": "example.org", "versions": ["v1"], "resource": "widgets"}],
    }]});
    let compiled = compile(&profile(&spec)).unwrap();
    Validator::new(&compiled.bundle.objects.unwrap().policy).unwrap_or_else(|found| panic!("{expression}: {found:?}"))
}

fn is_denied(policy: &Validator, object: &Json, old: Option<&Json>) -> bool {
    let request = ValidationRequest::create("Widget", object);
    let request = match old {
        None => request,
        Some(old_object) => ValidationRequest { operation: Operation::Update, old_object, ..request },
    };
    policy.evaluate(&request).unwrap_or_else(|error| panic!("{error}\n{object}")) != Decision::Admit
}

proptest! {
    #![proptest_config(Config { cases: 512, ..Config::default() })]

    #[test]
    fn an_exempt_update_changes_no_result(expression in expression(), objects in vec(widget(), 2..6)) {
        let policy = policy(&expression);
        for (old, new) in objects.iter().flat_map(|old| objects.iter().map(move |new| (old, new))) {
            let [before, after] = [old, new].map(|object| is_denied(&policy, object, None));
            if is_denied(&policy, new, Some(old)) {
                prop_assert!(after, "{expression}: denied, but complies: {new}");
            } else {
                // Finalizers are the exception: their removal is always admitted.
                let removes = expression.contains("finalizers");
                prop_assert!(!after || before || removes, "{expression}: {old} became {new}");
            }
            let mut released = old.clone();
            if let Some(metadata) = released["metadata"].as_object_mut() {
                metadata.remove("finalizers");
            }
            prop_assert!(!is_denied(&policy, &released, Some(old)), "{expression}: {old} is not released");
        }
    }
}
