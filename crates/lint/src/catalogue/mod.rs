//! The rules.

mod always_denies;
mod always_true;
mod api_server_rejects;
mod binding_without_policy;
mod blocks_finalizers;
mod core_param_kind;
mod crashes_controller_manager;
mod creation_warning;
mod deny_on_missing_params;
mod duplicate_name;
mod fail_unscoped;
mod fails_open;
mod matches_kube_system;
mod matches_leases;
mod matches_nodes;
mod missing_subresource;
mod mutation_type;
mod near_cost_limit;
mod never_denies;
mod never_matches;
mod never_reached;
mod newer_function;
mod no_verdict;
mod not_served;
mod null_object;
mod param_ref_ignored;
mod params_missing_field;
mod params_not_bound;
mod pods_not_matched;
mod policy_per_namespace;
mod policy_without_binding;
mod proofs;
mod selector_params_fan_out;
mod too_many_authorizer_checks;
mod type_check;
mod types_not_checked;
mod unguarded_optional_field;
mod unknown_field;
mod unknown_lint_id;
mod unreadable_object;
mod unresolvable_param_kind;
mod unused_variable;

pub use matches_kube_system::control_plane_writes;
use palisade_cel::schema::Kind;
use palisade_kube_json::selector::{self, Labels};
use serde_json::Value as Json;

use crate::{Extension, Rule, cluster::Cluster, finding::Findings, item::Item, policy::Policy};

/// The function that finds violations of a rule.
type Check = fn(&Cluster<'_>, &mut Findings<'_>);

/// The rules of this crate, in the order of their findings at one position.
static CATALOGUE: &[(&Rule, Check)] = &[
    (&unreadable_object::RULE, unreadable_object::check),
    (&api_server_rejects::RULE, api_server_rejects::check),
    (&newer_function::RULE, newer_function::check),
    (&not_served::RULE, not_served::check),
    (&unknown_field::RULE, unknown_field::check),
    (&no_verdict::RULE, no_verdict::check),
    (&type_check::RULE, type_check::check),
    (&mutation_type::RULE, mutation_type::check),
    (&types_not_checked::RULE, types_not_checked::check),
    (&crashes_controller_manager::RULE, crashes_controller_manager::check),
    (&creation_warning::RULE, creation_warning::check),
    (&fail_unscoped::RULE, fail_unscoped::check),
    (&matches_kube_system::RULE, matches_kube_system::check),
    (&matches_leases::RULE, matches_leases::check),
    (&matches_nodes::RULE, matches_nodes::check),
    (&blocks_finalizers::RULE, blocks_finalizers::check),
    (&null_object::RULE, null_object::check),
    (&missing_subresource::RULE, missing_subresource::check),
    (&pods_not_matched::RULE, pods_not_matched::check),
    (&unguarded_optional_field::RULE, unguarded_optional_field::check),
    (&near_cost_limit::RULE, near_cost_limit::check),
    (&too_many_authorizer_checks::RULE, too_many_authorizer_checks::check),
    (&unresolvable_param_kind::RULE, unresolvable_param_kind::check),
    (&core_param_kind::RULE, core_param_kind::check),
    (&params_missing_field::RULE, params_missing_field::check),
    (&params_not_bound::RULE, params_not_bound::check),
    (&param_ref_ignored::RULE, param_ref_ignored::check),
    (&deny_on_missing_params::RULE, deny_on_missing_params::check),
    (&selector_params_fan_out::RULE, selector_params_fan_out::check),
    (&policy_per_namespace::RULE, policy_per_namespace::check),
    (&always_true::RULE, always_true::check),
    (&always_denies::RULE, always_denies::check),
    (&never_denies::RULE, never_denies::check),
    (&never_matches::RULE, never_matches::check),
    (&never_reached::RULE, never_reached::check),
    (&unused_variable::RULE, unused_variable::check),
    (&fails_open::RULE, fails_open::check),
    (&policy_without_binding::RULE, policy_without_binding::check),
    (&binding_without_policy::RULE, binding_without_policy::check),
    (&duplicate_name::RULE, duplicate_name::check),
    (&unknown_lint_id::RULE, unknown_lint_id::check),
];

/// All rules, including those of an extension, in the order of their findings at one position.
pub fn all(extension: Option<&dyn Extension>) -> Vec<&'static Rule> {
    let own = |(rule, _): &(&'static Rule, Check)| *rule;
    let (before, after): (Vec<_>, Vec<_>) = CATALOGUE.iter().map(own).partition(|rule| rule.precedes_extension);
    let added = extension.map_or(&[][..], Extension::rules).iter().copied();
    before.into_iter().chain(added).chain(after).collect()
}

/// Finds violations of the rules of this crate; an extension reports violations of its rules itself.
pub(crate) fn check(rule: &Rule, cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    if let Some((_, check)) = CATALOGUE.iter().find(|(own, _)| own.id == rule.id) {
        check(cluster, found);
    }
}

/// Whether a binding denies.
fn is_denying(binding: &Item<'_>) -> bool {
    let actions = binding.json["spec"]["validationActions"].as_array();
    actions.is_none_or(|actions| actions.iter().any(|action| action == "Deny"))
}

/// Whether a policy denies violations: a policy without a binding here is assumed to have one elsewhere.
fn denies(cluster: &Cluster<'_>, policy: &Policy<'_>) -> bool {
    let mut bindings = cluster.bindings_of(policy).peekable();
    bindings.peek().is_none() || bindings.any(is_denying)
}

/// Whether a policy denies requests for which its expressions fail.
fn is_enforced(cluster: &Cluster<'_>, policy: &Policy<'_>) -> bool {
    policy.fails_closed() && denies(cluster, policy)
}

/// Whether a policy, and one of its bindings that deny, select a namespace that has no labels but its name.
fn reaches(cluster: &Cluster<'_>, policy: &Policy<'_>, namespace: &str) -> bool {
    let labels = Labels::from([("kubernetes.io/metadata.name".to_owned(), namespace.to_owned())]);
    let selects = |resources: &Json| {
        let selector = selector::read(&resources["namespaceSelector"]);
        selector.is_some_and(|selector| selector::matches(&selector, &labels))
            && selects_all(&resources["objectSelector"])
    };
    let mut bindings = cluster.bindings_of(policy).peekable();
    selects(&policy.spec()["matchConstraints"])
        && (bindings.peek().is_none()
            || bindings.any(|binding| is_denying(binding) && selects(&binding.json["spec"]["matchResources"])))
}

/// Whether a selector selects everything.
fn selects_all(selector: &Json) -> bool {
    selector::read(selector).is_some_and(|selector| selector::is_empty(&selector))
}

/// The affected kinds, as the end of a message; empty if there is only one, or if `all` are affected.
fn named(kinds: &[String], all: bool) -> String {
    /// The most kinds that are listed.
    const SHOWN: usize = 4;
    match kinds {
        [] => String::new(),
        _ if all => format!(" (all {} matched kinds)", kinds.len()),
        _ if kinds.len() <= SHOWN => format!(" ({})", kinds.join("; ")),
        _ => format!(" ({}; and {} more)", kinds[..SHOWN].join("; "), kinds.len() - SHOWN),
    }
}

/// A kind for people: `apps/v1 Deployment`.
fn readable(kind: &Kind) -> String {
    let group = if kind.group.is_empty() { String::new() } else { format!("{}/", kind.group) };
    format!("{group}{} {}", kind.version, kind.kind)
}
