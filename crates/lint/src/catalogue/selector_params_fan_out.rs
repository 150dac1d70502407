//! A selector of parameters that selects many.

use palisade_manifest::Severity;
use serde_json::Value as Json;

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::{Findings, Found},
    item::Item,
    policy::{Policy, Role},
    selector, tree,
};

pub(super) static RULE: Rule = Rule {
    id: "selector-params-fan-out",
    severity: Severity::Warning,
    category: Category::Dangerous,
    title: "A selector of parameters that selects many",
    why: "\
The policy is evaluated once for each object of parameters that the selector selects, and denies if one of them denies.
An empty selector selects all, in the namespace of the request or, with `namespace`, in that one. What a request costs
grows with each object. Refer to one by its name.

It is a note where the parameters are looked up by design: match conditions read `params`, so that each object says itself
which requests it is for, or the objects are those of the request's own namespace. Then keep them few, and select them by a
label.",
    bad: include_str!("selector_params_fan_out.bad.yaml"),
    good: include_str!("selector_params_fan_out.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for binding in &cluster.bindings {
        let param_ref = &binding.json["spec"]["paramRef"];
        let Some(selector) = param_ref.get("selector").filter(|selector| selector.is_object()) else { continue };
        let policy = cluster.policy_of(binding);
        let Some(selected) = selected(cluster, policy, selector) else { continue };
        let local = param_ref["namespace"].as_str().is_none_or(str::is_empty);
        let (severity, help) = match policy.is_some_and(chooses) {
            true => (
                Severity::Info,
                "select only those by a label that a match condition can choose from, and keep them few",
            ),
            false if local => {
                (Severity::Info, "give them one name in all namespaces and refer to it, or select one by a label")
            }
            false => (Severity::Warning, "refer to one object by name"),
        };
        found.put(
            binding,
            Found {
                path: "spec.paramRef.selector".to_owned(),
                message: format!("selects {selected}, each of which is an evaluation for each request"),
                help: Some(help.to_owned()),
                severity: Some(severity),
                ..Found::default()
            },
        );
    }
}

/// More than a few.
const MOST: usize = 10;

/// What a selector selects, if that is much.
fn selected(cluster: &Cluster<'_>, policy: Option<&Policy<'_>>, selector: &Json) -> Option<String> {
    if selector::is_empty(Some(selector)) {
        return Some("all parameters".to_owned());
    }
    let kind = policy.and_then(Policy::param_kind)?;
    let is_selected = |one: &&Item<'_>| {
        let labels = one.json["metadata"]["labels"].as_object();
        let labels: Vec<_> =
            labels.into_iter().flatten().map(|(key, value)| (&**key, value.as_str().unwrap_or_default())).collect();
        (one.api_version(), &*one.kind) == (&kind.0, &*kind.1) && selector::selects(selector, &labels)
    };
    let count = cluster.others.iter().filter(is_selected).count();
    (count > MOST).then(|| format!("{count} objects of these files"))
}

/// Whether a policy chooses by its match conditions which parameters a request is judged by.
fn chooses(policy: &Policy<'_>) -> bool {
    policy.nodes().any(|(expression, node)| {
        expression.role == Role::Condition && tree::asking_chain(node).is_some_and(|(root, _)| root == "params")
    })
}
