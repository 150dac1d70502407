//! A binding without the parameters that the policy reads.

use palisade_cel::ast::{Expr, Literal, Node};
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, tree};

pub(super) static RULE: Rule = Rule {
    id: "params-not-bound",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A binding without the parameters that the policy reads",
    why: "\
The policy has a `paramKind` and reads `params`, but the binding has no `paramRef`. Then `params` is null, and each
expression that reads one of its fields fails. A policy that compares `params` with null is not reported, because it handles
such bindings.",
    bad: include_str!("params_not_bound.bad.yaml"),
    good: include_str!("params_not_bound.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for binding in &cluster.bindings {
        let Some(policy) = cluster.policy_of(binding) else { continue };
        let reads = policy
            .nodes()
            .any(|(_, node)| tree::chain(node).is_some_and(|(root, fields)| root == "params" && !fields.is_empty()));
        let asks = policy.nodes().any(|(_, node)| compares_with_null(node));
        if policy.param_kind().is_some() && reads && !asks && !binding.json["spec"]["paramRef"].is_object() {
            let message = format!("{} reads params, which is null without a paramRef", policy.item.label());
            found.add(binding, "spec.policyName", message);
        }
    }
}

/// Whether a node is `params == null` or `params != null`.
fn compares_with_null(node: &Node) -> bool {
    let Expr::Call { function, args, .. } = &node.expr else { return false };
    let is_params = |node: &Node| matches!(&node.expr, Expr::Ident(name) if &**name == "params");
    let is_null = |node: &Node| matches!(&node.expr, Expr::Literal(Literal::Null));
    matches!(&**function, "_==_" | "_!=_") && args.iter().any(is_params) && args.iter().any(is_null)
}
