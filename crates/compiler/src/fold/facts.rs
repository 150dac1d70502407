//! What an expression is known to be without its values: whether it can fail, and its type if it does not.

use std::sync::Arc;

use palisade_cel::ast::{Expr, Literal, Node};

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

/// How a looping macro works.
pub(crate) struct Loop {
    /// The names that it binds.
    pub names: Vec<Arc<str>>,
    /// Whether the last argument is a condition, as those before it are.
    pub only_asks: bool,
}

/// The macro that a member call of this function is; `None` if it does not loop.
pub(crate) fn looping(function: &str, args: &[Node]) -> Option<Loop> {
    let (names, only_asks) = match (function, args.len()) {
        ("all" | "exists" | "exists_one" | "filter", 2) => (1, true),
        ("all" | "exists" | "exists_one" | "existsOne", 3) => (2, true),
        ("map", 2 | 3) => (1, false),
        ("transformList" | "transformMap" | "transformMapEntry", 3 | 4) => (2, false),
        _ => return None,
    };
    let name = |arg: &Node| match &arg.expr {
        Expr::Ident(name) => Some(Arc::clone(name)),
        _ => None,
    };
    let names = args[..names].iter().map(name).collect::<Option<_>>()?;
    Some(Loop { names, only_asks })
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

fn mentions(node: &Node, name: &str) -> bool {
    let any = |nodes: &[Node]| nodes.iter().any(|one| mentions(one, name));
    match &node.expr {
        Expr::Ident(found) => &**found == name,
        Expr::Literal(_) => false,
        Expr::Select { operand, .. } => mentions(operand, name),
        Expr::Call { target, args, .. } => target.as_ref().is_some_and(|target| mentions(target, name)) || any(args),
        Expr::List { elements, .. } => any(elements),
        Expr::Map(_) | Expr::Struct { .. } | Expr::Comprehension(_) => true,
    }
}

/// The expression with a constant in the place of a name.
pub(super) fn replace(node: Node, name: &str, constant: &Node) -> Node {
    let Node { id, expr } = node;
    let each = |nodes: Vec<Node>| nodes.into_iter().map(|one| replace(one, name, constant)).collect();
    let expr = match expr {
        Expr::Ident(found) if &*found == name => return constant.clone(),
        Expr::Select { operand, field, test } => {
            Expr::Select { operand: Box::new(replace(*operand, name, constant)), field, test }
        }
        Expr::Call { function, target, args } => {
            // A name that is bound again hides this one.
            let bound = target.is_some()
                && args.iter().rev().skip(1).any(|arg| matches!(&arg.expr, Expr::Ident(found) if &**found == name));
            let target = target.map(|target| Box::new(replace(*target, name, constant)));
            let args = if bound { args } else { each(args) };
            Expr::Call { function, target, args }
        }
        Expr::List { elements, optional } => Expr::List { elements: each(elements), optional },
        Expr::Map(mut entries) => {
            for entry in &mut entries {
                entry.key = replace(entry.key.clone(), name, constant);
                entry.value = replace(entry.value.clone(), name, constant);
            }
            Expr::Map(entries)
        }
        Expr::Struct { name: of, mut fields } => {
            for field in &mut fields {
                field.value = replace(field.value.clone(), name, constant);
            }
            Expr::Struct { name: of, fields }
        }
        expr => expr,
    };
    Node { id, expr }
}
