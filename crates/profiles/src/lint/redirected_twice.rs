//! The rule about profiles that redirect each other's images.

use palisade_api::ToolSecurityProfileSpec;
use palisade_compiler::{namespace_selector, redirect_each_other};
use palisade_kube_json::selector;
use palisade_lint::{Category, ExtensionFinding, Rule};
use palisade_manifest::Severity;

pub(super) static RULE: Rule = Rule::plugged(
    "redirected-twice",
    Severity::Warning,
    Category::Dangerous,
    "Two profiles that redirect each other's images",
    "\
Both profiles redirect images, and can select the same namespace. There, each profile redirects the images that the other has
redirected. Because the API server repeats mutation after a change, images get names like
`a.example/b.example/a.example/docker.io/library/nginx`, which do not exist. Webhooks are called in the order of the names of
profiles, policies in any order. Redirect images in one profile only, select different namespaces, or add the target of the
other profile to `skip` in both profiles: then the first one to redirect an image decides.",
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
        message: format!("redirects images that profile {name} also redirects, or vice versa"),
        help: Some("redirect images in one profile only, or let each profile skip the target of the other".to_owned()),
    };
    before.iter().filter(|(_, other)| meets(other)).map(reported).collect()
}
