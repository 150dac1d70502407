//! A policy that can deny kubelets the update of their Nodes.

use palisade_manifest::Severity;

use super::{is_enforced, selects_all};
use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::ResourceRule};

pub(super) static RULE: Rule = Rule {
    id: "matches-nodes",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A policy that can deny kubelets the update of their Nodes",
    why: "\
Kubelets register and update their own Node. If the policy denies that, no node can join, and existing nodes become
`NotReady`. Exclude requests of `system:nodes` with a match condition, or match fewer operations.",
    bad: include_str!("matches_nodes.bad.yaml"),
    good: include_str!("matches_nodes.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| is_enforced(cluster, policy)) {
        let nodes = |rule: &ResourceRule| {
            !rule.is_everything()
                && (rule.covers("", "nodes") || rule.covers("", "nodes/status"))
                && rule.names.is_empty()
                && rule.scope != "Namespaced"
                && (rule.on("CREATE") || rule.on("UPDATE"))
        };
        let scoped = !selects_all(&policy.spec()["matchConstraints"]["objectSelector"]);
        if let Some(rule) = policy.rules().iter().find(|rule| nodes(rule))
            && !scoped
            && !policy.mentions("system:node")
        {
            found.advise(
                &policy.item,
                &format!("{}.resources", rule.path()),
                "matches the Nodes that kubelets write",
                "add a match condition: !('system:nodes' in request.userInfo.groups)",
            );
        }
    }
}
