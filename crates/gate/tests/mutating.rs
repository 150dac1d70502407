//! What mutates pods passes the gate, and what would harm does not.

use palisade_api::ToolSecurityProfile;
use palisade_compiler::{Compiled, compile};
use palisade_gate::check;
use serde_json::{Value as Json, json};

fn compiled(spec: &Json) -> Compiled {
    let mut profile = json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "test"},
        "spec": {"namespaceSelector": {"matchLabels": {"a": "b"}}, "mutation": {"defaults": "Secure"}},
    });
    for (key, value) in spec.as_object().unwrap() {
        profile["spec"][key] = value.clone();
    }
    compile(&serde_json::from_value::<ToolSecurityProfile>(profile).unwrap()).unwrap()
}

/// Why a profile is refused; empty if it is not.
fn refused(compiled: Compiled) -> String {
    let Err(rejected) = check(compiled) else { return String::new() };
    rejected.to_string()
}

#[test]
fn gate_accepts_defaults_and_redirects() {
    let uid = json!([{"name": "uid", "type": "Integer", "default": 50001}]);
    let ranges = json!({"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]});
    for spec in [
        json!({}),
        json!({"parameters": uid, "users": {"runAsUser": ranges, "runAsGroup": ranges, "fsGroup": ranges}}),
        json!({"images": {"redirect": {"target": "registry.example:5000", "pathStyle": "KeepHost"}}}),
    ] {
        let compiled = compiled(&spec);
        assert!(compiled.bundle.mutation.is_some(), "{spec}");
        assert_eq!(refused(compiled), "", "{spec}");
    }
}

#[test]
fn mutation_that_breaks_compliance_is_rejected() {
    let images = json!({
        "allowedRegistries": ["palisade.invalid"], "redirect": {"target": "registry.example:5000", "pathStyle": "StripHost"},
    });
    let found = refused(compiled(&json!({"images": images})));
    assert!(found.contains("it complied before it was mutated") && found.contains("[imageRegistries]"), "{found}");
}

#[test]
fn failing_or_non_idempotent_mutation_is_rejected() {
    let with = |from: &str, to: &str| {
        let mut compiled = compiled(&json!({"images": {"redirect": {"target": "registry.example:5000"}}}));
        let pair = compiled.bundle.mutation.as_mut().unwrap();
        let spec = pair.policy.spec.as_mut().unwrap();
        let patch = spec.mutations.as_mut().unwrap()[0].json_patch.as_mut().unwrap();
        let expression = patch.expression.as_mut().unwrap();
        assert!(expression.contains(from), "{expression}");
        *expression = to.replace('@', expression);
        refused(compiled)
    };
    assert!(with("JSONPatch", "(@) + [object.spec.nodeName]").contains("Kubernetes 1.34 rejects it"));
    let absent = "(@) + [JSONPatch{op: 'add', path: '/metadata/annotations/x', value: object.spec.nodeName}]";
    assert!(with("JSONPatch", absent).contains("fails: "));
    let grows = "(@) + [JSONPatch{op: 'add', path: '/spec/tolerations/-', value: Object.spec.tolerations{key: 'k', operator: 'Exists'}}]";
    let found = with("JSONPatch", grows);
    assert!(found.contains("a second mutation changes the result of the first one"), "{found}");
}
