//! Terms of a match condition are applied only with a proof for the custom checks of the profile.

use palisade_api::{ToolSecurityProfile, names::Shape};
use palisade_compiler::Compiled;
use palisade_gate::{Decision, check};
use palisade_kube_json::pod;
use serde_json::{Value as Json, json};

use crate::support::ShapePolicy;

fn compile(checks: &Json) -> Compiled {
    let profile: ToolSecurityProfile = serde_json::from_value(json!({
        "apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityProfile", "metadata": {"name": "x"},
        "spec": {
            "namespaceSelector": {"matchLabels": {"a": "b"}}, "baseline": "Baseline", "customChecks": checks,
            "enforcement": {"pods": "Deny", "workloads": "Off"},
        },
    }))
    .unwrap();
    palisade_compiler::compile(&profile).unwrap_or_else(|error| panic!("{error:?}"))
}

/// A pod with these fields in its spec.
fn with(spec: &Json) -> Json {
    let mut object = pod::minimal("x");
    pod::merge(&mut object["spec"], spec);
    object
}

fn condition(compiled: &mut Compiled) -> &mut String {
    &mut compiled.bundle.pods.policy.spec.as_mut().unwrap().match_conditions.as_mut().unwrap()[0].expression
}

/// Custom checks, a pod that violates one, and a term of a match condition that leaves the pod out. The pods of the
/// catalogue do not show that the term is wrong.
fn wrong_terms() -> Vec<(Json, Json, &'static str)> {
    let named = "container.?ports.orValue([]).all(p, p.?protocol.orValue('TCP') != 'UDP' || has(p.name))";
    let directories = "variables.spec.containers.all(a, variables.spec.containers.all(b, a.name == b.name \
                       || a.?workingDir.orValue('') == '' || a.?workingDir.orValue('') != b.?workingDir.orValue('')))";
    let vault = "variables.spec.containers.all(c, c.?env.orValue([]).exists(e, e.name == 'VAULT_ADDR')) \
                 ? 'team' in variables.annotations : true";
    vec![
        // A field that can be unset counts as set.
        (
            json!([{"id": "own", "target": "Containers", "expression": named, "message": "x"}]),
            with(&json!({"containers": [{"ports": [{"containerPort": 53, "protocol": "UDP"}]}]})),
            "object.spec.containers.all(c, true)",
        ),
        // A loop captures the name of another one.
        (
            json!([{"id": "own", "expression": directories, "message": "x"}]),
            with(&json!({"containers": [
                {"name": "a", "image": "x", "workingDir": "/w"}, {"name": "b", "image": "x", "workingDir": "/w"},
            ]})),
            "object.spec.containers.all(c, object.spec.containers.all(c, c.name == c.name))",
        ),
        // A condition of a ternary is decided by one that is only sufficient.
        (
            json!([{"id": "own", "expression": vault, "message": "x"}]),
            with(&json!({"containers": [{"env": [{"name": "VAULT_ADDR", "value": "x"}]}]})),
            "object.spec.containers.all(c, has(c.env) && c.env.exists(e, e.name == 'VAULT_ADDR'))",
        ),
    ]
}

#[test]
fn violation_of_custom_check_is_denied_with_its_own_fast_path() {
    for (checks, violating, _) in wrong_terms() {
        let compiled = check(compile(&checks)).unwrap_or_else(|error| panic!("{checks}: {error}"));
        println!("{checks}: {:?}", compiled.unproved);
        let judgement = ShapePolicy::new(&compiled, Shape::Pods).creates("Pod", &violating);
        assert!(matches!(judgement.decision, Decision::Deny { .. }), "{checks}: {judgement:?}");
    }
}

#[test]
fn term_without_a_proof_is_left_out_with_the_check_that_causes_it() {
    for (checks, violating, term) in wrong_terms() {
        let mut compiled = compile(&checks);
        let expression = condition(&mut compiled);
        // Only for pods that the catalogue does not have.
        *expression =
            format!("!(request.namespace == 'elsewhere' || (object.spec.containers[0].name == 'rare' && {term}))");
        let checked = check(compiled).unwrap_or_else(|error| panic!("{checks}: {error}"));
        let [unproved] = checked.unproved.as_slice() else { panic!("{checks}: {:?}", checked.unproved) };
        assert_eq!(
            (unproved.policy.as_str(), unproved.checks.as_slice()),
            ("palisade-x-pods", &["own".to_owned()][..])
        );
        let mut rare = violating.clone();
        rare["spec"]["containers"][0]["name"] = json!("rare");
        let judgement = ShapePolicy::new(&checked, Shape::Pods).creates("Pod", &rare);
        assert!(matches!(judgement.decision, Decision::Deny { .. }), "{checks}: {judgement:?}");
    }
}

#[test]
fn proofs_are_deterministic() {
    for (checks, _, _) in wrong_terms() {
        let [one, other] = [(); 2].map(|()| check(compile(&checks)).unwrap());
        assert_eq!((&one.bundle, &one.unproved), (&other.bundle, &other.unproved), "{checks}");
    }
}
