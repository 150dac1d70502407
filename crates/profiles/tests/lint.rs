//! Each rule about profiles finds what its bad example has, and no other rule does; no rule finds anything in its good
//! example, nor in what the profiles in `examples` become.
#![allow(clippy::disallowed_methods, reason = "examples are files")]

use std::{collections::BTreeSet, path::Path, sync::Arc};

use palisade_cel::Minor;
use palisade_lint::{Level, Options, Report, lint};
use palisade_manifest::{Source, objects};
use palisade_profiles::lint::{RULES, options};

fn run(text: &str, minor: Minor) -> Report {
    run_with(text, &Options { minor, ..options() })
}

fn run_with(text: &str, options: &Options) -> Report {
    let source = Arc::new(Source::new("f.yaml", text.to_owned()));
    lint(&objects(&source).unwrap(), options)
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
    for rule in RULES {
        let report = run(rule.bad, Minor::V1_36);
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
    for rule in RULES {
        let report = run(rule.good, Minor::V1_36);
        if !report.findings.is_empty() {
            wrong.push(format!("{}: {:#?}", rule.id, reported(&report)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn profile_and_policy_lint_rules_have_distinct_ids() {
    let rules = options().rules();
    let ids: BTreeSet<_> = rules.iter().map(|rule| rule.id).collect();
    assert_eq!(ids.len(), rules.len());
    assert!(rules.len() > RULES.len() + 30 && RULES.iter().all(|rule| ids.contains(rule.id)), "{ids:?}");
}

#[test]
fn every_rule_can_be_silenced() {
    for rule in RULES {
        let mut options = options();
        options.levels.set(rule, Level::Allow);
        let report = run_with(rule.bad, &options);
        assert!(report.findings.is_empty(), "{}: {:#?}", rule.id, reported(&report));
    }
}

/// The kinds of profiles are known without a definition in the input, and so are misspelt ones.
#[test]
fn misspelt_profile_kind_gets_a_suggestion() {
    for (kind, expected) in [
        ("ToolSecurityProfil", Some("did you mean ToolSecurityProfile?")),
        ("ToolSecurityParams", None),
        ("ToolSecurityException", None),
    ] {
        let text =
            format!("apiVersion: toolsecurity.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: a.b}}\nspec: {{}}\n");
        for minor in Minor::ALL {
            let findings = run(&text, minor).findings;
            let said: Vec<_> = findings.iter().filter(|one| one.rule.id == "not-served").collect();
            assert_eq!(said.first().and_then(|one| one.help.as_deref()), expected, "{minor} {kind}");
        }
    }
}

/// The rule about kinds without a schema. The fields of kinds of Tekton are checked only with their definition.
const OF_TEKTON: &str = "types-not-checked";
/// The rule about the policies for pods and workloads of profiles without a check of pods, which have no effect.
const WITHOUT_CHECKS_OF_PODS: [&str; 1] = ["never-reached"];

#[test]
fn example_profiles_have_no_lint_findings() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for (name, expected) in [
        ("domains/profile.yaml", &WITHOUT_CHECKS_OF_PODS[..]),
        ("gitops/profiles/tools.yaml", &[]),
        ("shared-ingress/profile.yaml", &[]),
        ("tenants/profile.yaml", &[]),
        ("toolforge/additions.yaml", &[]),
        ("toolforge/builds.yaml", &WITHOUT_CHECKS_OF_PODS[..]),
        ("toolforge/images.yaml", &[]),
        ("toolforge/profile.yaml", &[]),
    ] {
        let text = std::fs::read_to_string(directory.join(name)).unwrap();
        for minor in Minor::ALL {
            let mut report = run(&text, minor);
            assert!(report.objects > 0);
            report.findings.retain(|one| {
                if one.message.contains("-objects, ") {
                    name != "toolforge/builds.yaml" || one.rule.id != OF_TEKTON
                } else {
                    !expected.contains(&one.rule.id)
                }
            });
            assert!(report.findings.is_empty(), "{name} {minor}: {:#?}", reported(&report));
        }
    }
}
