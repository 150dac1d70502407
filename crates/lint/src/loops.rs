//! Comprehensions over list literals, as the expressions that they compute.

use std::sync::Arc;

use palisade_cel::ast::{Comprehension, Entry, Expr, FieldInit, Node};

use crate::tree;

/// The most nodes that an unrolled loop may have.
const MOST_NODES: usize = 2_000;

/// The expression that a comprehension computes, if its range is a list literal and the expression stays small.
///
/// The condition of a comprehension only ends a loop early, after which no step changes the result.
pub(crate) fn unrolled(of: &Comprehension, range: &Node) -> Option<Node> {
    let Expr::List { elements, optional } = &range.expr else { return None };
    if !optional.is_empty() || of.second.is_some() {
        return None;
    }
    let mut result = of.init.clone();
    for element in elements {
        let step = replaced(&of.step, &of.variable, element)?;
        result = replaced(&step, &of.accumulator, &result)?;
        if tree::nodes(&result).len() > MOST_NODES {
            return None;
        }
    }
    replaced(&of.result, &of.accumulator, &result)
}

/// A tree in which a variable is replaced. None if a loop in it binds a name that the replacement reads.
fn replaced(root: &Node, name: &Arc<str>, by: &Node) -> Option<Node> {
    let one = |node: &Node| replaced(node, name, by);
    let boxed = |node: &Node| one(node).map(Box::new);
    let all = |nodes: &[Node]| nodes.iter().map(one).collect::<Option<Vec<_>>>();
    let expr = match &root.expr {
        Expr::Ident(ident) if ident == name => return Some(by.clone()),
        Expr::Literal(_) | Expr::Ident(_) => root.expr.clone(),
        Expr::Select { operand, field, test } => {
            Expr::Select { operand: boxed(operand)?, field: Arc::clone(field), test: *test }
        }
        Expr::Call { function, target, args } => {
            let target = match target {
                Some(target) => Some(boxed(target)?),
                None => None,
            };
            Expr::Call { function: Arc::clone(function), target, args: all(args)? }
        }
        Expr::List { elements, optional } => Expr::List { elements: all(elements)?, optional: optional.clone() },
        Expr::Map(entries) => {
            let entry = |of: &Entry| Some(Entry { key: one(&of.key)?, value: one(&of.value)?, ..of.clone() });
            Expr::Map(entries.iter().map(entry).collect::<Option<_>>()?)
        }
        Expr::Struct { name: of, fields } => {
            let field = |of: &FieldInit| Some(FieldInit { value: one(&of.value)?, ..of.clone() });
            Expr::Struct { name: Arc::clone(of), fields: fields.iter().map(field).collect::<Option<_>>()? }
        }
        Expr::Comprehension(of) => {
            let bound = [Some(&of.variable), of.second.as_ref(), Some(&of.accumulator)];
            let is_bound = |name: &Arc<str>| bound.into_iter().flatten().any(|one| one == name);
            let mut inner = Comprehension { range: one(&of.range)?, init: one(&of.init)?, ..(**of).clone() };
            if !is_bound(name) {
                if reads_any(by, is_bound) {
                    return None;
                }
                inner.condition = one(&of.condition)?;
                inner.step = one(&of.step)?;
                inner.result = one(&of.result)?;
            }
            Expr::Comprehension(Box::new(inner))
        }
    };
    Some(Node { id: root.id, expr })
}

/// Whether a tree reads any of some names.
pub(crate) fn reads_any(root: &Node, of: impl Fn(&Arc<str>) -> bool) -> bool {
    tree::nodes(root).into_iter().any(|node| matches!(&node.expr, Expr::Ident(name) if of(name)))
}
