//! The rule about profiles that redirect each other's images.

use palisade_api::ToolSecurityProfileSpec;
use palisade_compiler::{namespace_selector, redirect_each_other};
use palisade_lint::{Category, ExtensionFinding, Rule};
use palisade_manifest::Severity;
use palisade_objects::selector;

pub(super) static RULE: Rule = Rule::plugged(
    "redirected-twice",
    Severity::Warning,
    Category::Dangerous,
    "Two profiles that redirect each other's images",
    "\
Both profiles redirect images, and both may select a namespace. There one redirects what the other has redirected, and since
the API server asks again after a change, images get names like `a.example/b.example/a.example/docker.io/library/nginx`,
which nobody serves. Webhooks are asked in the order of the profiles' names, policies in any order. Let one profile redirect,
or select other namespaces, or name the other's target in `skip` on both sides: then who comes first decides.",
    include_str!("redirected_twice.bad.yaml"),
    include_str!("redirected_twice.good.yaml"),
);

/// The findings in a profile, given the profiles before it with their names.
pub(super) fn find(
    spec: &ToolSecurityProfileSpec,
    before: &[(String, ToolSecurityProfileSpec)],
) -> Vec<ExtensionFinding> {
    let meets = |other: &ToolSecurityProfileSpec| {
        selector::overlap(&namespace_selector(spec), &namespace_selector(other)) && redirect_each_other(spec, other)
    };
    let reported = |(name, _): &(String, _)| ExtensionFinding {
        rule: &RULE,
        path: "spec.images.redirect".to_owned(),
        message: format!("redirects images that profile {name} redirects, or the other way round"),
        help: Some("let one of them redirect, or have each skip the other's target".to_owned()),
    };
    before.iter().filter(|(_, other)| meets(other)).map(reported).collect()
}
