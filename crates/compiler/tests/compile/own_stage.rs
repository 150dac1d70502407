//! Checks with a stage of their own: which policies there are, what each judges, and what is rejected.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use palisade_api::{
    Stage,
    names::{self, Part, Shape},
};
use palisade_compiler::PolicyWithBindings;
use serde_json::{Value as Json, json};

use super::{compiled, profile};

/// The stage of a pair's binding, and whether it judges a check.
fn of(pair: Option<&PolicyWithBindings>, check: &str) -> Option<(String, bool)> {
    let pair = pair?;
    let spec = pair.policy.spec.clone().unwrap();
    let violations = spec.variables.unwrap().into_iter().find(|one| one.name == "violations").unwrap().expression;
    let action = pair.binding.spec.validation_actions[0].clone();
    Some((action, violations.contains(&format!("variables.{check}"))))
}

/// In each combination of stages: what the two policies of each shape do with a check that has a stage of its own.
#[test]
fn a_second_policy_judges_checks_only_where_their_stage_differs() {
    for pods in Stage::ALL {
        for workloads in [None, Some(Stage::Deny), Some(Stage::Warn), Some(Stage::Audit)] {
            for own in Stage::ALL {
                for by_label in [false, true] {
                    let stages = if by_label { "ByLabel" } else { "Uniform" };
                    let workload_stage = workloads.map_or("Off".to_owned(), |stage| stage.to_string());
                    let enforcement = json!({
                        "pods": pods, "workloads": workload_stage, "namespaceStages": stages, "checks": {"privileged": own},
                    });
                    let bundle = compiled(&json!({"enforcement": enforcement})).bundle;
                    for (shape, stage) in [(Shape::Pods, Some(pods)), (Shape::Workloads, workloads)] {
                        let [main, checks] = Part::judging(shape).map(|part| of(bundle.part(part), "privileged"));
                        let is_apart = stage.is_some_and(|stage| by_label || stage != own);
                        // In Deny, the policy of the shape judges it, too.
                        let of_shape = stage.map(|stage| (stage.to_string(), !is_apart || own == Stage::Deny));
                        assert_eq!(main, of_shape, "{enforcement}");
                        assert_eq!(checks, is_apart.then(|| (own.to_string(), true)), "{enforcement}");
                        let [main, checks] = Part::judging(shape).map(|part| of(bundle.part(part), "hostNamespaces"));
                        assert_eq!(main.map(|(_, judged)| judged), stage.map(|_| true), "{enforcement}");
                        assert!(checks.is_none_or(|(_, judged)| !judged), "{enforcement}");
                    }
                }
            }
        }
    }
}

#[test]
fn bindings_of_checks_are_for_all_namespaces_and_have_known_names() {
    let spec = json!({
        "enforcement": {"pods": "Audit", "namespaceStages": "ByLabel", "checks": {"runAsUser": "Deny"}},
        "parameters": [{"name": "uid", "type": "Integer"}],
        "users": {"runAsUser": {"rule": "MustRunAs", "ranges": [{"min": "$uid", "max": "$uid"}]}},
    });
    let compiled = compiled(&spec);
    for shape in Shape::OF_PODS {
        let part = Part::Checks(shape);
        let pair = compiled.bundle.part(part).unwrap();
        let known: Vec<_> = names::bindings("test", part).collect();
        let names: Vec<_> = pair.bindings().filter_map(|binding| binding.metadata.name.clone()).collect();
        assert_eq!(names, known);
        assert_eq!(names::profile_of_policy(pair.policy.metadata.name.as_deref().unwrap()), Some("test"));
        for binding in pair.bindings() {
            let namespaces =
                binding.spec.match_resources.as_ref().and_then(|matching| matching.namespace_selector.as_ref());
            assert_eq!(namespaces, Some(&LabelSelector::default()));
            assert_eq!(binding.spec.validation_actions, ["Deny"]);
        }
        // Without parameters, what they decide is denied.
        let not_found = pair.binding.spec.param_ref.as_ref().and_then(|one| one.parameter_not_found_action.as_deref());
        assert_eq!(not_found, Some("Deny"));
    }
    // A check that reads no parameters is judged where they are missing or wrong.
    let mut spec = spec;
    spec["enforcement"]["checks"] = json!({"privileged": "Deny"});
    let bundle = super::compiled(&spec).bundle;
    let policy = bundle.checks_of_pods.unwrap();
    assert_eq!((policy.policy.spec.unwrap().param_kind, policy.binding.spec.param_ref), (None, None));
}

#[test]
fn probes_of_checks_are_judged_by_their_policy_alone() {
    let compiled = compiled(&json!({"enforcement": {"pods": "Audit", "checks": {"privileged": "Deny"}}}));
    let [main, checks] = Part::judging(Shape::Pods).map(|part| {
        let question = compiled.probes.question(part).unwrap();
        let label = |object: &Json| object["metadata"]["labels"][names::PROFILE_LABEL].as_str().unwrap().to_owned();
        assert_eq!(label(&question.compliant), label(&question.violating));
        let spec = compiled.bundle.part(part).unwrap().policy.spec.clone().unwrap();
        let exempt = spec.variables.unwrap().into_iter().find(|one| one.name == "exempt").unwrap().expression;
        assert!(exempt.contains(&format!("!= '{}'", label(&question.violating))), "{exempt}");
        (label(&question.violating), question.check)
    });
    assert_eq!(checks, ("test.3.c".to_owned(), "privileged"));
    assert_eq!(main.0, "test.3");
}

#[test]
fn mistakes_in_stages_of_checks_have_their_place() {
    let found = |checks: Json, more: Json| -> Vec<String> {
        let mut spec = more;
        spec["enforcement"] = json!({"checks": checks});
        let found = palisade_compiler::compile(&profile(&spec)).err().unwrap_or_default();
        found.into_iter().map(|one| format!("{}: {}", one.location, one.message)).collect()
    };
    let none: Vec<String> = vec![];
    assert_eq!(found(json!({"privileged": "Audit"}), json!({})), none);
    let own = json!({"customChecks": [{"id": "own", "expression": "true", "message": "no"}]});
    assert_eq!(found(json!({"own": "Audit"}), own.clone()), none);
    assert_eq!(
        found(json!({"imageRegistries": "Deny"}), json!({})),
        ["spec.enforcement.checks.imageRegistries: \"imageRegistries\" is not a check of this profile"]
    );
    assert_eq!(
        found(json!({"hostNamespaces": "Deny", "privileged": "Audit"}), json!({})),
        ["spec.enforcement.checks.privileged: has the stage Audit, but others have Deny"]
    );
    let mut alone = own;
    alone["baseline"] = json!("Privileged");
    assert_eq!(
        found(json!({"own": "Audit"}), alone.clone()),
        ["spec.enforcement.checks: must not list all checks of the profile"]
    );
    assert_eq!(found(json!({"own": "Deny"}), alone), none);
}
