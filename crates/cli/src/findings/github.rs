//! Annotations of GitHub Actions (workflow commands).

use std::fmt::Write as _;

use palisade_manifest::Severity;

use super::Findings;

/// A line for each finding.
pub fn text(report: &Findings) -> String {
    let mut text = String::new();
    for finding in &report.found {
        let at = finding.region();
        let command = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Info => "notice",
        };
        // Annotations that span lines cannot have columns.
        let columns = if at.line == at.end_line {
            format!(",col={},endColumn={}", at.column, at.end_column)
        } else {
            String::new()
        };
        let _ = writeln!(
            text,
            "::{command} file={},line={},endLine={}{columns},title={}::{}",
            property(finding.source.name()),
            at.line,
            at.end_line,
            property(&finding.rule),
            data(&finding.message),
        );
    }
    text
}

/// The text of a command.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// A property of a command.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::{data, property};

    #[test]
    fn github_command_text_is_escaped() {
        assert_eq!(data("100%\n::error::x"), "100%25%0A::error::x");
        assert_eq!(property("a,b:c"), "a%2Cb%3Ac");
    }
}
