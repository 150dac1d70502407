//! SARIF 2.1.0 (<https://docs.oasis-open.org/sarif/sarif/v2.1.0/>).

use std::fmt::Write as _;

use palisade_kube_json::json::set;
use palisade_manifest::Severity;
use serde_json::{Value as Json, json};

use super::{Finding, Findings, Rule, cleaned};

/// One log with one run.
pub fn text(findings: &Findings) -> String {
    let rules = &findings.rules;
    let log = json!({
        "$schema": "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json",
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "palisade",
                "version": env!("CARGO_PKG_VERSION"),
                "informationUri": "https://github.com/palisade-dev/palisade",
                "rules": rules.iter().map(rule).collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "results": findings.found.iter().map(|one| result(one, rules)).collect::<Vec<_>>(),
        }],
    });
    format!("{log:#}\n")
}

fn rule(rule: &Rule) -> Json {
    let mut object = json!({
        "id": rule.id,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.why, "markdown": rule.why},
        "defaultConfiguration": {"level": level(rule.severity)},
    });
    if let Some(page) = &rule.page {
        set(&mut object, &["helpUri"], page.as_str());
    }
    if let Some(category) = rule.category {
        set(&mut object, &["properties"], json!({"category": category}));
    }
    object
}

fn result(finding: &Finding, rules: &[Rule]) -> Json {
    let at = finding.region();
    let mut result = json!({
        "ruleId": finding.rule,
        "ruleIndex": rules.iter().position(|rule| rule.id == finding.rule),
        "level": level(finding.severity),
        "message": {"text": finding.message},
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
        "partialFingerprints": {"palisade/v1": fingerprint(finding)},
    });
    if !finding.properties.is_null() {
        set(&mut result, &["properties"], finding.properties.clone());
    }
    result
}

/// The identity of a finding across runs, even if lines have moved: its rule, file, object and path. FNV-1a with 64
/// bits is the same on each machine.
fn fingerprint(finding: &Finding) -> String {
    let parts = [finding.rule.as_str(), &uri(finding.source.name()), &finding.object, &finding.path];
    let bytes = parts.iter().flat_map(|part| part.bytes().chain([0]));
    let hash =
        bytes.fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    format!("{hash:016x}")
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
    for byte in cleaned(path).bytes() {
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
