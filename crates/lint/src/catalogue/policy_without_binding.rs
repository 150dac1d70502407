//! A policy without a binding.

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "policy-without-binding",
    severity: Severity::Info,
    category: Category::Useless,
    precedes_extension: false,
    title: "A policy without a binding",
    why: "\
No binding in these files names this policy. Without a binding, a policy has no effect.",
    bad: include_str!("policy_without_binding.bad.yaml"),
    good: include_str!("policy_without_binding.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        // A binding that the API server rejects counts, too.
        let kind = format!("{}Binding", policy.item.kind);
        let bound = cluster
            .said
            .iter()
            .any(|(item, _)| item.kind == kind && item.json["spec"]["policyName"] == *policy.item.name());
        if !bound {
            found.add(&policy.item, "metadata.name", "no binding in these files names this policy");
        }
    }
}
