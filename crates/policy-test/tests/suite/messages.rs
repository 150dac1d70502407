//! Mutants of messages and reasons are apart: a case notices them only if it expects what it reads.

use palisade_policy_test::mutate::{Baseline, Mutant, MutantOutcome};

use super::{POLICY, assert_passes, load};

const CASES: &str = "\
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
policies: [policy.yaml]
generateBindings: true
cases:
- name: without a team
  object: {apiVersion: v1, kind: ConfigMap, metadata: {name: x, labels: {checked: 'yes'}}}
";

/// Line, column, path, and how many cases read it, of the mutants that survive.
fn survivors(policy: &str, expect: &str) -> Vec<String> {
    let suite = load(&format!("{CASES}  expect: {expect}\n"), &[("policy.yaml", policy)]);
    assert_passes(&suite);
    let baseline = Baseline::new(&suite);
    let survivor = |Mutant { place, path, .. }: Mutant, outcome| match outcome {
        MutantOutcome::Survived { cases } => Some(format!("{}:{} {path} {cases}", place.line, place.column)),
        _ => None,
    };
    let mutants = baseline.mutants().into_iter().filter(|mutant| mutant.of_message);
    mutants.filter_map(|mutant| survivor(mutant.clone(), baseline.outcome(&mutant))).collect()
}

#[test]
fn message_and_reason_mutants_are_killed_only_where_expected() {
    let policy = POLICY.replace("message: a team is missing", "message: a team is missing\n    reason: Forbidden");
    let (message, reason) = ("18:14 validations[0].message 1", "19:13 validations[0].reason 1");
    for (expect, expected) in [
        ("deny", &[message, reason][..]),
        ("{verdict: deny, message: a team is missing}", &[reason]),
        ("{verdict: deny, messageContains: is missing}", &[reason]),
        ("{verdict: deny, reason: Forbidden}", &[message]),
        ("{verdict: deny, code: 403}", &[message]),
        ("{verdict: deny, message: a team is missing, reason: Forbidden}", &[]),
    ] {
        assert_eq!(survivors(&policy, expect), expected, "{expect}");
    }
}

#[test]
fn message_expression_is_mutated_part_by_part() {
    let expression = "messageExpression: \"'no team among ' + string(variables.labels.size()) + ' labels'\"";
    let policy = POLICY.replace("message: a team is missing", expression);
    let (first, last) = ("18:25 validations[0].messageExpression 1", "18:78 validations[0].messageExpression 1");
    assert_eq!(survivors(&policy, "deny"), [first, last]);
    assert_eq!(survivors(&policy, "{verdict: deny, messageContains: among 1 labels}"), [] as [&str; 0]);
    assert_eq!(survivors(&policy, "{verdict: deny, messageContains: among 1}"), [last]);
    // One without a constant is changed as a whole.
    let policy = POLICY.replace("message: a team is missing", "messageExpression: request.userInfo.username");
    assert_eq!(survivors(&policy, "deny"), ["18:24 validations[0].messageExpression 1"]);
    assert_eq!(survivors(&policy, "{verdict: deny, message: test-user}"), [] as [&str; 0]);
}

#[test]
fn message_read_by_no_case_survives_with_a_count_of_zero() {
    let admits = survivors(&POLICY.replace("'team' in variables.labels &&", "true ||"), "allow");
    assert_eq!(admits, ["18:14 validations[0].message 0"]);
}
