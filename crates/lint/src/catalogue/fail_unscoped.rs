//! A policy for everything that denies when it fails.

use palisade_manifest::Severity;

use super::{is_enforced, reaches};
use crate::{Category, Rule, cluster::Cluster, finding::Findings, selector};

pub(super) static RULE: Rule = Rule {
    id: "fail-unscoped",
    severity: Severity::Error,
    category: Category::Dangerous,
    title: "A policy for everything that denies when it fails",
    why: "\
The policy matches every resource of every group in every namespace, and denies whatever its expressions fail for. One
mistake and nothing can be written to the cluster any more, maybe not even the repair. Name what is meant, or narrow it
by selectors or match conditions, or set `failurePolicy: Ignore`.",
    bad: include_str!("fail_unscoped.bad.yaml"),
    good: include_str!("fail_unscoped.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| is_enforced(cluster, policy)) {
        let constraints = &policy.spec()["matchConstraints"];
        let scoped = !selector::is_empty(constraints.get("namespaceSelector"))
            || !selector::is_empty(constraints.get("objectSelector"))
            || policy.spec()["matchConditions"].as_array().is_some_and(|conditions| !conditions.is_empty());
        if let Some(rule) = policy.rules().iter().find(|rule| rule.is_everything())
            && !scoped
            && reaches(cluster, policy, "kube-system")
        {
            found.advise(
                &policy.item,
                &format!("{}.resources", rule.path()),
                "matches everything in the cluster, and denies it if an expression fails",
                "name the resources, or add a namespaceSelector",
            );
        }
    }
}
