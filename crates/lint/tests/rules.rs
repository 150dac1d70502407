//! Each rule finds what its bad example has, and nothing else does; no rule finds anything in its good example.

use std::{collections::BTreeSet, sync::Arc};

use palisade_cel::Minor;
use palisade_lint::{IGNORE_ANNOTATION, Level, Options, Report, catalogue, lint};
use palisade_manifest::{Severity, Source, objects};

fn run(text: &str, options: &Options) -> Report {
    let source = Arc::new(Source::new("f.yaml", text.to_owned()));
    let objects = objects(&source).unwrap();
    lint(&objects, options)
}

/// The version in the first line of an example, if it says one.
fn options(text: &str) -> Options {
    let minor = text.strip_prefix("# kube-version: ").and_then(|rest| rest.lines().next());
    Options { minor: minor.map_or(Minor::V1_36, |minor| minor.parse().unwrap()), ..Options::default() }
}

fn reported(report: &Report) -> Vec<String> {
    let line = |finding: &palisade_lint::Finding| {
        format!("{} {}: {}", finding.rule.id, finding.source.position(finding.place.start).0, finding.message)
    };
    report.findings.iter().map(line).collect()
}

#[test]
fn bad_example_is_found_by_its_rule_alone() {
    let mut wrong = Vec::new();
    for rule in catalogue::all(None) {
        let report = run(rule.bad, &options(rule.bad));
        let found: BTreeSet<_> = report.findings.iter().map(|finding| finding.rule.id).collect();
        if found != BTreeSet::from([rule.id]) {
            wrong.push(format!("{}: {:#?}", rule.id, reported(&report)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn good_example_has_no_findings() {
    let mut wrong = Vec::new();
    for rule in catalogue::all(None) {
        let report = run(rule.good, &options(rule.good));
        if !report.findings.is_empty() {
            wrong.push(format!("{}: {:#?}", rule.id, reported(&report)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn rule_ids_are_unique_and_kebab_case() {
    let mut seen = BTreeSet::new();
    for rule in catalogue::all(None) {
        assert!(seen.insert(rule.id), "{}", rule.id);
        assert!(rule.id.chars().all(|c| c.is_ascii_lowercase() || c == '-'), "{}", rule.id);
        assert!(!rule.title.ends_with('.') && !rule.why.is_empty(), "{}", rule.id);
    }
}

#[test]
fn every_rule_can_be_silenced() {
    for rule in catalogue::all(None) {
        let mut options = options(rule.bad);
        options.levels.set(rule, Level::Allow);
        let report = run(rule.bad, &options);
        assert!(report.findings.is_empty(), "{}: {:#?}", rule.id, reported(&report));
    }
    let mut options = Options::default();
    let rule = options.rule("blocks-finalizers").unwrap();
    options.levels.set(rule, Level::Deny);
    assert_eq!(run(rule.bad, &options).worst(), Some(Severity::Error));
    assert!(options.rule("blocks-finalizer").is_err());
    let silenced = rule.bad.replacen(
        "  name: example\n",
        &format!("  name: example\n  annotations: {{{IGNORE_ANNOTATION}: \"fails-open, blocks-finalizers\"}}\n"),
        1,
    );
    let report = run(&silenced, &Options::default());
    assert_eq!((report.findings.len(), report.silenced), (0, 1), "{:#?}", reported(&report));
}

#[test]
fn finding_is_placed_at_the_faulty_token() {
    let text = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints:
    namespaceSelector: {matchLabels: {a: b}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  matchConditions:
  - name: a
    expression: |

      // ü
      wrong == 1
  validations:
  - expression: >-
      true &&
      nothing.here
  - expression: 'object.spec.template.spec.containers.size() <  ''a'''
";
    let report = run(text, &Options::default());
    let places: Vec<_> = report.findings.iter().map(|finding| &text[finding.place.clone()]).collect();
    assert_eq!(places, ["wrong", "nothing", "<"], "{:#?}", reported(&report));
}

const DEFINITION_AND_PARAMETERS: &str = r#"apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.example.org}
spec:
  group: example.org
  names: {kind: Limit, plural: limits, singular: limit, listKind: LimitList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            x-kubernetes-validations:
            - rule: self.most >= self.RIGHT
              messageExpression: "'%d is less than %d'.format([self.most, self.least])"
            properties:
              most: {type: integer}
              least: {type: integer, minimum: 1}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: example}
spec:
  paramKind: {apiVersion: example.org/v1, kind: Limit}
  matchConstraints:
    namespaceSelector: {matchLabels: {tenancy: tool}}
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations:
  - expression: size(object.spec.template.spec.containers) <= params.?spec.?most.orValue(5)
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: example}
spec:
  policyName: example
  paramRef: {name: limit, parameterNotFoundAction: Deny}
  validationActions: [Deny]
---
apiVersion: example.org/v1
kind: Limit
metadata: {name: limit, namespace: tool-a}
spec:
  least: LEAST
  most: 3
"#;

#[test]
fn parameter_objects_are_validated_by_their_crd() {
    let lint = |right: &str, least: &str| {
        let text = DEFINITION_AND_PARAMETERS.replace("RIGHT", right).replace("LEAST", least);
        reported(&run(&text, &options("")))
    };
    assert_eq!(lint("least", "2"), [""; 0]);
    assert_eq!(lint("least", "5"), ["api-server-rejects 48: spec: Invalid value: 3 is less than 5"]);
    assert_eq!(
        lint("least", "0"),
        [
            "api-server-rejects 49: spec.least: Invalid value: 0: spec.least in body should be greater than or equal to 1"
        ]
    );
    // A rule is shown where it stands in the file, and parameters are not judged by a definition that is refused.
    assert_eq!(
        lint("nope", "5"),
        [
            "api-server-rejects 19: spec.validation.openAPIV3Schema.properties[spec].x-kubernetes-validations[0].rule: does \
          not compile: 1:18: undefined field 'nope'"
        ]
    );
}
