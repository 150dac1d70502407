//! The rules.

mod always_true;
mod api_server_rejects;
mod binding_without_policy;
mod blocks_finalizers;
mod core_param_kind;
mod creation_warning;
mod deny_on_missing_params;
mod duplicate_name;
mod fail_unscoped;
mod fails_open;
mod matches_kube_system;
mod matches_leases;
mod matches_nodes;
mod missing_subresource;
mod near_cost_limit;
mod never_reached;
mod newer_function;
mod no_verdict;
mod not_served;
mod null_object;
mod param_ref_ignored;
mod params_missing_field;
mod params_not_bound;
mod policy_per_namespace;
mod policy_without_binding;
mod selector_params_fan_out;
mod too_many_authorizer_checks;
mod type_check;
mod unguarded_optional_field;
mod unknown_field;
mod unknown_lint_id;
mod unreadable_object;
mod unresolvable_param_kind;
mod unused_variable;

pub use matches_kube_system::CONTROL_PLANE_WRITES;
use palisade_cel::schema::Kind;
use serde_json::Value as Json;

use crate::{
    Extension, Rule,
    cluster::{Cluster, Item},
    policy::Policy,
    selector,
};

/// The rules of this crate, in the order in which what they find is reported of one place.
static OWN: &[&Rule] = &[
    &unreadable_object::RULE,
    &api_server_rejects::RULE,
    &newer_function::RULE,
    &not_served::RULE,
    &unknown_field::RULE,
    &no_verdict::RULE,
    &type_check::RULE,
    &creation_warning::RULE,
    &fail_unscoped::RULE,
    &matches_kube_system::RULE,
    &matches_leases::RULE,
    &matches_nodes::RULE,
    &blocks_finalizers::RULE,
    &null_object::RULE,
    &missing_subresource::RULE,
    &unguarded_optional_field::RULE,
    &near_cost_limit::RULE,
    &too_many_authorizer_checks::RULE,
    &unresolvable_param_kind::RULE,
    &core_param_kind::RULE,
    &params_missing_field::RULE,
    &params_not_bound::RULE,
    &param_ref_ignored::RULE,
    &deny_on_missing_params::RULE,
    &selector_params_fan_out::RULE,
    &policy_per_namespace::RULE,
    &always_true::RULE,
    &never_reached::RULE,
    &unused_variable::RULE,
    &fails_open::RULE,
    &policy_without_binding::RULE,
    &binding_without_policy::RULE,
    &duplicate_name::RULE,
    &unknown_lint_id::RULE,
];

/// How many of them come before those of an extension: what is reported of an object whatever it says.
const BEFORE: usize = 5;

/// All rules, with those of an extension, in the order in which what they find is reported of one place.
pub fn all(extension: Option<&dyn Extension>) -> Vec<&'static Rule> {
    let (before, after) = OWN.split_at(BEFORE);
    [before, extension.map_or(&[], Extension::rules), after].concat()
}

/// Whether a binding denies.
fn is_denying(binding: &Item<'_>) -> bool {
    let actions = binding.json["spec"]["validationActions"].as_array();
    actions.is_none_or(|actions| actions.iter().any(|action| action == "Deny"))
}

/// Whether a policy denies what violates it: one without a binding here has one elsewhere.
fn denies(cluster: &Cluster<'_>, policy: &Policy<'_>) -> bool {
    let mut bindings = cluster.bindings_of(policy).peekable();
    bindings.peek().is_none() || bindings.any(is_denying)
}

/// Whether a policy denies what its expressions fail for.
fn is_enforced(cluster: &Cluster<'_>, policy: &Policy<'_>) -> bool {
    policy.fails_closed() && denies(cluster, policy)
}

/// Whether a policy, and one of its bindings that deny, select a namespace that has no labels but its name.
fn reaches(cluster: &Cluster<'_>, policy: &Policy<'_>, namespace: &str) -> bool {
    let labels = [("kubernetes.io/metadata.name", namespace)];
    let selects = |resources: &Json| {
        selector::selects(&resources["namespaceSelector"], &labels)
            && selector::is_empty(resources.get("objectSelector"))
    };
    let mut bindings = cluster.bindings_of(policy).peekable();
    selects(&policy.spec()["matchConstraints"])
        && (bindings.peek().is_none()
            || bindings.any(|binding| is_denying(binding) && selects(&binding.json["spec"]["matchResources"])))
}

/// The kinds that something concerns, as the end of a message; nothing if there is only one, or if `all` are concerned.
fn named(kinds: &[String], all: bool) -> String {
    /// As many as are read.
    const SHOWN: usize = 4;
    match kinds {
        [] => String::new(),
        _ if all => format!(" (all {} kinds that are matched)", kinds.len()),
        _ if kinds.len() <= SHOWN => format!(" ({})", kinds.join("; ")),
        _ => format!(" ({}; and {} more)", kinds[..SHOWN].join("; "), kinds.len() - SHOWN),
    }
}

/// A kind for people: `apps/v1 Deployment`.
fn readable(kind: &Kind) -> String {
    let group = if kind.group.is_empty() { String::new() } else { format!("{}/", kind.group) };
    format!("{group}{} {}", kind.version, kind.kind)
}
