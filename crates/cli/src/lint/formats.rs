//! What all formats share.

use std::io::{self, IsTerminal};

use palisade_lint::{Finding, Report};
use palisade_manifest::Severity;

use super::{github, human, json, junit, sarif};
use crate::{
    lint::args::{LintFormat, LintOutput},
    output,
    report::{Failure, Problem},
};

/// Writes the findings in a format, to a file or to standard output.
pub(super) fn write(to: &LintOutput, report: &Report) -> Result<(), Failure> {
    let text = match to.format {
        LintFormat::Human => human::text(report, to.file.is_none() && io::stdout().is_terminal()),
        LintFormat::Json => json::text(report),
        LintFormat::Sarif => sarif::text(report),
        LintFormat::Junit => junit::text(report),
        LintFormat::Github => github::text(report),
    };
    match &to.file {
        None => output::print(&text),
        Some(file) => std::fs::write(file, text)
            .map_err(|error| Failure::CouldNotRun(vec![Problem::new(format!("{file}: {error}"))])),
    }
}

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
