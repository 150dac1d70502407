//! A `paramRef` for a policy without parameters.

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "param-ref-ignored",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A paramRef for a policy without parameters",
    why: "\
The binding has a `paramRef`, but the policy has no `paramKind`. The API server silently ignores the reference.",
    bad: include_str!("param_ref_ignored.bad.yaml"),
    good: include_str!("param_ref_ignored.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for binding in &cluster.bindings {
        let Some(policy) = cluster.policy_of(binding) else { continue };
        if policy.param_kind().is_none() && binding.json["spec"]["paramRef"].is_object() {
            let message = format!("is ignored, because {} has no paramKind", policy.item.label());
            found.add(binding, "spec.paramRef", message);
        }
    }
}
