//! A parameter selector that selects many objects.

use palisade_kube_json::selector;
use palisade_manifest::Severity;
use serde_json::Value as Json;

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::{Findings, Found},
    item::Item,
    policy::{Policy, Role},
    tree,
};

pub(super) static RULE: Rule = Rule {
    id: "selector-params-fan-out",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A parameter selector that selects many objects",
    why: "\
The API server evaluates the policy once for each parameter object that the selector selects, and denies the request if one
evaluation denies it. An empty selector selects all objects in the namespace of the request, or in `namespace` if it is set.
The cost of a request grows with each object. Refer to one object by name.

The finding is a note if the selection is by design: match conditions read `params`, so that each object determines its
requests, or the objects are in the namespace of the request. Then keep them few, and select them by a label.",
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
                "select by a label only the objects that match conditions choose from, and keep them few",
            ),
            false if local => {
                (Severity::Info, "use one name in all namespaces and refer to it, or select one object by a label")
            }
            false => (Severity::Warning, "refer to one object by name"),
        };
        found.put(
            binding,
            Found {
                path: "spec.paramRef.selector".to_owned(),
                message: format!("selects {selected}, and each of them adds an evaluation to each request"),
                help: Some(help.to_owned()),
                severity: Some(severity),
                ..Found::default()
            },
        );
    }
}

/// Maximum number of selected objects without a finding.
const MAX_OBJECTS: usize = 10;

/// A description of the selected objects, if they are many.
fn selected(cluster: &Cluster<'_>, policy: Option<&Policy<'_>>, selector: &Json) -> Option<String> {
    let selector = selector::read(selector)?;
    if selector::is_empty(&selector) {
        return Some("all parameters".to_owned());
    }
    let kind = policy.and_then(Policy::param_kind)?;
    let is_selected = |one: &&Item<'_>| {
        (one.api_version(), &*one.kind) == (&kind.0, &*kind.1)
            && selector::matches(&selector, &selector::labels(&one.json))
    };
    let count = cluster.others.iter().filter(is_selected).count();
    (count > MAX_OBJECTS).then(|| format!("{count} objects in these files"))
}

/// Whether the match conditions of a policy choose the parameters for a request.
fn chooses(policy: &Policy<'_>) -> bool {
    policy.nodes().any(|(expression, node)| {
        expression.role == Role::Condition && tree::asking_chain(node).is_some_and(|(root, _)| root == "params")
    })
}
