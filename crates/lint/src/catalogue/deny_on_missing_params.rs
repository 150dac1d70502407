//! What is deleted is denied where parameters are missing.

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "deny-on-missing-params",
    severity: Severity::Warning,
    category: Category::Dangerous,
    title: "What is deleted is denied where parameters are missing",
    why: "\
The binding denies where there are no parameters, the parameters are in the namespace of the request, and the policy
matches deletions. In a namespace that is being deleted, the parameters may be gone before the rest: then nothing else
can be deleted, and the namespace stays for ever. Match deletions no more, give `paramRef.namespace`, or use
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
                "match no deletions, or give paramRef.namespace",
            );
        }
    }
}
