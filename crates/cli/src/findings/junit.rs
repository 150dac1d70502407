//! XML in the format of `JUnit`: a suite for each file, a failed case for each finding.

use std::{collections::BTreeMap, fmt::Write as _};

use palisade_manifest::Severity;

use super::{Finding, Findings, severity};

/// All suites. Findings that are only notes are cases that pass.
pub fn text(report: &Findings) -> String {
    let mut files = BTreeMap::<&str, Vec<&Finding>>::new();
    for finding in &report.found {
        files.entry(finding.source.name()).or_default().push(finding);
    }
    let is_failure = |finding: &&&Finding| finding.severity > Severity::Info;
    let failures = report.found.iter().filter(|finding| finding.severity > Severity::Info).count();
    // Some servers reject a report without any case.
    let tests = report.found.len().max(1);
    let mut text = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <testsuites name=\"palisade {}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">\n",
        report.command,
    );
    if files.is_empty() {
        let command = report.command;
        let _ = writeln!(text, "  <testsuite name=\"palisade {command}\" tests=\"1\" failures=\"0\" errors=\"0\">");
        let _ = writeln!(text, "    <testcase classname=\"palisade.{command}\" name=\"{} objects\"/>", report.objects);
        text.push_str("  </testsuite>\n");
    }
    for (file, findings) in files {
        let failures = findings.iter().filter(is_failure).count();
        let (name, tests) = (escape(file), findings.len());
        let _ = writeln!(text, "  <testsuite name=\"{name}\" tests=\"{tests}\" failures=\"{failures}\" errors=\"0\">");
        for finding in findings {
            case(&mut text, report.command, finding);
        }
        text.push_str("  </testsuite>\n");
    }
    text.push_str("</testsuites>\n");
    text
}

fn case(text: &mut String, command: &str, finding: &Finding) {
    let at = finding.region();
    let name = escape(&format!("{} {}:{}", finding.object, at.line, at.column));
    let (rule, message) = (escape(&finding.rule), escape(&finding.message));
    let _ = write!(text, "    <testcase classname=\"palisade.{command}.{rule}\" name=\"{name}\"");
    if finding.severity > Severity::Info {
        let (severity, file) = (severity(finding.severity), escape(finding.source.name()));
        let _ = writeln!(
            text,
            ">\n      <failure type=\"{severity}\" message=\"{message}\">{file}:{}:{}: {message}</failure>\n    </testcase>",
            at.line, at.column,
        );
    } else {
        let _ = writeln!(text, "><system-out>{message}</system-out></testcase>");
    }
}

/// Text in XML 1.0, which does not allow most control characters.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => drop(write!(out, "&#{};", u32::from(c))),
            '\0'..='\x1f' | '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::escape;

    #[test]
    fn xml_special_and_control_characters_are_escaped() {
        assert_eq!(escape("<a b=\"&\">\n\u{1}ü"), "&lt;a b=&quot;&amp;&quot;&gt;&#10;\u{fffd}ü");
    }
}
