//! What the expressions fail for is admitted.

use palisade_manifest::Severity;

use super::is_denying;
use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "fails-open",
    severity: Severity::Info,
    category: Category::Dangerous,
    title: "What the expressions fail for is admitted",
    why: "\
With `failurePolicy: Ignore`, a request for which an expression fails is admitted: a user who can make it fail, by leaving
out a field that is read without asking, passes the policy. Fine while it is tried out; not for what must hold.",
    bad: include_str!("fails_open.bad.yaml"),
    good: include_str!("fails_open.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| !policy.fails_closed()) {
        let denying = cluster.bindings_of(policy).any(is_denying) || policy.item.kind.starts_with("Mutating");
        if denying {
            found.add(&policy.item, "spec.failurePolicy", "admits what an expression fails for");
        }
    }
}
