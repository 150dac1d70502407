//! Syntax trees of expressions.

use palisade_cel::ast::{Expr, Literal, Node};
use serde_json::Value as Json;

/// The field that a node reads, or whose presence it checks: `a.x`, `a['x']`, `a.?x`, `has(a.x)`.
pub(crate) fn field(node: &Node) -> Option<&str> {
    match &node.expr {
        Expr::Select { field, .. } => Some(field),
        Expr::Call { function, args, .. } if matches!(&**function, "_[_]" | "_?._" | "_[?_]") => match args.get(1) {
            Some(Node { expr: Expr::Literal(Literal::String(text)), .. }) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

/// The object in which a node reads a field, or checks its presence.
pub(crate) fn operand(node: &Node) -> Option<&Node> {
    match &node.expr {
        Expr::Select { operand, .. } => Some(operand),
        Expr::Call { function, args, .. } if matches!(&**function, "_[_]" | "_?._" | "_[?_]") => args.first(),
        _ => None,
    }
}

/// The variable that a node begins with, and the fields that it reads without checking their presence:
/// `object.a['b'].c`.
pub(crate) fn chain(node: &Node) -> Option<(&str, Vec<&str>)> {
    match &node.expr {
        Expr::Ident(name) => Some((name.trim_start_matches('.'), Vec::new())),
        Expr::Select { operand, field, .. } => {
            let (root, mut fields) = chain(operand)?;
            fields.push(field);
            Some((root, fields))
        }
        Expr::Call { function, args, .. } if &**function == "_[_]" => {
            let (root, mut fields) = chain(args.first()?)?;
            fields.push(field(node)?);
            Some((root, fields))
        }
        _ => None,
    }
}

/// As [`chain`], also through checks of presence: `object.?a[?'b'].c`, `has(object.a)`.
pub(crate) fn asking_chain(node: &Node) -> Option<(&str, Vec<&str>)> {
    if let Expr::Ident(name) = &node.expr {
        return Some((name.trim_start_matches('.'), Vec::new()));
    }
    let (root, mut fields) = asking_chain(operand(node)?)?;
    fields.push(field(node)?);
    Some((root, fields))
}

/// The value at a path of the API server, as `spec.validations[0].expression`.
pub(crate) fn value_at<'a>(of: &'a Json, path: &str) -> Option<&'a Json> {
    of.pointer(&format!("/{}", path.replace(['.', '['], "/").replace(']', "")))
}

/// The name of a policy's variable that a node reads: `variables.x`.
pub(crate) fn variable(node: &Node) -> Option<&str> {
    match &node.expr {
        Expr::Select { operand, field, .. } => match &operand.expr {
            Expr::Ident(name) if &**name == "variables" => Some(field),
            _ => None,
        },
        _ => None,
    }
}

/// The value that a node always has, as far as that shows without evaluating anything that may vary.
pub(crate) fn constant(node: &Node) -> Option<bool> {
    let Expr::Call { function, args, .. } = &node.expr else {
        return if let Expr::Literal(Literal::Bool(value)) = &node.expr { Some(*value) } else { None };
    };
    let of = |index: usize| args.get(index).and_then(constant);
    match &**function {
        "!_" => of(0).map(|value| !value),
        "_&&_" | "_||_" => {
            let dominant = &**function == "_||_";
            match (of(0), of(1)) {
                (Some(value), _) | (_, Some(value)) if value == dominant => Some(dominant),
                (Some(_), Some(_)) => Some(!dominant),
                _ if complementary(args.first()?, args.get(1)?) => Some(dominant),
                _ => None,
            }
        }
        "_?_:_" => match of(0) {
            Some(true) => of(1),
            Some(false) => of(2),
            None => of(1).filter(|value| Some(*value) == of(2)),
        },
        "_==_" | "_!=_" => {
            let (a, b) = (args.first()?, args.get(1)?);
            let equal = match (&a.expr, &b.expr) {
                (Expr::Literal(a), Expr::Literal(b)) => a == b,
                _ if a == b => true,
                _ => return None,
            };
            Some(equal == (&**function == "_==_"))
        }
        _ => None,
    }
}

/// Whether one of two nodes is the other's negation.
pub(crate) fn complementary(a: &Node, b: &Node) -> bool {
    let negates = |a: &Node, b: &Node| match &a.expr {
        Expr::Call { function, args, .. } => &**function == "!_" && args.first() == Some(b),
        _ => false,
    };
    negates(a, b) || negates(b, a)
}
