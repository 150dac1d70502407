//! The report for machines.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::{Report, reasons};
use crate::{
    CaseResult, Status,
    coverage::Coverage,
    junit::{self, Case, Problem, Suite, TestOutcome},
    mutate::{MutantOutcome, MutationReport},
    places::Place,
};

/// The report as JSON.
pub fn json(report: &Report) -> String {
    let counts = report.counts();
    let suites: Vec<_> = report
        .suites
        .iter()
        .map(|suite| {
            let cases: Vec<_> = suite.results.iter().map(case).collect();
            json!({"name": suite.name, "file": suite.file, "notes": suite.notes, "cases": cases})
        })
        .collect();
    let report = json!({
        "passed": counts.passed,
        "failed": counts.failed,
        "noVerdict": counts.no_verdict,
        "suites": suites,
        "coverage": report.coverage.as_ref().map(coverage),
        "mutation": report.mutation.as_ref().map(mutation),
        "messages": report.messages.as_ref().map(mutation),
    });
    format!("{report:#}\n")
}

fn place(place: &Place) -> Json {
    json!({"file": place.file, "line": place.line, "column": place.column})
}

fn case(result: &CaseResult) -> Json {
    let (status, differences, why) = match &result.status {
        Status::Passed => ("passed", vec![], None),
        Status::NoVerdict(why) => ("noVerdict", vec![], Some(why)),
        Status::Failed(differences) => {
            let difference =
                |one: &crate::Difference| json!({"what": one.what, "expected": one.expected, "got": one.got});
            ("failed", differences.iter().map(difference).collect(), None)
        }
    };
    let explanations: Vec<_> = result
        .explanations
        .iter()
        .map(|one| {
            let variables: serde_json::Map<_, _> =
                one.variables.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
            json!({
                "policy": one.policy, "binding": one.binding, "path": one.path, "place": place(&one.place),
                "expression": one.source, "result": one.result, "variables": variables,
            })
        })
        .collect();
    json!({
        "name": result.name, "place": place(&result.place), "status": status, "answer": result.answer,
        "differences": differences, "noVerdict": why, "explanations": explanations,
    })
}

fn coverage(coverage: &Coverage) -> Json {
    let points: Vec<_> = coverage
        .points()
        .map(|(point, covered)| {
            json!({
                "place": place(&point.place), "policy": point.of, "path": point.path, "what": point.what,
                "missing": point.missing, "covered": covered,
            })
        })
        .collect();
    json!({"percent": rounded(coverage.percent()), "covered": coverage.covered(), "total": coverage.total(), "points": points})
}

fn mutation(mutation: &MutationReport) -> Json {
    let mutants: Vec<_> = mutation
        .outcomes()
        .filter_map(|(mutant, outcome)| {
            let (status, killed_by) = match outcome {
                MutantOutcome::Invalid => return None,
                MutantOutcome::Killed(case) => ("killed", Some(case)),
                MutantOutcome::Survived { .. } => ("survived", None),
            };
            Some(json!({
                "place": place(&mutant.place), "policy": mutant.policy, "path": mutant.path, "status": status,
                "killedBy": killed_by, "edit": mutant.description, "before": mutant.before, "after": mutant.after,
            }))
        })
        .collect();
    json!({"percent": rounded(mutation.percent()), "killed": mutation.killed(), "total": mutation.total(), "mutants": mutants})
}

fn rounded(percent: f64) -> f64 {
    (percent * 10.0).round() / 10.0
}

/// The report as `JUnit` XML, as CI systems read it.
pub fn junit(report: &Report) -> String {
    let suites = report.suites.iter().map(|suite| {
        let case = |result: &CaseResult| {
            let reasons = reasons(result);
            let message = reasons.first().cloned().unwrap_or_default();
            let problem = Problem { kind: None, message, text: reasons.join("\n") };
            let outcome = match result.status {
                Status::Passed => TestOutcome::Passed,
                Status::Failed(_) => TestOutcome::Failed(problem),
                Status::NoVerdict(_) => TestOutcome::Error(problem),
            };
            let (name, class) = (result.name.clone(), suite.name.clone());
            Case { name, class, line: result.place.line, outcome }
        };
        let cases = suite.results.iter().map(case).collect();
        Suite { name: suite.name.clone(), file: Some(suite.file.clone()), cases }
    });
    junit::write(None, &suites.collect::<Vec<_>>())
}

/// The report in the Test Anything Protocol.
pub fn tap(report: &Report) -> String {
    let total: usize = report.suites.iter().map(|suite| suite.results.len()).sum();
    let mut text = format!("TAP version 14\n1..{total}\n");
    let results = report.suites.iter().flat_map(|suite| suite.results.iter().map(move |result| (suite, result)));
    for (index, (suite, result)) in results.enumerate() {
        let ok = if result.status == Status::Passed { "ok" } else { "not ok" };
        let name = format!("{}: {}", suite.name, result.name).replace('\\', "\\\\").replace('#', "\\#");
        let _ = writeln!(text, "{ok} {} - {}", index + 1, name.replace(['\n', '\r'], " "));
        if result.status != Status::Passed {
            let reasons = reasons(result).into_iter().map(|reason| reason.replace(['\n', '\r'], " "));
            let _ = writeln!(text, "  ---\n  at: {}", json!(result.place.to_string()));
            let _ = writeln!(text, "  reasons:");
            for reason in reasons {
                let _ = writeln!(text, "  - {}", json!(reason));
            }
            text.push_str("  ...\n");
        }
    }
    text
}
