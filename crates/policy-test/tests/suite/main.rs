//! Suites, from their text to their reports.
#![allow(clippy::unwrap_used, reason = "a test that cannot set itself up may panic")]

mod definitions;
mod messages;
mod mutating;
mod support;

use std::sync::Arc;

use palisade_manifest::{Problem, Source};
use palisade_policy_test::{
    Status, Suite,
    mutate::{Baseline, MutantOutcome},
};
use support::{assert_passes, missing, run};

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: labelled}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [secrets]}
    objectSelector: {matchLabels: {checked: 'yes'}}
  matchConditions:
  - {name: tenants, expression: \"request.userInfo.username != 'admin'\"}
  variables:
  - {name: labels, expression: 'object.metadata.?labels.orValue({})'}
  validations:
  - expression: |-
      'team' in variables.labels &&
      (variables.labels.team == 'a' || variables.labels.team == 'b')
    message: a team is missing
  - expression: 'has(object.data) ? size(object.data) <= 2 : true'
";

const CASES: &str = "\
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
policies: [policy.yaml]
generateBindings: true
cases:
- name: with a team
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {checked: 'yes', team: a}}, data: {a: b}}
  expect: allow
  variants:
  - {name: without, unset: [metadata.labels.team], expect: {verdict: deny, message: a team is missing}}
";

fn try_load(name: &str, text: &str, files: &[(&'static str, &str)]) -> Result<Vec<Suite>, Vec<Problem>> {
    support::try_load(None, name, text, files)
}

fn load(text: &str, files: &[(&'static str, &str)]) -> Suite {
    support::load(None, text, files)
}

/// The suite with more cases.
fn with(cases: &str) -> Suite {
    load(&format!("{CASES}{cases}"), &[("policy.yaml", POLICY)])
}

#[test]
fn coverage_lists_every_untested_part_of_a_policy() {
    let suite = with("");
    assert_passes(&suite);
    assert_eq!(
        missing(&suite),
        [
            "8:7 labelled matchConstraints.resourceRules[1] the rule: never matched",
            "9:21 labelled matchConstraints.objectSelector the selector: never excluded a request",
            "11:34 labelled matchConditions[0].expression the match condition: never excludes a request",
            "17:8 labelled validations[0].expression an operand of ||: never false",
            "17:40 labelled validations[0].expression an operand of ||: never false",
            "17:40 labelled validations[0].expression an operand of ||: never true, which decides",
            "19:18 labelled validations[1].expression the validation: never fails",
            "19:35 labelled validations[1].expression a condition: never false: the other branch is not taken",
        ]
    );
}

#[test]
fn surviving_mutant_is_found_and_killed_by_a_new_case() {
    let survivors = |suite: &Suite| {
        assert_passes(suite);
        let baseline = Baseline::new(suite);
        let survives = |mutant: &palisade_policy_test::mutate::Mutant| {
            matches!(baseline.outcome(mutant), MutantOutcome::Survived { .. })
        };
        let of_size = |mutant: &palisade_policy_test::mutate::Mutant| mutant.path == "validations[1].expression";
        let mutants = baseline.mutants();
        assert!(mutants.len() > 15, "{}", mutants.len());
        mutants.into_iter().filter(of_size).filter(survives).map(|mutant| mutant.after).collect::<Vec<_>>()
    };
    let boundary = "has(object.data) ? size(object.data) < 2 : true".to_owned();
    let found = survivors(&with(""));
    assert!(found.contains(&boundary), "{found:?}");
    let more = "  - {name: two, set: {data.c: d}, expect: allow}\n";
    let found = survivors(&with(more));
    assert!(!found.contains(&boundary), "{found:?}");
    assert!(found.contains(&"has(object.data) ? size(object.data) <= 3 : true".to_owned()), "{found:?}");
    let three = "  - {name: three, set: {data.c: d, data.e: f}, expect: deny}\n";
    let none = "  - {name: none, unset: [data], expect: allow}\n";
    assert_eq!(survivors(&with(&format!("{more}{three}{none}"))), [] as [&str; 0]);
}

#[test]
fn every_expected_field_is_compared() {
    let differs = |expect: &str| {
        let cases = format!("  - {{name: x, unset: [metadata.labels.team], expect: {expect}}}\n");
        match &run(&with(&cases))[2].1 {
            Status::Failed(differences) => differences.iter().map(|one| one.what.clone()).collect::<Vec<_>>(),
            Status::Passed => vec![],
            Status::NoVerdict(why) => vec![why.clone()],
        }
    };
    for expect in [
        "deny",
        "{verdict: deny, policy: labelled, binding: labelled, reason: Invalid, code: 422, warnings: []}",
        "{verdict: deny, messageContains: [team, ValidatingAdmissionPolicy]}",
    ] {
        assert_eq!(differs(expect), [] as [&str; 0], "{expect}");
    }
    for (expect, what) in [
        ("allow", "verdict"),
        ("warn", "verdict"),
        ("error", "verdict"),
        ("{verdict: deny, binding: other}", "binding"),
        ("{verdict: deny, message: a team}", "message"),
        ("{verdict: deny, messageContains: nothing}", "message contains"),
        ("{verdict: deny, reason: Forbidden}", "reason"),
        ("{verdict: deny, code: 403}", "code"),
        ("{verdict: deny, warnings: [x]}", "warnings"),
        ("{verdict: deny, auditAnnotations: {a: b}}", "audit annotation a"),
        ("{verdict: deny, object: {data: {a: c}}}", "object.data.a"),
    ] {
        assert_eq!(differs(expect), [what], "{expect}");
    }
}

#[test]
fn rejection_before_policies_does_not_count_as_denial() {
    let object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: Not_A_Name, labels: {checked: 'yes'}}}";
    let suite = with(&format!("- name: invalid\n  object: {object}\n  expect: deny\n"));
    let Status::Failed(differences) = &run(&suite)[2].1 else { panic!("{:?}", run(&suite)[2]) };
    assert!(differences[0].got.starts_with("invalid, so no policy is evaluated"), "{differences:?}");
}

#[test]
fn suite_case_accepts_an_admission_review() {
    let review = "
    apiVersion: admission.k8s.io/v1
    kind: AdmissionReview
    request:
      kind: {group: '', version: v1, kind: ConfigMap}
      resource: {group: '', version: v1, resource: configmaps}
      operation: CREATE
      name: x
      namespace: default
      userInfo: {username: jane}
      object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, namespace: default, labels: {checked: 'yes'}}}
";
    assert_passes(&with(&format!("- name: a review\n  expect: deny\n  review:{review}")));
}

