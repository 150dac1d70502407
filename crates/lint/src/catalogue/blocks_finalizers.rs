//! The removal of a finalizer is denied.

use palisade_cel::ast::{Expr, Literal, Node};
use palisade_manifest::Severity;

use super::denies;
use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::{Findings, Found},
    policy::{Policy, ResourceRule},
    scenario::{self, Rest, Scenario},
    tree,
};

pub(super) static RULE: Rule = Rule {
    id: "blocks-finalizers",
    severity: Severity::Warning,
    category: Category::Dangerous,
    title: "The removal of a finalizer is denied",
    why: "\
An object that is deleted stays until the last of its finalizers is removed, and each removal is an update that the policy
judges. If the policy denies it, the object can never be deleted, nor the namespace that it is in.

It is a warning where that happens to objects that the policy itself admitted: their creation is not matched, or the verdict
depends on who asks, on the status or on what an update changes. It is one as well for claims and volumes, each of which has a
finalizer from Kubernetes. Otherwise it is a note: only objects that were there before the policy, or before its parameters or
the labels of their namespace changed, can be stuck; mend or delete them before you bind the policy with `Deny`.

Let pass what is being deleted (`has(object.metadata.deletionTimestamp)`), or what changes nothing that is judged
(`request.operation == 'UPDATE' && object.spec == oldObject.spec`). The rule evaluates the expressions for such an update, as far
as that is possible without an object.",
    bad: include_str!("blocks_finalizers.bad.yaml"),
    good: include_str!("blocks_finalizers.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| denies(cluster, policy)) {
        let rules = policy.rules();
        let Some(rule) = rules.iter().find(|rule| rule.on("UPDATE") && rule.whole(cluster.kinds()).next().is_some())
        else {
            continue;
        };
        let removal = scenario::rest(policy, Scenario::Removal);
        if removal.conditions.is_none() || removal.validations.is_empty() {
            continue;
        }
        let (severity, message) = match reason(cluster, policy, &rules, &removal) {
            Some(reason) => (Severity::Warning, format!("can deny the removal of a finalizer: {reason}")),
            None => (
                Severity::Info,
                "denies the removal of a finalizer from objects that were there before the policy and violate it"
                    .to_owned(),
            ),
        };
        found.put(
            &policy.item,
            Found {
                path: format!("{}.operations", rule.path()),
                message,
                help: Some(HELP.to_owned()),
                severity: Some(severity),
                ..Found::default()
            },
        );
    }
}

const HELP: &str = "let pass has(object.metadata.deletionTimestamp), or what leaves the spec as it was";

/// Why what the policy admitted, or each object of a kind, can be stuck.
fn reason(cluster: &Cluster<'_>, policy: &Policy<'_>, rules: &[ResourceRule], removal: &Rest) -> Option<String> {
    let updated = rules.iter().filter(|rule| rule.on("UPDATE")).flat_map(|rule| rule.whole(cluster.kinds()));
    for (group, resource) in updated {
        let created = rules.iter().any(|rule| rule.on("CREATE") && rule.covers(group, resource));
        if !created {
            return Some(format!("it judges the update of {resource}, and not their creation"));
        }
        if FINALIZED.contains(&(group, resource)) {
            return Some(format!(
                "Kubernetes gives a finalizer to each of the {resource}, also to those that violate it"
            ));
        }
    }
    let conditions = removal.conditions.as_deref().unwrap_or_default();
    if removal.validations.iter().any(reads_who_asks)
        || conditions.iter().any(|one| reads_who_asks(one) && !is_of_nodes(one))
    {
        return Some("its verdict depends on who asks, and mostly a controller removes finalizers".to_owned());
    }
    if conditions.iter().chain(&removal.validations).any(reads_status) {
        return Some("its verdict depends on the status, which changes after the creation was admitted".to_owned());
    }
    let creation = scenario::rest(policy, Scenario::Creation);
    if creation.conditions.is_some() && creation.validations.iter().any(|one| tree::constant(one) == Some(false)) {
        // Nothing is admitted at all.
        return None;
    }
    let is_in = |node: &Node, among: &[Node]| among.iter().any(|other| tree::same(node, other));
    let judged = match &creation.conditions {
        None => false,
        // What cannot be compared may be the same.
        Some(creation) => {
            creation.iter().all(|one| is_in(one, conditions)) || conditions.iter().any(scenario::is_unknown)
        }
    };
    let demanded = |one: &Node| is_in(one, &creation.validations) || scenario::is_unknown(one);
    (!judged || !removal.validations.iter().all(demanded))
        .then(|| "it demands of an update what it does not demand of a creation".to_owned())
}

/// Kinds of which each object gets a finalizer (`plugin/pkg/admission/storage/storageobjectinuseprotection`).
const FINALIZED: [(&str, &str); 2] = [("", "persistentvolumeclaims"), ("", "persistentvolumes")];

fn reads_who_asks(node: &Node) -> bool {
    tree::nodes(node).into_iter().any(|node| match &node.expr {
        Expr::Ident(name) => name.starts_with("authorizer"),
        _ => tree::asking_chain(node)
            .is_some_and(|(root, fields)| root == "request" && fields.first() == Some(&"userInfo")),
    })
}

/// Whether a part is about nodes only: what these create has no finalizers.
fn is_of_nodes(node: &Node) -> bool {
    let mut texts = tree::nodes(node).into_iter().filter_map(|node| match &node.expr {
        Expr::Literal(Literal::String(text)) => Some(text),
        _ => None,
    });
    texts.clone().next().is_some() && texts.all(|text| text.starts_with("system:node"))
}

fn reads_status(node: &Node) -> bool {
    tree::nodes(node).into_iter().any(|node| {
        tree::asking_chain(node)
            .is_some_and(|(root, fields)| matches!(root, "object" | "oldObject") && fields.first() == Some(&"status"))
    })
}
