//! A policy that denies the removal of a finalizer.

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
    precedes_extension: false,
    title: "A policy that denies the removal of a finalizer",
    why: "\
A deleted object remains until its last finalizer is removed. Each removal is an update that the policy evaluates. If the
policy denies that update, neither the object nor its namespace can be deleted.

The finding is a warning if it concerns objects that the policy admitted: their creation is not matched, or the verdict
depends on the requesting user, on the status or on the change that an update makes. It is also a warning for
PersistentVolumeClaims and PersistentVolumes: Kubernetes adds a finalizer to each of them. Otherwise it is a note. In that
case only objects that existed before the policy, or before its parameters or the labels of their namespace changed, can be
stuck. Fix or delete them before you bind the policy with `Deny`.

Admit objects that are being deleted (`has(object.metadata.deletionTimestamp)`), or updates that do not change the checked
fields (`request.operation == 'UPDATE' && object.spec == oldObject.spec`). The rule evaluates the expressions for the
removal of a finalizer, as far as that is possible without an object. It assumes at most 32 fields and finalizers.",
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
                "denies the removal of a finalizer from objects that are older than the policy and violate it"
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

const HELP: &str = "admit objects with has(object.metadata.deletionTimestamp), or updates that do not change the spec";

/// The reason why objects that the policy admitted, or all objects of a kind, can be stuck.
fn reason(cluster: &Cluster<'_>, policy: &Policy<'_>, rules: &[ResourceRule], removal: &Rest) -> Option<String> {
    let updated = rules.iter().filter(|rule| rule.on("UPDATE")).flat_map(|rule| rule.whole(cluster.kinds()));
    for (group, resource) in updated {
        let created = rules.iter().any(|rule| rule.on("CREATE") && rule.covers(group, resource));
        if !created {
            return Some(format!("it evaluates updates of {resource}, but not their creation"));
        }
        if FINALIZED.contains(&(group, resource)) {
            return Some(format!(
                "Kubernetes adds a finalizer to all {resource}, including those that violate the policy"
            ));
        }
    }
    let conditions = removal.conditions.as_deref().unwrap_or_default();
    if removal.validations.iter().any(reads_who_asks)
        || conditions.iter().any(|one| reads_who_asks(one) && !is_of_nodes(one))
    {
        return Some("its verdict depends on the user, and usually a controller removes finalizers".to_owned());
    }
    if conditions.iter().chain(&removal.validations).any(reads_status) {
        return Some("its verdict depends on the status, which can change after the object was admitted".to_owned());
    }
    let creation = scenario::rest(policy, Scenario::Creation);
    if creation.conditions.is_some() && creation.validations.iter().any(|one| tree::constant(one) == Some(false)) {
        // Nothing is admitted at all.
        return None;
    }
    let is_in = |node: &Node, among: &[Node]| among.contains(node);
    let judged = match &creation.conditions {
        None => false,
        // What cannot be compared may be the same.
        Some(creation) => {
            creation.iter().all(|one| is_in(one, conditions)) || conditions.iter().any(scenario::is_unknown)
        }
    };
    let demanded = |one: &Node| is_in(one, &creation.validations) || scenario::is_unknown(one);
    (!judged || !removal.validations.iter().all(demanded))
        .then(|| "its requirements for updates differ from those for creation".to_owned())
}

/// Kinds whose objects all get a finalizer (`plugin/pkg/admission/storage/storageobjectinuseprotection`).
const FINALIZED: [(&str, &str); 2] = [("", "persistentvolumeclaims"), ("", "persistentvolumes")];

fn reads_who_asks(node: &Node) -> bool {
    node.descendants().any(|node| match &node.expr {
        Expr::Ident(name) => name.starts_with("authorizer"),
        _ => tree::asking_chain(node)
            .is_some_and(|(root, fields)| root == "request" && fields.first() == Some(&"userInfo")),
    })
}

/// Whether a part is about nodes only: the objects that nodes create have no finalizers.
fn is_of_nodes(node: &Node) -> bool {
    let texts = node.descendants().filter_map(|node| match &node.expr {
        Expr::Literal(Literal::String(text)) => Some(text),
        _ => None,
    });
    let mut texts = texts.peekable();
    texts.peek().is_some() && texts.all(|text| text.starts_with("system:node"))
}

fn reads_status(node: &Node) -> bool {
    node.descendants().any(|node| {
        tree::asking_chain(node)
            .is_some_and(|(root, fields)| matches!(root, "object" | "oldObject") && fields.first() == Some(&"status"))
    })
}
