//! A policy that denies deletions if parameters are missing.

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "deny-on-missing-params",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A policy that denies deletions if parameters are missing",
    why: "\
The binding denies requests without parameters, the parameters are in the namespace of the request, and the policy matches
deletions. When a namespace is deleted, its parameters may be deleted before the other objects. Those objects can then no
longer be deleted, and the namespace remains in `Terminating`. Do not match `DELETE`, set `paramRef.namespace`, or use
`parameterNotFoundAction: Allow`.",
    bad: include_str!("deny_on_missing_params.bad.yaml"),
    good: include_str!("deny_on_missing_params.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for binding in &cluster.bindings {
        let param_ref = &binding.json["spec"]["paramRef"];
        let Some(policy) = cluster.policy_of(binding) else { continue };
        let deletes = policy.rules().iter().any(|rule| rule.on("DELETE") && rule.scope != "Cluster");
        let local = param_ref["namespace"].as_str().is_none_or(str::is_empty);
        if param_ref["parameterNotFoundAction"] == "Deny"
            && policy.param_kind().is_some()
            && policy.fails_closed()
            && deletes
            && local
        {
            found.advise(
                binding,
                "spec.paramRef.parameterNotFoundAction",
                "denies deletions in a namespace whose parameters were deleted first",
                "do not match DELETE, or set paramRef.namespace",
            );
        }
    }
}
