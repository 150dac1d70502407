//! An object that the API server accepts with a warning.

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "creation-warning",
    severity: Severity::Warning,
    category: Category::Warned,
    precedes_extension: false,
    title: "An object that the API server accepts with a warning",
    why: "\
The API server accepts the object and returns this warning.",
    bad: include_str!("creation_warning.bad.yaml"),
    good: include_str!("creation_warning.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (item, said) in cluster.said.iter().chain(&cluster.said_of_params) {
        for warning in said.iter().flatten() {
            found.add(item, "metadata.name", warning);
        }
    }
}
