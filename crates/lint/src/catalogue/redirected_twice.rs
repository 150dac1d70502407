//! Profiles that redirect each other's images.

use palisade_compiler::{namespace_selector, redirect_each_other};
use palisade_manifest::Severity;
use palisade_objects::selector;

use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "redirected-twice",
    severity: Severity::Warning,
    category: Category::Regret,
    title: "Two profiles that redirect each other's images",
    why: "\
Both profiles redirect images, and both may select a namespace. There one redirects what the other has redirected, and since
the API server asks again after a change, images get names like `a.example/b.example/a.example/docker.io/library/nginx`,
which nobody serves. Webhooks are asked in the order of the profiles' names, policies in any order. Let one profile redirect,
or select other namespaces, or name the other's target in `skip` on both sides: then who comes first decides.",
    bad: include_str!("redirected_twice.bad.yaml"),
    good: include_str!("redirected_twice.good.yaml"),
    check: |cluster, found| {
        for (index, (item, spec)) in cluster.accepted.iter().enumerate() {
            for (other, of_other) in cluster.accepted.iter().take(index) {
                let meet = selector::overlap(&namespace_selector(spec), &namespace_selector(of_other));
                if meet && redirect_each_other(spec, of_other) {
                    let message = format!("redirects images that profile {} redirects, or the other way round", other.name());
                    let help = "let one of them redirect, or have each skip the other's target";
                    found.advise(item, "spec.images.redirect", message, help);
                }
            }
        }
    },
};
