//! Suites that expect invalid objects: rules of CustomResourceDefinitions, schemas and built-in validation.

use palisade_policy_test::{
    Status, coverage,
    mutate::{Baseline, MutantOutcome},
};

use super::{assert_passes, load, missing, run, try_load};

const DEFINITION: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: routes.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {kind: Route, plural: routes, singular: route, listKind: RouteList}
  versions:
  - name: v1
    served: true
    storage: true
    schema: &schema
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [weight]
            properties:
              weight: {type: integer, maximum: 100}
              limit: {type: integer}
            x-kubernetes-validations:
            - rule: 'has(self.limit) ? self.weight <= self.limit : true'
              message: at most the limit
  - name: v1beta1
    served: true
    storage: false
    schema: *schema
";

const CASES: &str = "\
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
resources: [crd.yaml]
cases:
- name: a route
  object: {apiVersion: example.org/v1, kind: Route, metadata: {name: x}, spec: {weight: 5}}
  expect: allow
";

const MORE: &str = "  variants:
  - name: a rule
    set: {spec.limit: 4}
    expect: {verdict: invalid, field: spec, message: at most the limit, messageContains: Invalid value, reason: Invalid, code: 422}
  - name: the schema
    set: {spec.weight: 101}
    expect: {verdict: invalid, field: spec.weight, messageContains: should be less than or equal to 100}
  - {name: the schema again, unset: [spec.weight], expect: invalid}
  - {name: at the limit, set: {spec.limit: 5}, expect: allow}
  - {name: another version, patch: {apiVersion: example.org/v1beta1}, set: {spec.limit: 4}, expect: invalid}
";

fn suite(cases: &str) -> palisade_policy_test::Suite {
    load(&format!("{CASES}{cases}"), &[("crd.yaml", DEFINITION)])
}

#[test]
fn rules_of_a_definition_have_coverage_and_mutants() {
    let few = suite("");
    assert_passes(&few);
    let of =
        "routes.example.org spec.versions[0].schema.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule";
    assert_eq!(
        missing(&few),
        [
            format!("23:22 {of} the rule: never fails"),
            format!("23:38 {of} a condition: never true: the branch is not taken")
        ]
    );
    let outcomes = |suite: &palisade_policy_test::Suite| -> Vec<MutantOutcome> {
        let baseline = Baseline::new(suite);
        baseline.mutants().iter().map(|mutant| baseline.outcome(mutant)).collect()
    };
    let survives = |outcome: &MutantOutcome| matches!(outcome, MutantOutcome::Survived { .. });
    assert!(outcomes(&few).iter().any(survives), "{:?}", outcomes(&few));
    let all = suite(MORE);
    assert_passes(&all);
    assert_eq!(missing(&all), Vec::<String>::new());
    assert_eq!(coverage::measure(&all).total(), 4);
    let outcomes = outcomes(&all);
    assert!(outcomes.len() > 3 && !outcomes.iter().any(survives), "{outcomes:?}");
}

#[test]
fn expectations_of_an_invalid_object_are_compared() {
    let differences = |expect: &str| {
        let case = format!("  variants: [{{name: v, set: {{spec.limit: 4}}, expect: {expect}}}]\n");
        match run(&suite(&case)).pop() {
            Some((_, Status::Failed(found))) => {
                found.into_iter().map(|one| format!("{}: {}", one.what, one.got)).collect()
            }
            Some((_, Status::Passed)) => vec![],
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(differences("invalid"), Vec::<String>::new());
    assert_eq!(
        differences("deny"),
        ["verdict: invalid, so no policy is evaluated: denied: Route.example.org \"x\" is invalid: spec: Invalid \
          value: at most the limit"]
    );
    assert_eq!(differences("{verdict: invalid, field: spec.weight}"), ["field: spec"]);
    assert_eq!(differences("{verdict: invalid, message: the limit}"), ["message: Invalid value: at most the limit"]);
    let allowed = load(&format!("{CASES}  variants: [{{name: v, expect: invalid}}]\n"), &[("crd.yaml", DEFINITION)]);
    let Some((_, Status::Failed(found))) = run(&allowed).pop() else { panic!("it is valid") };
    assert_eq!((&*found[0].expected, &*found[0].got), ("invalid", "allow"));
}

#[test]
fn policies_may_be_left_out_only_where_something_is_tested() {
    let suite = |expect: &str| {
        format!(
            "apiVersion: test.toolsecurity.dev/v1alpha1\nkind: PolicyTest\ncases:\n- name: a pod\n  object: {{apiVersion: v1, \
             kind: Pod, metadata: {{name: x}}, spec: {{containers: [{{name: A, image: b}}]}}}}\n  expect: {expect}\n"
        )
    };
    let built_in = "{verdict: invalid, field: 'spec.containers[0].name'}";
    assert_passes(&load(&suite(built_in), &[]));
    for (expect, expected) in [
        ("allow", "policies: must not be empty: nothing is tested"),
        ("{verdict: deny, field: spec}", "cases[0].expect.field: only an invalid object has field errors"),
    ] {
        let problems = try_load("a.test.yaml", &suite(expect), &[]).err().unwrap();
        let messages: Vec<_> = problems.iter().map(|problem| problem.message().to_owned()).collect();
        assert!(messages.iter().any(|message| message == expected), "{expect}: {messages:?}");
    }
}
