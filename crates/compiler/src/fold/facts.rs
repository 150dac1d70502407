//! Static facts about an expression: whether it can fail, and its type if it does not.

use std::sync::Arc;

use palisade_cel::ast::{Expr, Literal, Node};

use crate::tree::{looping, mentions};

/// The names that loops around an expression bind, innermost last.
#[derive(Debug, Default)]
pub(super) struct Scope(Vec<Arc<str>>);

impl Scope {
    pub fn enter(&mut self, names: &[Arc<str>]) {
        self.0.extend(names.iter().cloned());
    }

    pub fn leave(&mut self, names: usize) {
        self.0.truncate(self.0.len().saturating_sub(names));
    }

    /// Whether an expression has a value, whatever the values of others are. All else may fail, a variable of the
    /// policy as well: it is evaluated where it is used.
    pub fn never_fails(&self, node: &Node) -> bool {
        match &node.expr {
            Expr::Literal(_) => true,
            Expr::Ident(name) => self.0.contains(name),
            Expr::List { elements, optional } => {
                optional.is_empty() && elements.iter().all(|element| self.never_fails(element))
            }
            _ => false,
        }
    }
}

/// Whether an expression is a bool wherever it does not fail.
pub(super) fn is_bool(node: &Node) -> bool {
    match &node.expr {
        Expr::Literal(Literal::Bool(_)) => true,
        Expr::Select { test, .. } => *test,
        Expr::Call { function, target, args } => match (&**function, target, args.as_slice()) {
            ("_?_:_", None, [_, yes, no]) => is_bool(yes) && is_bool(no),
            ("!_" | "_&&_" | "_||_" | "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "@in" | "has", None, _)
            | ("startsWith" | "endsWith" | "contains" | "matches" | "hasValue", Some(_), _) => true,
            ("all" | "exists" | "exists_one" | "existsOne", Some(_), args) => looping(function, args).is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// Whether an expression is a list wherever it does not fail.
pub(super) fn is_list(node: &Node) -> bool {
    match &node.expr {
        Expr::List { .. } => true,
        Expr::Call { function, target, args } => match (&**function, target, args.as_slice()) {
            ("_?_:_", None, [_, yes, no]) => is_list(yes) && is_list(no),
            // Nothing but a list can be added to a list.
            ("_+_", None, [left, right]) => is_list(left) || is_list(right),
            ("map" | "filter" | "transformList", Some(_), args) => looping(function, args).is_some(),
            _ => false,
        },
        _ => false,
    }
}

/// Whether a name is only compared with something that is not constant. Then a constant in its place makes no constant
/// expression, which the API server would evaluate, and which might fail, in advance.
pub(super) fn only_compared(node: &Node, name: &str) -> bool {
    let is_name = |of: &Node| matches!(&of.expr, Expr::Ident(found) if &**found == name);
    let other = |of: &Node| !matches!(of.expr, Expr::Literal(_)) && !mentions(of, name);
    match &node.expr {
        Expr::Call { function, target, args } => match (&**function, target, args.as_slice()) {
            ("_&&_" | "_||_" | "!_", None, args) => args.iter().all(|arg| only_compared(arg, name)),
            ("_==_" | "_!=_", None, [one, two]) if is_name(one) || is_name(two) => other(one) || other(two),
            ("@in", None, [one, list]) if is_name(one) => other(list),
            ("startsWith" | "endsWith" | "contains", Some(text), [one]) if is_name(one) => other(text),
            _ => !mentions(node, name),
        },
        _ => !mentions(node, name),
    }
}
