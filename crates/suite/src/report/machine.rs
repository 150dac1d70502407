//! The report for machines.

use std::fmt::Write as _;

use serde_json::{Value as Json, json};

use super::{Report, reasons};
use crate::{
    CaseResult, Status,
    coverage::Coverage,
    mutate::{Fate, Fates},
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

fn mutation(mutation: &Fates) -> Json {
    let mutants: Vec<_> = mutation
        .fates()
        .filter_map(|(mutant, fate)| {
            let (status, killed_by) = match fate {
                Fate::Invalid => return None,
                Fate::Killed(case) => ("killed", Some(case)),
                Fate::Survived { .. } => ("survived", None),
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
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let counts = report.counts();
    let total = counts.passed + counts.failed + counts.no_verdict;
    let (failed, errors) = (counts.failed, counts.no_verdict);
    let _ = writeln!(xml, "<testsuites tests=\"{total}\" failures=\"{failed}\" errors=\"{errors}\">");
    for suite in &report.suites {
        let count = |wanted: fn(&Status) -> bool| suite.results.iter().filter(|one| wanted(&one.status)).count();
        let failed = count(|status| matches!(status, Status::Failed(_)));
        let errors = count(|status| matches!(status, Status::NoVerdict(_)));
        let (name, file, total) = (escape(&suite.name), escape(&suite.file), suite.results.len());
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{name}\" file=\"{file}\" tests=\"{total}\" failures=\"{failed}\" errors=\"{errors}\">"
        );
        for result in &suite.results {
            let (case, line) = (escape(&result.name), result.place.line);
            let _ = write!(xml, "    <testcase name=\"{case}\" classname=\"{name}\" file=\"{file}\" line=\"{line}\"");
            let tag = match result.status {
                Status::Passed => {
                    xml.push_str("/>\n");
                    continue;
                }
                Status::Failed(_) => "failure",
                Status::NoVerdict(_) => "error",
            };
            let reasons = reasons(result);
            let message = escape(reasons.first().map_or("", String::as_str));
            let text = escape(&reasons.join("\n"));
            let _ = writeln!(xml, ">\n      <{tag} message=\"{message}\">{text}</{tag}>\n    </testcase>");
        }
        xml.push_str("  </testsuite>\n");
    }
    xml.push_str("</testsuites>\n");
    xml
}

/// A text as it may stand in XML 1.0, also between quotes.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push_str("&#9;"),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
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
