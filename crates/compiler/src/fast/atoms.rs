//! Atoms of tests: what they ask of a request, and how they read.

use palisade_cel::ast::{Expr, Literal, Node};

use crate::tree::{call, literal, node};

/// `list.size()`.
pub(super) fn size(list: Node) -> Node {
    node(Expr::Call { function: "size".into(), target: Some(Box::new(list)), args: Vec::new() })
}

/// `list.size() == 0`.
pub(super) fn is_empty(list: Node) -> Node {
    call("_==_", vec![size(list), literal::int(0)])
}

/// `has(operand.field)`, of `operand.field`.
pub(super) fn presence(of: Node) -> Node {
    call("has", vec![of])
}

/// Whether an atom says that something is there: `has(a.b)`, `k in a`.
pub(super) fn is_presence(of: &Node) -> bool {
    match &of.expr {
        Expr::Call { function, target: None, args } => match (&**function, args.as_slice()) {
            ("has", [_]) => true,
            ("@in", [_, of]) => !matches!(of.expr, Expr::List { .. }),
            _ => false,
        },
        _ => false,
    }
}

/// The opposite of an atom.
pub(super) fn negated(of: Node) -> Node {
    match of.expr {
        Expr::Call { function, target: None, args } if &*function == "_==_" => call("_!=_", args),
        expr => call("!_", vec![node(expr)]),
    }
}

/// For an atom that compares something with constants: what it compares, and the constants.
pub(super) fn equal_parts(of: &Node) -> Option<(Node, Vec<Node>)> {
    let constant = |node: &Node| matches!(node.expr, Expr::Literal(Literal::String(_) | Literal::Int(_)));
    let Expr::Call { function, target: None, args } = &of.expr else { return None };
    match (&**function, args.as_slice()) {
        ("_==_", [what, value]) if constant(value) => Some((what.clone(), vec![value.clone()])),
        ("@in", [what, Node { expr: Expr::List { elements, optional }, .. }])
            if optional.is_empty() && !elements.is_empty() && elements.iter().all(constant) =>
        {
            Some((what.clone(), elements.clone()))
        }
        _ => None,
    }
}

/// How many nodes there are; a loop counts more.
pub(super) fn weight(of: &Node) -> usize {
    1 + of.children().map(weight).sum::<usize>()
}