#[test]
fn old_object_of_a_case_is_completed_as_stored() {
    let policy = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: claims}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [UPDATE, DELETE], resources: [persistentvolumeclaims]}
  validations:
  - {expression: \"request.operation != 'DELETE' || oldObject.status.phase != 'Bound'\", message: it is bound}
  - expression: \"request.operation != 'UPDATE' || !has(oldObject.metadata.deletionTimestamp) || has(object.metadata.finalizers)\"
    message: it ends
";
    let cases = "\
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
policies: [policy.yaml]
generateBindings: true
cases:
- name: a claim
  old: &claim
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: c, finalizers: [example.org/a]}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
    status: {phase: Bound}
  expect: {verdict: deny, message: it is bound}
  variants:
  - {name: free, set: {status.phase: Pending}, expect: allow}
- name: a finalizer goes
  old: *claim
  object:
    apiVersion: v1
    kind: PersistentVolumeClaim
    metadata: {name: c, finalizers: []}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}
  expect: allow
  variants:
  - {name: while it ends, patchOld: {metadata: {deletionTimestamp: 2001-01-01T00:00:00Z, uid: u}}, expect: {verdict: deny, message: it ends}}
";
    assert_passes(&load(cases, &[("policy.yaml", policy)]));
}

#[test]
fn suite_error_is_reported_at_its_position() {
    let mistake = |cases: &str| {
        let problems = try_load("a.test.yaml", &format!("{CASES}{cases}"), &[("policy.yaml", POLICY)]).err().unwrap();
        let place = problems[0].place().map(|(source, range)| source.position(range.start)).unwrap();
        (place, problems[0].message().to_owned())
    };
    let object = "object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x}}";
    for (cases, place, part) in [
        (format!("- name: x\n  {object}\n  expct: allow\n"), (13, 3), "unknown field \"expct\""),
        (format!("- name: x\n  {object}\n  expect: alow\n"), (13, 11), "unknown value \"alow\""),
        (
            format!("- name: x\n  {object}\n  expect: {{verdict: deny, mesage: x}}\n"),
            (13, 27),
            "unknown field \"mesage\"",
        ),
        (
            format!("- name: x\n  {object}\n  expect: {{verdict: deny, policy: y}}\n"),
            (11, 9),
            "there is no policy \"y\"",
        ),
        (format!("- name: x\n  {object}\n"), (11, 3), "nothing is expected"),
        (
            "- {name: x, object: none.yaml, expect: allow}\n".to_owned(),
            (11, 21),
            "cannot read \"none.yaml\": no such file",
        ),
        ("- {name: x, object: {apiVersion: a/v1, kind: B}, expect: allow}\n".to_owned(), (11, 10), "no kind B in a/v1"),
        (format!("- name: x\n  {object}\n  kubeVersion: '1.20'\n  expect: allow\n"), (13, 16), "1.32 to 1.37"),
        (
            format!("- name: x\n  {object}\n  variants: [{{name: y, unset: [spec], expect: allow}}]\n"),
            (13, 32),
            "there is nothing at spec",
        ),
    ] {
        let (at, message) = mistake(&cases);
        assert!(message.contains(part), "{cases}{message}");
        assert_eq!(at, place, "{cases}{message}");
    }
}

