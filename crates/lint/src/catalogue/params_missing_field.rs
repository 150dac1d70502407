//! Parameters without a field that the policy reads.

use std::collections::BTreeSet;

use palisade_cel::ast::{Expr, Node};
use palisade_manifest::Severity;
use serde_json::Value as Json;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Policy, tree};

pub(super) static RULE: Rule = Rule {
    id: "params-missing-field",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "Parameters without a field that the policy reads",
    why: "\
An expression reads a field that these parameters do not have, without a check by `has()` or `.?`. For each request with
these parameters it fails with `no such key`.",
    bad: include_str!("params_missing_field.bad.yaml"),
    good: include_str!("params_missing_field.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for ((api_version, kind), policies) in cluster.param_kinds() {
        for params in cluster.others.iter().filter(|one| one.kind == kind && one.api_version() == api_version) {
            let mut seen = BTreeSet::new();
            for policy in policies.iter().filter(|policy| is_bound(cluster, policy, params.name())) {
                for (path, expression) in missing(policy, &params.json) {
                    if seen.insert(path.clone()) {
                        let message = format!("has no {path}, which {} of {} reads", expression, policy.item.label());
                        found.add(params, &path, message);
                    }
                }
            }
        }
    }
}

/// Whether a policy may read parameters of that name.
fn is_bound(cluster: &Cluster<'_>, policy: &Policy<'_>, name: &str) -> bool {
    cluster.bindings_of(policy).any(|binding| {
        let param_ref = &binding.json["spec"]["paramRef"];
        param_ref["name"] == *name || param_ref["selector"].is_object()
    })
}

/// The fields that expressions read without a presence check and that the parameters do not have, with the path of the
/// expression.
fn missing<'p>(policy: &'p Policy<'_>, params: &Json) -> Vec<(String, &'p str)> {
    let asked: BTreeSet<String> = policy
        .nodes()
        .filter(|(_, node)| matches!(&node.expr, Expr::Select { test: true, .. }))
        .filter_map(|(_, node)| path(node))
        .collect();
    let mut found = Vec::new();
    for (expression, node) in policy.nodes() {
        if matches!(&node.expr, Expr::Select { test: true, .. }) {
            continue;
        }
        let Some(("params", fields)) = tree::chain(node) else { continue };
        let mut value = params;
        let mut at = String::new();
        for field in fields {
            if !at.is_empty() {
                at.push('.');
            }
            at.push_str(field);
            match value.get(field) {
                Some(inner) => value = inner,
                None if !value.is_object() || asked.contains(&at) => break,
                None => {
                    found.push((at, expression.path.as_str()));
                    break;
                }
            }
        }
    }
    found
}

/// The path of fields that a node reads from `params`.
fn path(node: &Node) -> Option<String> {
    match tree::chain(node)? {
        ("params", fields) => Some(fields.join(".")),
        _ => None,
    }
}
