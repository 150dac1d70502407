//! The findings as text and as JSON.

use std::fmt::Write as _;

use palisade_api::{catalogue, objects};
use palisade_manifest::Severity;
use serde_json::{Value as Json, json};

use super::{Checked, Judged, place};
use crate::{
    evaluator::{REJECTED, Violation, page_of},
    findings::{Finding, Findings, Rule, region},
    profiles::Accepted,
    report::{Problem, harmless, one_line, rendered},
    style::Style,
};

/// The findings with the checks of all profiles as rules.
pub(super) fn shared(checked: &Checked<'_>, accepted: &[Accepted]) -> Findings {
    let rule = |id: &str, title: &str| Rule {
        id: id.to_owned(),
        title: title.to_owned(),
        why: title.to_owned(),
        page: page_of(id),
        severity: Severity::Error,
        category: None,
    };
    let mut rules: Vec<_> = catalogue::ALL.iter().map(|check| rule(check.id, check.title)).collect();
    rules.extend(objects::ALL.iter().map(|check| rule(check.id, check.title)));
    let customs = accepted.iter().flat_map(|one| &one.checked.customs);
    rules.extend(customs.map(|custom| rule(&custom.check.id, "Custom check of the profile")));
    rules.push(rule(REJECTED, "Rejected by the API server"));
    let found: Vec<_> = checked
        .objects
        .iter()
        .flat_map(|one| one.explained.violations.iter().map(|violation| finding(one, violation)))
        .collect();
    for one in &found {
        if !rules.iter().any(|rule| rule.id == one.rule) {
            rules.push(rule(&one.rule, "Rule of the generated policy"));
        }
    }
    Findings { command: "check", rules, found, objects: checked.objects.len() }
}

fn finding(of: &Judged<'_>, violation: &Violation) -> Finding {
    let path = path(of, violation);
    Finding {
        rule: violation.check.clone(),
        severity: severity(violation),
        message: message(violation),
        object: name(of),
        place: of.manifest.object.place(&path),
        source: of.manifest.object.source.clone(),
        properties: json!({"profile": violation.profile, "namespace": of.manifest.namespace}),
        path,
    }
}

fn severity(violation: &Violation) -> Severity {
    if violation.denied { Severity::Error } else { Severity::Warning }
}

fn message(violation: &Violation) -> String {
    if violation.profile.is_empty() {
        return one_line(&violation.message);
    }
    one_line(&format!("{} (profile {})", violation.message, violation.profile))
}

/// `Deployment/web`.
fn name(of: &Judged<'_>) -> String {
    let metadata = &of.manifest.json["metadata"];
    let name = metadata["name"].as_str().or(metadata["generateName"].as_str()).unwrap_or_default();
    format!("{}/{name}", of.manifest.object.kind)
}

/// The path of the field that a violation is about.
fn path(of: &Judged<'_>, violation: &Violation) -> String {
    let template = of.manifest.kind.map(|kind| kind.template).unwrap_or_default();
    place::of(&of.manifest.json, template, &violation.check, &violation.message)
}

/// As text: each violation with an excerpt, then the change, and a summary.
pub(super) fn human(checked: &Checked<'_>, style: Style) -> String {
    let mut text = String::new();
    for one in &checked.objects {
        if checked.explain {
            text.push_str(&one.explained.heading());
            text.push('\n');
            text.push_str(&one.explained.mutations());
            if !one.explained.violations.is_empty() {
                text.push('\n');
            }
        }
        for violation in &one.explained.violations {
            let place = one.manifest.object.place(&path(one, violation));
            let problem = Problem::new(format!("{}: [{}] {}", name(one), violation.check, message(violation)));
            let problem = problem.severe(severity(violation)).at(one.manifest.object.source, place);
            text.push_str(&rendered(&problem, style));
            text.push('\n');
        }
        text.push_str(&one.explained.fixes(one.manifest.kind));
        if checked.explain || !one.explained.violations.is_empty() {
            text.push('\n');
        }
    }
    text.push_str(&summary(checked));
    text.chars()
        .map(|c| if matches!(c, '\n' | '\u{1b}') && (c == '\n' || style.color) { c } else { harmless(c) })
        .collect()
}

fn summary(checked: &Checked<'_>) -> String {
    let violations: usize = checked.objects.iter().map(|one| one.explained.violations.len()).sum();
    let failing = checked.objects.iter().filter(|one| !one.explained.violations.is_empty()).count();
    let count = |number: usize, what: &str| format!("{number} {what}{}", if number == 1 { "" } else { "s" });
    let mut line = match violations {
        0 if checked.objects.is_empty() => "0 objects evaluated".to_owned(),
        0 => format!("{} evaluated, no violations", count(checked.objects.len(), "object")),
        _ => format!("{} in {failing} of {}", count(violations, "violation"), count(checked.objects.len(), "object")),
    };
    let others: usize = checked.others.values().sum();
    if others > 0 {
        let _ = write!(line, "; {} of kinds that profiles do not evaluate", count(others, "other object"));
    }
    line.push('\n');
    line
}

/// As JSON: each object with its violations and its change.
pub(super) fn json(checked: &Checked<'_>) -> String {
    let objects: Vec<Json> = checked
        .objects
        .iter()
        .map(|one| {
            let violations: Vec<_> = one
                .explained
                .violations
                .iter()
                .map(|violation| {
                    let path = path(one, violation);
                    let object = &one.manifest.object;
                    let at = region(object.source, &object.place(&path));
                    json!({
                        "profile": violation.profile, "check": violation.check, "message": violation.message,
                        "denied": violation.denied, "path": path, "line": at.line, "column": at.column,
                    })
                })
                .collect();
            let (line, _) = one.manifest.object.source.position(one.manifest.object.place("").start);
            json!({
                "kind": one.manifest.object.kind, "name": one.manifest.json["metadata"]["name"],
                "namespace": one.manifest.namespace, "file": one.manifest.object.source.name(), "line": line,
                "profiles": one.explained.profiles, "mutated": one.explained.mutated,
                "violations": violations, "change": one.explained.change,
            })
        })
        .collect();
    let violations: usize = checked.objects.iter().map(|one| one.explained.violations.len()).sum();
    let version = checked.version.to_string();
    let report =
        json!({"kubeVersion": version, "objects": objects, "violations": violations, "skipped": checked.others});
    format!("{report:#}\n")
}
