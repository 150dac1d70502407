//! Profiles: what of them is covered, reported in their own terms, and which mistakes in custom checks are noticed.

use palisade_policy_test::{
    Status, Suite,
    mutate::{Baseline, Mutant, MutantOutcome},
};
use palisade_profiles::suite::Profiles;

#[path = "../../policy-test/tests/suite/support.rs"]
mod support;

use support::{assert_passes, missing, run};

fn load(text: &str, files: &[(&'static str, &str)]) -> Suite {
    support::load(Some(&Profiles), text, files)
}

const PROFILE: &str = "\
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  baseline: Privileged
  enforcement: {workloads: Warn}
  host:
    network: false
  images:
    allowedRegistries: [registry.example.org]
  customChecks:
  - id: imageVersion
    target: Containers
    expression: >-
      !container.image.endsWith(':latest')
    message: must not use the tag latest
  - id: owned
    expression: |-
      'owner' in variables.annotations &&
      (variables.annotations.owner.size() > 2 ||
       'team' in variables.annotations)
    messageExpression: >-
      'owner' in variables.annotations ? 'the owner needs a name or a team' : 'nobody owns it'
";

const NAMESPACES: &str = "\
apiVersion: v1
kind: Namespace
metadata: {name: a, labels: {tenancy: tool}}
";

const CASES: &str = "\
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
policies: [profile.yaml]
resources: [namespaces.yaml]
defaults: {namespace: a}
cases:
- name: a pod
  object:
    apiVersion: v1
    kind: Pod
    metadata: {name: x, annotations: {owner: somebody}}
    spec: {containers: [{name: app, image: 'registry.example.org/app:1'}]}
  expect: allow
  variants:
  - {name: latest, set: {'spec.containers[0].image': 'registry.example.org/app:latest'}, expect: deny}
  - {name: in the network of the node, set: {spec.hostNetwork: true}, expect: {verdict: deny, messageContains: hostNamespaces}}
";

/// Cases that fill each gap.
const MORE: &str = "  - {name: of a short owner, set: {metadata.annotations.owner: abc}, expect: allow}
  - {name: of a shorter owner, set: {metadata.annotations.owner: ab}, expect: {verdict: deny, messageContains: needs a name or a team}}
  - {name: of a shorter owner with a team, set: {metadata.annotations.owner: ab, metadata.annotations.team: c}, expect: allow}
  - {name: of nobody, unset: [metadata.annotations.owner], expect: {verdict: deny, messageContains: nobody owns it}}
  - {name: of nobody but a team, unset: [metadata.annotations.owner], set: {metadata.annotations.team: c}, expect: deny}
  - {name: of elsewhere, set: {'spec.containers[0].image': 'example.com/app:1'}, expect: deny}
";

fn suite(profile: &str, cases: &str) -> Suite {
    let files = [("profile.yaml", profile), ("namespaces.yaml", NAMESPACES)];
    let suite = load(&format!("{CASES}{cases}"), &files);
    assert_passes(&suite);
    suite
}

#[test]
fn coverage_gaps_name_profile_fields_until_cases_close_them() {
    assert_eq!(
        missing(&suite(PROFILE, "")),
        [
            "11:24 tools spec.images.allowedRegistries check imageRegistries: never finds a violation",
            "18:5 tools spec.customChecks[1] check owned: never finds a violation",
            "20:7 tools spec.customChecks[1].expression an operand of &&: never false, which decides",
            "21:8 tools spec.customChecks[1].expression an operand of ||: never false",
            "22:8 tools spec.customChecks[1].expression an operand of ||: never false",
            "22:8 tools spec.customChecks[1].expression an operand of ||: never true, which decides",
            "24:40 tools spec.customChecks[1].messageExpression : never evaluated",
        ]
    );
    assert_eq!(missing(&suite(PROFILE, MORE)), [] as [&str; 0]);
}

#[test]
fn excepted_check_counts_as_uncovered() {
    let profile = PROFILE.to_owned()
        + "  exceptions:\n  - {namespaces: [a], checks: [imageRegistries], reason: x, expires: 2999-01-01T00:00:00Z}\n";
    let missing = missing(&suite(
        &profile,
        "  - {name: of elsewhere, set: {'spec.containers[0].image': 'b/c:1'}, expect: allow}\n",
    ));
    for what in ["never finds a violation", "never passes"] {
        let point = format!("11:24 tools spec.images.allowedRegistries check imageRegistries: {what}");
        assert!(missing.contains(&point), "{missing:?}");
    }
}

/// The survivors, of messages or of expressions: line, column, path and the lines with the mistake.
fn survivors(suite: &Suite, of_message: bool) -> Vec<String> {
    let baseline = Baseline::new(suite);
    let survives = |mutant: &Mutant| matches!(baseline.outcome(mutant), MutantOutcome::Survived { .. });
    let mutants = baseline.mutants().into_iter().filter(|mutant| mutant.of_message == of_message).filter(survives);
    let shown = mutants
        .map(|Mutant { place, path, after, .. }| format!("{}:{} {path} {}", place.line, place.column, after.trim()));
    shown.collect()
}

#[test]
fn custom_check_mutants_survive_until_a_case_kills_them() {
    let found = survivors(&suite(PROFILE, ""), false);
    for part in [
        "21:45 spec.customChecks[1].expression (variables.annotations.owner.size() > 3 ||",
        "20:40 spec.customChecks[1].expression 'owner' in variables.annotations ||",
    ] {
        assert!(found.iter().any(|one| one == part), "{part}: {found:?}");
    }
    assert!(found.iter().all(|one| one.contains("spec.customChecks[1].expression")), "{found:?}");
    assert_eq!(survivors(&suite(PROFILE, MORE), false), [] as [&str; 0]);
}

#[test]
fn custom_check_message_mutant_is_killed_only_if_expected() {
    let found = survivors(&suite(PROFILE, MORE), true);
    assert_eq!(found, ["17:14 spec.customChecks[0].message another message"]);
    let expects = "  - {name: latest again, set: {'spec.containers[0].image': 'registry.example.org/app:latest'}, \
                   expect: {verdict: deny, messageContains: must not use the tag latest}}\n";
    assert_eq!(survivors(&suite(PROFILE, &format!("{MORE}{expects}")), true), [] as [&str; 0]);
}

#[test]
fn additional_defaults_apply_with_every_engine_but_off() {
    let profile = PROFILE.to_owned() + "  mutation: {additionalDefaults: [HostUsers]}\n";
    // By a policy, and by the webhook.
    for version in ["1.36", "1.35"] {
        let expect = "expect: {verdict: allow, object: {spec: {hostUsers: false}}}";
        suite(&profile, &format!("  - {{name: in a user namespace, kubeVersion: '{version}', {expect}}}\n"));
    }
    let off = PROFILE.to_owned() + "  mutation: {additionalDefaults: [HostUsers], engine: 'Off'}\n";
    let files = [("profile.yaml", off.as_str()), ("namespaces.yaml", NAMESPACES)];
    let expect = "expect: {verdict: allow, object: {spec: {hostUsers: false}}}";
    let suite = load(&format!("{CASES}  - {{name: by nobody, {expect}}}\n"), &files);
    assert!(matches!(run(&suite).pop(), Some((_, Status::Failed(_)))));
}

#[test]
fn suite_applies_secure_defaults_with_webhook_and_policy() {
    let profile = "\
apiVersion: toolsecurity.dev/v1alpha1
kind: ToolSecurityProfile
metadata: {name: tools}
spec:
  namespaceSelector: {matchLabels: {tenancy: tool}}
  mutation: {defaults: Secure}
";
    let cases = "\
apiVersion: test.toolsecurity.dev/v1alpha1
kind: PolicyTest
policies: [profile.yaml]
resources:
- {apiVersion: v1, kind: Namespace, metadata: {name: tool-a, labels: {tenancy: tool}}}
cases:
- name: defaulted by the webhook
  kubeVersion: '1.33'
  object: {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: tool-a}, spec: {containers: [{name: a, image: b}]}}
  expect: {verdict: warn, object: {spec: {securityContext: {runAsNonRoot: true}}}}
- name: defaulted by a policy
  kubeVersion: '1.36'
  object: {apiVersion: v1, kind: Pod, metadata: {name: x, namespace: tool-a}, spec: {containers: [{name: a, image: b}]}}
  expect: {verdict: allow, warnings: [], object: {spec: {securityContext: {runAsNonRoot: true}}}}
";
    let suite = load(cases, &[("profile.yaml", profile)]);
    let found = run(&suite);
    assert!(found.iter().all(|(_, status)| *status == Status::Passed), "{found:?}");
}
