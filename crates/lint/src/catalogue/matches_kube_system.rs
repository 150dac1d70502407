//! A policy that can deny what the control plane does in kube-system.

use palisade_manifest::Severity;

use super::{is_enforced, reaches};
use crate::policy::ResourceRule;
use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "matches-kube-system",
    severity: Severity::Warning,
    category: Category::Regret,
    title: "A policy that can deny what the control plane does in kube-system",
    why: "\
With `failurePolicy: Fail`, an expression that fails, or parameters that are missing, deny requests in `kube-system` as
well: controllers, schedulers and addons stop working, and whoever would repair it may be among them. Leave the namespace
out by a `namespaceSelector`, in the policy or in each binding, or by a match condition that names it.",
    bad: include_str!("matches_kube_system.bad.yaml"),
    good: include_str!("matches_kube_system.good.yaml"),
    check: |cluster, found| {
    for policy in cluster.policies.iter().filter(|policy| is_enforced(cluster, policy)) {
        let namespaced = |rule: &ResourceRule| {
            rule.scope != "Cluster"
                && rule.names.is_empty()
                && !rule.is_everything()
                && rule.resources.iter().any(|one| !CLUSTER_SCOPED.contains(&one.split('/').next().unwrap_or_default()))
        };
        let guarded = ["kube-system", "request.namespace", "namespaceObject"].iter().any(|one| policy.mentions(one));
        if policy.rules().iter().any(namespaced) && !guarded && reaches(cluster, policy, "kube-system") {
            found.advise(
                &policy.item,
                "spec.matchConstraints",
                "matches kube-system, where a failing expression would stop the control plane",
                "add a namespaceSelector with kubernetes.io/metadata.name NotIn [kube-system, ...]",
            );
        }
    }
},
};

/// Namespaced requests that these cover are none.
const CLUSTER_SCOPED: [&str; 18] = [
    "namespaces",
    "nodes",
    "persistentvolumes",
    "clusterroles",
    "clusterrolebindings",
    "storageclasses",
    "priorityclasses",
    "runtimeclasses",
    "ingressclasses",
    "customresourcedefinitions",
    "apiservices",
    "csidrivers",
    "csinodes",
    "volumeattachments",
    "certificatesigningrequests",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "validatingwebhookconfigurations",
];
