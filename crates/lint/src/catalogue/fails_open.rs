//! A policy that admits requests for which an expression fails.

use palisade_manifest::Severity;

use super::is_denying;
use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "fails-open",
    severity: Severity::Info,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A policy that admits requests for which an expression fails",
    why: "\
With `failurePolicy: Ignore`, a request is admitted if an expression fails. A user can bypass the policy by making an
expression fail, for example by omitting a field that is read without `has()`. This is acceptable during a trial; use `Fail`
in production.",
    bad: include_str!("fails_open.bad.yaml"),
    good: include_str!("fails_open.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| !policy.fails_closed()) {
        let denying = cluster.bindings_of(policy).any(is_denying) || policy.item.kind.starts_with("Mutating");
        if denying {
            found.add(&policy.item, "spec.failurePolicy", "admits requests for which an expression fails");
        }
    }
}
