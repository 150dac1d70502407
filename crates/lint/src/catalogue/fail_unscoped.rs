//! A policy that matches everything and denies if it fails.

use palisade_manifest::Severity;

use super::{is_enforced, reaches, selects_all};
use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "fail-unscoped",
    severity: Severity::Error,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A policy that matches everything and denies if it fails",
    why: "\
The policy matches every resource of every group in every namespace, and denies every request for which an expression fails.
A single error in it can block all writes to the cluster, possibly including the fix. List the resources, limit the policy
with selectors or match conditions, or set `failurePolicy: Ignore`.",
    bad: include_str!("fail_unscoped.bad.yaml"),
    good: include_str!("fail_unscoped.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| is_enforced(cluster, policy)) {
        let constraints = &policy.spec()["matchConstraints"];
        let scoped = !selects_all(&constraints["namespaceSelector"])
            || !selects_all(&constraints["objectSelector"])
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
