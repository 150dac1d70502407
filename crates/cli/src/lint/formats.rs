//! What all formats share.

use palisade_lint::Finding;
use palisade_manifest::Severity;

/// A place in a file, lines and columns from 1; the end is after the last character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Region {
    pub line: usize,
    pub column: usize,
    pub end_line: usize,
    pub end_column: usize,
}

/// The place of a finding.
pub(super) fn region(finding: &Finding) -> Region {
    let (line, column) = finding.source.position(finding.place.start);
    let (end_line, end_column) = finding.source.position(finding.place.end.max(finding.place.start));
    Region { line, column, end_line, end_column }
}

/// The name of a severity.
pub(super) fn severity(of: Severity) -> &'static str {
    match of {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

/// The message with the advice.
pub(super) fn full_message(finding: &Finding) -> String {
    match &finding.help {
        Some(help) => format!("{} ({help})", finding.message),
        None => finding.message.clone(),
    }
}
