//! SARIF 2.1.0 (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/>).

use std::fmt::Write as _;

use palisade_lint::{Finding, Report, Rule};
use palisade_manifest::Severity;
use palisade_objects::json::Change as _;
use serde_json::{Value as Json, json};

use super::formats::{full_message, region};

/// One log with one run.
pub(super) fn text(report: &Report) -> String {
    let rules = palisade_profiles::lint::options().rules();
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "palisade",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": "https://github.com/palisade-dev/palisade",
                "rules": rules.iter().map(|one| rule(one)).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": report.findings.iter().map(|one| result(one, &rules)).collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}\n")
}

fn rule(rule: &Rule) -> Json {
    json!({
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.why, "markdown": rule.why},
        "helpUri": rule.help_uri(),
        "defaultConfiguration": {"level": level(rule.severity)},
        "properties": {"category": rule.category.name()},
    })
}

fn result(finding: &Finding, rules: &[&Rule]) -> Json {
    let at = region(finding);
    let mut result = json!({
        "ruleId": finding.rule.id,
        "ruleIndex": rules.iter().position(|rule| rule.id == finding.rule.id),
        "level": level(finding.severity),
        "message": {"text": full_message(finding)},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": uri(finding.source.name())},
                "region": {
                    "startLine": at.line,
                    "startColumn": at.column,
                    "endLine": at.end_line,
                    "endColumn": at.end_column,
                },
            },
            "logicalLocations": [{"fullyQualifiedName": format!("{}#{}", finding.object, finding.path)}],
        }],
    });
    if !finding.kinds.is_empty() {
        *result.at_mut(&["properties"]) = json!({ "kinds": finding.kinds });
    }
    result
}

fn level(of: Severity) -> &'static str {
    match of {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "note",
    }
}

/// A path as a relative reference (RFC 3986).
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.trim_start_matches("./").bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            uri.push(char::from(byte));
        } else {
            let _ = write!(uri, "%{byte:02X}");
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::uri;

    #[test]
    fn sarif_paths_are_percent_encoded() {
        assert_eq!(uri("./a b/ü#.yaml"), "a%20b/%C3%BC%23.yaml");
        assert_eq!(uri("<stdin>"), "%3Cstdin%3E");
    }
}
