//! Parameters of a policy that has none.

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "param-ref-ignored",
    severity: Severity::Warning,
    category: Category::Dangerous,
    title: "Parameters of a policy that has none",
    why: "\
The binding has a `paramRef`, but the policy no `paramKind`: the API server ignores the reference without a word.",
    bad: include_str!("param_ref_ignored.bad.yaml"),
    good: include_str!("param_ref_ignored.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for binding in &cluster.bindings {
        let Some(policy) = cluster.policy_of(binding) else { continue };
        if policy.param_kind().is_none() && binding.json["spec"]["paramRef"].is_object() {
            let message = format!("is ignored, for {} has no paramKind", policy.item.label());
            found.add(binding, "spec.paramRef", message);
        }
    }
}
