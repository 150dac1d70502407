//! Findings as text.

use std::fmt::Write as _;

use palisade_kube_json::text::truncated;
use palisade_lint::{IGNORE_ANNOTATION, Report, Rule};
use palisade_manifest::Severity;

use crate::{findings::severity, report::rendered, style::Style};

/// The maximum number of printed findings.
const MAX_FINDINGS: usize = 200;
/// The maximum length of the list of skipped kinds, in characters.
const MAX_KINDS: usize = 400;

/// Each finding with an excerpt, and their number.
pub(super) fn text(report: &Report, style: Style) -> String {
    let mut text = String::new();
    for finding in report.findings.iter().take(MAX_FINDINGS) {
        text.push_str(&rendered(&finding.problem(), style));
        text.push('\n');
    }
    if report.findings.len() > MAX_FINDINGS {
        let _ = writeln!(text, "and {} more\n", report.findings.len() - MAX_FINDINGS);
    }
    text.push_str(&summary(report));
    text
}

fn summary(report: &Report) -> String {
    let count = |of: Severity| report.findings.iter().filter(|finding| finding.severity == of).count();
    let mut parts = Vec::new();
    for (of, name) in [(Severity::Error, "error"), (Severity::Warning, "warning"), (Severity::Info, "note")] {
        match count(of) {
            0 => {}
            1 => parts.push(format!("1 {name}")),
            many => parts.push(format!("{many} {name}s")),
        }
    }
    let found = if parts.is_empty() { "no findings".to_owned() } else { parts.join(", ") };
    let objects = if report.objects == 1 { "1 object".to_owned() } else { format!("{} objects", report.objects) };
    let mut line = format!("{found} in {objects}");
    let skipped: usize = report.skipped.values().sum();
    if skipped > 0 {
        let kinds: Vec<_> = report.skipped.iter().take(10).map(|(kind, count)| format!("{count} {kind}")).collect();
        let more = if report.skipped.len() > kinds.len() { ", ..." } else { "" };
        let kinds = format!("{}{more}", kinds.join(", "));
        let shown: String = truncated(&kinds, MAX_KINDS).chars().map(shown).collect();
        let _ = write!(line, "; skipped objects of kinds without rules: {shown}");
    }
    if report.silenced > 0 {
        let _ = write!(line, "; ignored by annotations: {}", report.silenced);
    }
    line.push('\n');
    line
}

/// A character on one line.
fn shown(c: char) -> char {
    if matches!(c, '\n' | '\t') { ' ' } else { palisade_manifest::harmless(c) }
}

/// All rules in a table.
pub(super) fn list() -> String {
    let rules = palisade_profiles::lint::options().rules();
    let width = rules.iter().map(|rule| rule.id.len()).max().unwrap_or_default();
    rules.iter().fold(String::new(), |mut text, rule| {
        let (severity, category) = (severity(rule.severity), rule.category.name());
        let _ = writeln!(text, "{:width$}  {severity:8} {category:9} {}", rule.id, rule.title);
        text
    })
}

/// The explanation of a rule.
pub(super) fn explain(rule: &Rule) -> String {
    format!(
        "{} ({}, {}): {}\n\n{}\n\nTo ignore it, annotate an object with {IGNORE_ANNOTATION}: {}, or disable it with \
         --allow {}.\n\n\
         Incorrect:\n\n{}\nCorrect:\n\n{}",
        rule.id,
        severity(rule.severity),
        rule.category.name(),
        rule.title,
        rule.why.trim_end(),
        rule.id,
        rule.id,
        rule.bad,
        rule.good,
    )
}
