//! Static facts about calls: whether they never fail, and their values for constants.

use palisade_cel::ast::{Expr, Literal, Node};

use crate::tree::{call, literal, truth};

/// Whether a function returns a value for all arguments of its types.
pub(super) fn never_fails(function: &str, args: usize) -> bool {
    match function {
        "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "@in" | "_+_" | "replace" => args == 2,
        "startsWith" | "endsWith" | "contains" | "matches" | "string" | "dyn" | "indexOf" => args == 1,
        "size" | "lowerAscii" | "upperAscii" | "trim" => args == 0,
        _ => false,
    }
}

/// The value, where everything in it is a constant.
pub(super) fn folded(of: Node) -> Node {
    let Expr::Call { function, target, args } = &of.expr else { return of };
    let parts: Vec<_> = target.iter().map(|target| &**target).chain(args).collect();
    let value = match (&**function, parts.as_slice()) {
        ("_==_", [one, other]) if one == other && has_no_call(one) => Some(truth(true)),
        ("@in", [_, Node { expr: Expr::List { elements, .. }, .. }]) if elements.is_empty() => Some(truth(false)),
        ("@in", [one, Node { expr: Expr::List { elements, .. }, .. }])
            if is_constant(one) && elements.iter().all(is_constant) =>
        {
            Some(truth(elements.contains(one)))
        }
        ("_+_", [one, Node { expr: Expr::Literal(Literal::Int(0)), .. }])
        | ("string" | "dyn", [one @ Node { expr: Expr::Literal(Literal::String(_)), .. }]) => Some((*one).clone()),
        (function, [one, other]) => match (&one.expr, &other.expr) {
            (Expr::Literal(one), Expr::Literal(other)) => of_two(function, one, other),
            // The constant goes to the right, where the other comparisons have it.
            (Expr::Literal(_), _) if matches!(function, "_==_" | "_!=_") => {
                Some(call(function, vec![(*other).clone(), (*one).clone()]))
            }
            _ => None,
        },
        ("size", [Node { expr: Expr::Literal(Literal::String(text)), .. }]) => {
            i64::try_from(text.chars().count()).ok().map(literal::int)
        }
        _ => None,
    };
    value.unwrap_or(of)
}

/// Whether evaluating it calls nothing that could fail.
fn has_no_call(of: &Node) -> bool {
    !matches!(of.expr, Expr::Call { .. }) && of.children().all(has_no_call)
}

fn is_constant(of: &Node) -> bool {
    matches!(of.expr, Expr::Literal(Literal::String(_) | Literal::Int(_) | Literal::Bool(_)))
}

fn of_two(function: &str, one: &Literal, other: &Literal) -> Option<Node> {
    match (one, other) {
        (Literal::String(one), Literal::String(other)) => match function {
            "_==_" => Some(truth(one == other)),
            "_!=_" => Some(truth(one != other)),
            "startsWith" => Some(truth(one.starts_with(&**other))),
            "endsWith" => Some(truth(one.ends_with(&**other))),
            "contains" => Some(truth(one.contains(&**other))),
            "_+_" => Some(literal::string(&format!("{one}{other}"))),
            _ => None,
        },
        (Literal::Int(one), Literal::Int(other)) => Some(truth(match function {
            "_==_" => one == other,
            "_!=_" => one != other,
            "_<_" => one < other,
            "_<=_" => one <= other,
            "_>_" => one > other,
            "_>=_" => one >= other,
            _ => return None,
        })),
        (Literal::Bool(one), Literal::Bool(other)) => match function {
            "_==_" => Some(truth(one == other)),
            "_!=_" => Some(truth(one != other)),
            _ => None,
        },
        _ => None,
    }
}
