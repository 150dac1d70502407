//! The fields that an expression certainly reads.

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::ast::{Expr, Node, NodeId};

use crate::{
    policy::{Expression, Policy, Role},
    tree,
};

/// The places that a policy evaluates for every request that meets its match conditions, and where a failure makes it
/// deny or fail: the path of an expression, and the number of a node in it.
pub(crate) fn certain<'p>(policy: &'p Policy<'_>) -> BTreeSet<(&'p str, NodeId)> {
    let variables: BTreeMap<&str, &'p Expression> = policy
        .expressions
        .iter()
        .filter_map(|expression| match &expression.role {
            Role::Variable(name) => Some((name.as_str(), expression)),
            _ => None,
        })
        .collect();
    let mut found = BTreeSet::new();
    let mut open: Vec<(&Expression, &Node)> = Vec::new();
    for expression in &policy.expressions {
        match expression.role {
            // Whichever side of && fails or is false, the request is denied.
            Role::Validation => open.extend(conjuncts(&expression.ast.root).into_iter().map(|node| (expression, node))),
            Role::Condition => open.push((expression, &expression.ast.root)),
            _ => {}
        }
    }
    let mut read = BTreeSet::new();
    while let Some((expression, node)) = open.pop() {
        found.insert((expression.path.as_str(), node.id));
        if let Some(name) = tree::variable(node).filter(|name| read.insert(*name))
            && let Some(variable) = variables.get(name)
        {
            open.push((variable, &variable.ast.root));
        }
        open.extend(evaluated(node).into_iter().map(|part| (expression, part)));
    }
    found
}

/// The parts of a conjunction.
pub(crate) fn conjuncts(node: &Node) -> Vec<&Node> {
    match &node.expr {
        Expr::Call { function, args, .. } if &**function == "_&&_" => args.iter().flat_map(conjuncts).collect(),
        _ => vec![node],
    }
}

/// The parts of a node that are evaluated whenever it is, and whose failure makes it fail.
fn evaluated(node: &Node) -> Vec<&Node> {
    match &node.expr {
        Expr::Call { function, target, args } => match &**function {
            // One side may decide alone, even if the other fails.
            "_&&_" | "_||_" => vec![],
            "_?_:_" => args.iter().take(1).collect(),
            "or" | "orValue" | "optMap" | "optFlatMap" => target.as_deref().into_iter().collect(),
            _ => node.children().collect(),
        },
        Expr::Comprehension(of) => vec![&of.range, &of.init, &of.result],
        _ => node.children().collect(),
    }
}

/// Whether a node reads a field without a check of its presence.
pub(crate) fn demands(node: &Node) -> bool {
    match &node.expr {
        Expr::Select { operand, test: false, .. } => !is_optional(operand),
        _ => false,
    }
}

/// Whether the form of a node shows that it is an optional.
fn is_optional(node: &Node) -> bool {
    match &node.expr {
        Expr::Select { operand, .. } => is_optional(operand),
        Expr::Call { function, args, .. } => match &**function {
            "_?._" | "_[?_]" => true,
            "_[_]" => args.first().is_some_and(is_optional),
            _ => false,
        },
        _ => false,
    }
}
