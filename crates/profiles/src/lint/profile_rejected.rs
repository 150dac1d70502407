//! The rule about profiles that the gate rejects.

use palisade_api::Diagnostic;
use palisade_lint::{Category, ExtensionFinding, Rule};
use palisade_manifest::Severity;

pub(super) static RULE: Rule = Rule::plugged(
    "profile-rejected",
    Severity::Error,
    Category::Rejected,
    "A profile that is not accepted",
    "\
The controller rejects this ToolSecurityProfile. The last accepted generation stays in effect.",
    include_str!("profile_rejected.bad.yaml"),
    include_str!("profile_rejected.good.yaml"),
);

/// The findings in a profile with these errors.
pub(super) fn find(diagnostics: Vec<Diagnostic>) -> Vec<ExtensionFinding> {
    let reported = |Diagnostic { location, message, help }| ExtensionFinding {
        rule: &RULE,
        message: format!("{location}: {message}"),
        path: location.to_string(),
        help,
    };
    diagnostics.into_iter().map(reported).collect()
}
