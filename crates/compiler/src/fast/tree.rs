//! Small parts of syntax trees: built, read and changed.

use std::sync::Arc;

use palisade_cel::ast::{Expr, Literal, Node, NodeId};

use crate::fold::looping;

/// What the pod template of a workload is called.
pub(super) const TEMPLATE: &str = "template";

pub(super) fn node(expr: Expr) -> Node {
    // It is only printed, so no place refers to it.
    Node { id: NodeId(0), expr }
}

pub(super) fn call(function: &str, args: Vec<Node>) -> Node {
    node(Expr::Call { function: function.into(), target: None, args })
}

pub(super) fn truth(value: bool) -> Node {
    node(Expr::Literal(Literal::Bool(value)))
}

pub(super) fn ident(name: &str) -> Node {
    node(Expr::Ident(name.into()))
}

pub(super) fn select(operand: Node, field: &str) -> Node {
    node(Expr::Select { operand: Box::new(operand), field: field.into(), test: false })
}

/// Literal nodes.
pub(super) mod literal {
    use super::{Expr, Literal, Node, node};

    pub fn list(elements: Vec<Node>) -> Node {
        node(Expr::List { elements, optional: Vec::new() })
    }

    pub fn int(value: i64) -> Node {
        node(Expr::Literal(Literal::Int(value)))
    }

    pub fn string(text: &str) -> Node {
        node(Expr::Literal(Literal::String(text.into())))
    }
}

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
    let opposite = |function: &str| match function {
        "_==_" => Some("_!=_"),
        "_!=_" => Some("_==_"),
        _ => None,
    };
    match of.expr {
        Expr::Call { function, target: None, args } if opposite(&function).is_some() => {
            call(opposite(&function).unwrap_or_default(), args)
        }
        expr => call("!_", vec![node(expr)]),
    }
}

/// For an atom that compares something with constants: what it compares, and the constants.
pub(super) fn equal_parts(of: &Node) -> Option<(Node, Vec<Node>)> {
    let constant = |node: &Node| matches!(node.expr, Expr::Literal(Literal::String(_) | Literal::Int(_)));
    let Expr::Call { function, target: None, args } = &of.expr else { return None };
    match (&**function, args.as_slice()) {
        ("_==_", [what, value]) if constant(value) && !constant(what) => Some((what.clone(), vec![value.clone()])),
        ("@in", [what, Node { expr: Expr::List { elements, optional }, .. }])
            if optional.is_empty() && !elements.is_empty() && elements.iter().all(constant) =>
        {
            Some((what.clone(), elements.clone()))
        }
        _ => None,
    }
}

/// The parts of a node, one level down.
pub(super) fn parts(of: &Node) -> Vec<&Node> {
    match &of.expr {
        Expr::Ident(_) | Expr::Literal(_) | Expr::Comprehension(_) => vec![],
        Expr::Select { operand, .. } => vec![operand],
        Expr::Call { target, args, .. } => target.iter().map(|target| &**target).chain(args).collect(),
        Expr::List { elements, .. } => elements.iter().collect(),
        Expr::Map(entries) => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
        Expr::Struct { fields, .. } => fields.iter().map(|field| &field.value).collect(),
    }
}

/// The same node with each part changed.
fn map_parts(of: Node, change: &mut dyn FnMut(Node) -> Node) -> Node {
    let expr = match of.expr {
        Expr::Select { operand, field, test } => Expr::Select { operand: Box::new(change(*operand)), field, test },
        Expr::Call { function, target, args } => Expr::Call {
            function,
            target: target.map(|target| Box::new(change(*target))),
            args: args.into_iter().map(&mut *change).collect(),
        },
        Expr::List { elements, optional } => {
            Expr::List { elements: elements.into_iter().map(&mut *change).collect(), optional }
        }
        Expr::Map(mut entries) => {
            for entry in &mut entries {
                entry.key = change(entry.key.clone());
                entry.value = change(entry.value.clone());
            }
            Expr::Map(entries)
        }
        Expr::Struct { name, mut fields } => {
            for field in &mut fields {
                field.value = change(field.value.clone());
            }
            Expr::Struct { name, fields }
        }
        expr @ (Expr::Ident(_) | Expr::Literal(_) | Expr::Comprehension(_)) => expr,
    };
    Node { id: of.id, expr }
}

/// How many nodes there are; a loop counts more.
pub(super) fn weight(of: &Node) -> usize {
    1 + parts(of).into_iter().map(weight).sum::<usize>()
}

/// Whether a name is in it.
pub(super) fn mentions(of: &Node, name: &str) -> bool {
    match &of.expr {
        Expr::Ident(found) => &**found == name,
        Expr::Comprehension(_) => true,
        _ => parts(of).into_iter().any(|part| mentions(part, name)),
    }
}

/// The same with another name in place of one.
pub(super) fn rename(of: Node, from: &str, to: &Arc<str>) -> Node {
    match &of.expr {
        Expr::Ident(found) if &**found == from => Node { id: of.id, expr: Expr::Ident(Arc::clone(to)) },
        _ => map_parts(of, &mut |part| rename(part, from, to)),
    }
}

/// The field of `variables.field`.
pub(super) fn variable(of: &Node) -> Option<&Arc<str>> {
    match &of.expr {
        Expr::Select { operand, field, test: false } if matches!(&operand.expr, Expr::Ident(name) if &**name == "variables") => {
            Some(field)
        }
        _ => None,
    }
}

/// The policy's variables that are in it.
pub(super) fn variables(of: &Node) -> Vec<Arc<str>> {
    match variable(of) {
        Some(name) => vec![Arc::clone(name)],
        None => parts(of).into_iter().flat_map(variables).collect(),
    }
}

/// The expression with the definitions of the policy's variables in their place; `None` if one has no definition here.
pub(super) fn inlined(of: Node, definition: &dyn Fn(&str) -> Option<Node>) -> Option<Node> {
    if let Some(name) = variable(&of) {
        return inlined(definition(name)?, definition);
    }
    // A loop whose element hides what a meaning is made of.
    if let Expr::Call { function, target: Some(_), args } = &of.expr
        && let Some(found) = looping(function, args)
        && found
            .names
            .iter()
            .any(|name| matches!(&**name, "object" | "oldObject" | "request" | "params" | "variables" | TEMPLATE))
    {
        return None;
    }
    let mut complete = true;
    let whole = map_parts(of, &mut |part| {
        inlined(part, definition).unwrap_or_else(|| {
            complete = false;
            truth(false)
        })
    });
    complete.then_some(whole)
}
