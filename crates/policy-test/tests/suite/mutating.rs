//! MutatingAdmissionPolicies: what of them is covered, and which mistakes in them are noticed.

use palisade_policy_test::{
    Status, Suite, coverage,
    mutate::{Baseline, MutantOutcome},
};

use super::{assert_passes, load, missing, run, try_load};

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: labelled}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}
  matchConditions:
  - {name: tenants, expression: \"request.userInfo.username != 'admin'\"}
  variables:
  - name: team
    expression: |-
      has(object.data) && 'team' in object.data
      ? object.data.team : 'none'
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: |-
        Object{metadata: Object.metadata{
          labels: {'team': variables.team}}}
  - patchType: JSONPatch
    jsonPatch:
      expression: |-
        has(object.immutable) ? [] :
        [JSONPatch{op: 'add', path: '/immutable', value: true}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: all}
spec: {policyName: labelled}
";

const CASES: &str = "\
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
policies: [policy.yaml]
cases:
- name: without data
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}
  expect: {verdict: allow, object: {metadata: {labels: {team: none}}, immutable: true}}
";

/// Cases that fill each gap.
const MORE: &str = "\
- name: a secret
  object: {apiVersion: v1, kind: Secret, metadata: {name: x}}
  expect: {verdict: allow, object: {immutable: true}}
- name: with a team
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}, immutable: false, data: {team: a}}
  expect: {verdict: allow, object: {metadata: {labels: {team: a}}, immutable: false}}
  variants:
  - {name: with other data, patch: {data: {team: null, b: c}}, expect: {verdict: allow, object: {metadata: {labels: {team: none}}}}}
  - {name: by the admin, user: admin, expect: {verdict: allow, object: {metadata: {labels: null}}}}
";

fn suite(cases: &str) -> Suite {
    let suite = load(&format!("{CASES}{cases}"), &[("policy.yaml", POLICY)]);
    assert_passes(&suite);
    suite
}

#[test]
fn coverage_gaps_of_mutations_are_located_until_cases_close_them() {
    assert_eq!(
        missing(&suite("")),
        [
            "9:7 labelled matchConstraints.resourceRules[1] the rule: never matched",
            "11:34 labelled matchConditions[0].expression the match condition: never excludes a request",
            "15:7 labelled variables[0].expression an operand of &&: never true",
            "15:27 labelled variables[0].expression an operand of &&: never false, which decides",
            "15:27 labelled variables[0].expression an operand of &&: never true",
            "16:7 labelled variables[0].expression a condition: never true: the branch is not taken",
            "26:31 labelled mutations[1].jsonPatch.expression a condition: never true: the branch is not taken",
        ]
    );
    assert_eq!(missing(&suite(MORE)), [] as [&str; 0]);
}

#[test]
fn mutations_of_excluded_requests_count_as_never_evaluated() {
    let only_by_admin = CASES.replace("expect: {verdict: allow, object", "user: admin\n  expect: allow # {object");
    let suite = load(&only_by_admin, &[("policy.yaml", POLICY)]);
    let missing = missing(&suite);
    for part in [
        "21:9 labelled mutations[0].applyConfiguration.expression : never evaluated",
        "26:9 labelled mutations[1].jsonPatch.expression : never evaluated",
    ] {
        assert!(missing.iter().any(|one| one == part), "{part}: {missing:?}");
    }
}

#[test]
fn expected_object_kills_mutants_of_mutations() {
    let survivors = |suite: &Suite| {
        let baseline = Baseline::new(suite);
        let mutants = baseline.mutants();
        assert!(mutants.len() > 15, "{}", mutants.len());
        let survives = |mutant: &palisade_policy_test::mutate::Mutant| {
            matches!(baseline.outcome(mutant), MutantOutcome::Survived { .. })
        };
        let mutants = mutants.into_iter().filter(survives);
        mutants.map(|mutant| format!("{}: {}", mutant.place.line, mutant.after.trim())).collect::<Vec<_>>()
    };
    let found = survivors(&suite(""));
    for part in ["11: request.userInfo.username != ''", "15: has(object.data)"] {
        assert!(found.iter().any(|one| one == part), "{part}: {found:?}");
    }
    let blind = CASES.replace(", object: {metadata: {labels: {team: none}}, immutable: true}", "");
    let found = survivors(&load(&blind, &[("policy.yaml", POLICY)]));
    for part in
        ["21: Object{}", "16: ? object.data.team : ''", "27: [JSONPatch{op: 'add', path: '/immutable', value: false}]"]
    {
        assert!(found.iter().any(|one| one == part), "{part}: {found:?}");
    }
    assert_eq!(survivors(&suite(MORE)), [] as [&str; 0]);
}