#[test]
fn kaptest_suite_runs_unchanged() {
    let policy = POLICY.replace("[configmaps]", "[pods]").replace("v1\nkind: Val", "v1beta1\nkind: Val");
    let suite = "\
validatingAdmissionPolicies: [../policy.yaml]
resources: [resources.yaml]
testSuites:
- policy: labelled
  tests:
  - {object: {kind: ConfigMap, name: good}, expect: admit}
  - {object: {kind: ConfigMap, name: bad}, expect: deny}
  - {object: {kind: ConfigMap, name: bad}, userInfo: {name: admin}, expect: skip, message: x}
  - {object: {kind: ConfigMap, name: good}, expect: error}
";
    let resources = "\
apiVersion: v1
kind: ConfigMap
metadata: {name: good, labels: {team: a}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: bad}
";
    let suite = load(suite, &[("../policy.yaml", &policy), ("resources.yaml", resources)]);
    let passed: Vec<_> = run(&suite).into_iter().map(|(_, status)| status == Status::Passed).collect();
    assert_eq!(passed, [true, true, true, false]);
    let notes = suite.notes.join("\n");
    for part in ["read as v1", "exclude this request", "testSuites[0].tests[2].message is not carried over"] {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn kyverno_suite_runs_only_for_admission_policies() {
    let suite = "\
apiVersion: cli.kyverno.io/v1alpha1
kind: Test
metadata: {name: labels}
policies: [policy.yaml, theirs.yaml]
resources: [resources.yaml]
userinfo: user.yaml
exceptions: [x.yaml]
results:
- {policy: labelled, isValidatingAdmissionPolicy: true, kind: ConfigMap, resources: [good], result: pass}
- {policy: labelled, isValidatingAdmissionPolicy: true, kind: ConfigMap, resources: [default/bad], result: fail}
- {policy: labelled, isValidatingAdmissionPolicy: true, kind: ConfigMap, resources: [left-out], result: skip}
- {policy: theirs, rule: x, kind: Pod, resources: [y], result: pass}
";
    let resources = "\
kind: List
apiVersion: v1
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: good, labels: {checked: 'yes', team: b}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: bad, labels: {checked: 'yes'}}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: left-out}}
";
    let user = "apiVersion: cli.kyverno.io/v1alpha1\nkind: UserInfo\nuserInfo: {username: jane}\n";
    let theirs = "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: theirs}\n";
    let files = [("policy.yaml", POLICY), ("theirs.yaml", theirs), ("resources.yaml", resources), ("user.yaml", user)];
    let suite = load(suite, &files);
    assert_eq!(suite.cases.len(), 3);
    assert_passes(&suite);
    let notes = suite.notes.join("\n");
    for part in
        ["exceptions is not carried over", "results[3] is not carried over", "ClusterPolicy theirs is not carried"]
    {
        assert!(notes.contains(part), "{part}: {notes}");
    }
}

#[test]
fn scaffolded_suite_passes() {
    let source = Arc::new(Source::new("policy.yaml", POLICY.to_owned()));
    let text = palisade_policy_test::init::scaffold(&source, "policy.yaml", &support::server(None)).unwrap();
    let suite = load(&text, &[("policy.yaml", POLICY)]);
    assert_eq!(suite.cases.len(), 4, "{text}");
    assert_passes(&suite);
}

#[test]
fn policy_without_a_binding_is_noted() {
    let suite = load(&CASES.replace("generateBindings: true\n", ""), &[("policy.yaml", POLICY)]);
    assert!(suite.notes[0].contains("labelled has no binding"), "{:?}", suite.notes);
}
