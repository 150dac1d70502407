//! Findings in the format of `JUnit`: a suite for each file, a failed case for each finding.

use std::collections::BTreeMap;

use palisade_manifest::Severity;
use palisade_policy_test::junit::{self, Case, Problem, Suite, TestOutcome};

use super::{Finding, Findings, severity};

/// All suites. Findings that are only notes are cases that pass.
pub fn text(report: &Findings) -> String {
    let title = format!("palisade {}", report.command);
    let mut files = BTreeMap::<&str, Suite>::new();
    for finding in &report.found {
        let name = finding.source.name();
        let suite = files.entry(name).or_insert_with(|| Suite { name: name.to_owned(), ..Suite::default() });
        suite.cases.push(case(report.command, finding));
    }
    let mut suites: Vec<_> = files.into_values().collect();
    if suites.is_empty() {
        // Some servers reject a report without any case.
        let (name, class) = (format!("{} objects", report.objects), format!("palisade.{}", report.command));
        let cases = vec![Case { name, class, line: 0, outcome: TestOutcome::Passed }];
        suites.push(Suite { name: title.clone(), file: None, cases });
    }
    junit::write(Some(&title), &suites)
}

fn case(command: &str, finding: &Finding) -> Case {
    let at = finding.region();
    let (file, line, column, message) = (finding.source.name(), at.line, at.column, &finding.message);
    let outcome = if finding.severity > Severity::Info {
        TestOutcome::Failed(Problem {
            kind: Some(severity(finding.severity)),
            message: message.clone(),
            text: format!("{file}:{line}:{column}: {message}"),
        })
    } else {
        TestOutcome::Noted(message.clone())
    };
    let (name, class) = (format!("{} {line}:{column}", finding.object), format!("palisade.{command}.{}", finding.rule));
    Case { name, class, line, outcome }
}
