//! Findings as JSON.

use palisade_lint::Report;
use serde_json::{Value as Json, json};

use crate::findings::{region, severity};

/// One object with all findings.
pub(super) fn text(report: &Report) -> String {
    let findings: Vec<Json> = report
        .findings
        .iter()
        .map(|finding| {
            let at = region(&finding.source, &finding.place);
            json!({
                "rule": finding.rule.id,
                "severity": severity(finding.severity),
                "category": finding.rule.category.name(),
                "message": finding.message,
                "help": finding.help,
                "object": finding.object,
                "path": finding.path,
                "kinds": finding.kinds,
                "file": finding.source.name(),
                "line": at.line,
                "column": at.column,
                "endLine": at.end_line,
                "endColumn": at.end_column,
                "url": finding.rule.help_uri(),
            })
        })
        .collect();
    let report = json!({
        "findings": findings,
        "objects": report.objects,
        "skipped": report.skipped,
        "silenced": report.silenced,
    });
    format!("{report:#}\n")
}