#[test]
fn coverage_separates_policies_of_the_same_name() {
    let validating = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: labelled}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}
    objectSelector: {matchLabels: {team: none}}
  validations:
  - expression: 'true'
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: all}
spec: {policyName: labelled, validationActions: [Deny]}
";
    let cases = CASES.replace("[policy.yaml]", "[policy.yaml, other.yaml]");
    let measured = |more: &str| {
        let suite = load(&format!("{cases}{more}"), &[("policy.yaml", POLICY), ("other.yaml", validating)]);
        assert_passes(&suite);
        let of_other = |point: &coverage::Point| point.place.file == "other.yaml";
        let missing = coverage::measure(&suite).missing().into_iter().filter(of_other);
        missing.map(|one| format!("{} {}", one.path, one.missing)).collect::<Vec<_>>()
    };
    assert!(measured("").contains(&"matchConstraints.resourceRules[0] never matched".to_owned()));
    // The label that the selector wants is one that the other policy sets.
    let filled = measured(MORE);
    assert_eq!(filled, ["validations[0].expression never fails"]);
}

#[test]
fn mutated_object_is_compared_in_part() {
    const POD: &str = "\
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
generateBindings: true
policies:
- apiVersion: admissionregistration.k8s.io/v1
  kind: MutatingAdmissionPolicy
  metadata: {name: volumes}
  spec:
    reinvocationPolicy: Never
    matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [pods]}]}
    mutations:
    - patchType: ApplyConfiguration
      applyConfiguration:
        expression: \"Object{spec: Object.spec{volumes: [Object.spec.volumes{name: 'home', emptyDir: Object.spec.volumes.emptyDir{}}]}}\"
cases:
- name: a pod
  object: {apiVersion: v1, kind: Pod, metadata: {name: x}, spec: {containers: [{name: a, image: b}]}}
";
    let with = |expect: &str| load(&format!("{POD}  expect: {{verdict: allow, {expect}}}\n"), &[]);
    for expect in [
        "objectContains: {spec: {volumes: [{name: home}], containers: [{image: b}]}}",
        "assert: \"object.spec.volumes.exists(v, v.name == 'home') && oldObject == null\"",
        "assert: [object.metadata.name == 'x', size(object.spec.volumes) > 1]",
    ] {
        let suite = with(expect);
        assert_passes(&suite);
        assert!(suite.notes.is_empty(), "{:?}", suite.notes);
    }
    for (expect, expected) in [
        ("objectContains: {spec: {volumes: [{name: tools}]}}", "object.spec.volumes[0]: expected {\"name\":\"tools\"}"),
        ("assert: size(object.spec.volumes) > 2", "assert size(object.spec.volumes) > 2: expected true, got false"),
        ("assert: object.spec.none == 1", "assert object.spec.none == 1: expected true, got error: no such key: none"),
    ] {
        let Some((_, Status::Failed(found))) = run(&with(expect)).pop() else { panic!("{expect} passes") };
        let text = format!("{}: expected {}, got {}", found[0].what, found[0].expected, found[0].got);
        assert!(text.starts_with(expected), "{text}");
    }
    let wrong = format!("{POD}  expect: {{verdict: allow, assert: [object.x, objct.y == 1]}}\n");
    let problems = try_load("a.test.yaml", &wrong, &[]).err().unwrap();
    let messages: Vec<_> = problems.iter().map(|problem| problem.message().to_owned()).collect();
    assert_eq!(
        messages,
        [
            "cases[0].expect.assert[0]: must evaluate to bool but got dyn",
            "cases[0].expect.assert[1]: undeclared reference to 'objct' (in container '')"
        ]
    );
}

#[test]
fn policy_of_each_kind_needs_a_binding_of_that_kind() {
    let binding = "{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: all}, \
                   spec: {policyName: labelled, validationActions: [Deny]}}";
    let policy = POLICY.split("---").next().unwrap();
    let cases = CASES.replace("[policy.yaml]", &format!("[policy.yaml, {binding}]"));
    let suite = load(&cases, &[("policy.yaml", policy)]);
    assert!(
        suite.notes[0].contains("MutatingAdmissionPolicy labelled has no binding in this suite"),
        "{:?}",
        suite.notes
    );
}
