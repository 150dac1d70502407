//! A policy that can deny Leases.

use palisade_manifest::Severity;

use super::{is_enforced, reaches};
use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::ResourceRule};

pub(super) static RULE: Rule = Rule {
    id: "matches-leases",
    severity: Severity::Error,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A policy that can deny Leases",
    why: "\
Kubelets and the leaders of the control plane renew a Lease every few seconds. If the policy denies this, because an
expression fails or parameters are missing, all nodes become `NotReady` and controllers lose their leadership. Remove Leases
from `resources`, or exclude `kube-system` and `kube-node-lease`.",
    bad: include_str!("matches_leases.bad.yaml"),
    good: include_str!("matches_leases.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| is_enforced(cluster, policy)) {
        let leases = |rule: &ResourceRule| {
            !rule.is_everything()
                && rule.covers("coordination.k8s.io", "leases")
                && rule.names.is_empty()
                && (rule.on("CREATE") || rule.on("UPDATE"))
        };
        let guarded = policy.mentions("kube-node-lease") || policy.mentions("request.namespace");
        if let Some(rule) = policy.rules().iter().find(|rule| leases(rule))
            && !guarded
            && ["kube-system", "kube-node-lease"].iter().any(|namespace| reaches(cluster, policy, namespace))
        {
            found.advise(
                &policy.item,
                &format!("{}.resources", rule.path()),
                "matches the Leases of nodes and of the control plane",
                "exclude kube-system and kube-node-lease with a namespaceSelector",
            );
        }
    }
}
