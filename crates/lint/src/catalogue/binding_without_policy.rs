//! A binding to a policy that does not exist.

use palisade_manifest::Severity;
use palisade_manifest::suggestion;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, item::Item};

pub(super) static RULE: Rule = Rule {
    id: "binding-without-policy",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A binding to a policy that does not exist",
    why: "\
No policy in these files has the name in `policyName`. The API server silently accepts such a binding; it has no effect.",
    bad: include_str!("binding_without_policy.bad.yaml"),
    good: include_str!("binding_without_policy.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for binding in &cluster.bindings {
        let named = binding.json["spec"]["policyName"].as_str().unwrap_or_default();
        let kind = binding.kind.trim_end_matches("Binding");
        // A policy that the API server rejects counts, too. An object that cannot be read may be the policy.
        let policies = || cluster.said.iter().map(|(item, _)| item).filter(|item| item.kind == kind);
        let unreadable = cluster.unreadable.iter().any(|(object, _)| object.kind == kind);
        if unreadable || policies().any(|policy| policy.name() == named) {
            continue;
        }
        let names: Vec<_> = policies().map(Item::name).collect();
        let help =
            if names.is_empty() { "lint the policy with the binding".to_owned() } else { suggestion(named, &names) };
        found.advise(binding, "spec.policyName", format!("no {kind} in these files is named {named:?}"), &help);
    }
}
