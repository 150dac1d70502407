//! Comprehensions over list literals, as the expressions that they compute.

use std::sync::Arc;

use palisade_cel::ast::{Comprehension, Expr, Node};

/// Maximum number of nodes of an unrolled loop.
const MAX_NODES: usize = 2_000;

/// The expression that a comprehension computes, if its range is a list literal and the expression stays small.
///
/// The condition of a comprehension only ends a loop early, after which no step changes the result.
pub(crate) fn unrolled(of: &Comprehension) -> Option<Node> {
    let Expr::List { elements, optional } = &of.range.expr else { return None };
    if !optional.is_empty() || of.second.is_some() {
        return None;
    }
    let mut result = of.init.clone();
    for element in elements {
        let mut step = of.step.clone();
        replace(&mut step, &of.variable, element)?;
        replace(&mut step, &of.accumulator, &result)?;
        result = step;
        if result.descendants().count() > MAX_NODES {
            return None;
        }
    }
    let mut whole = of.result.clone();
    replace(&mut whole, &of.accumulator, &result)?;
    Some(whole)
}

/// Replaces a variable in a tree. None if a loop in it binds a name that the replacement reads.
fn replace(root: &mut Node, name: &Arc<str>, by: &Node) -> Option<()> {
    match &mut root.expr {
        Expr::Ident(ident) if ident == name => *root = by.clone(),
        Expr::Comprehension(of) => {
            let of = &mut **of;
            replace(&mut of.range, name, by)?;
            replace(&mut of.init, name, by)?;
            let bound = [Some(&of.variable), of.second.as_ref(), Some(&of.accumulator)];
            let is_bound = |name: &Arc<str>| bound.into_iter().flatten().any(|one| one == name);
            if !is_bound(name) {
                if reads_any(by, is_bound) {
                    return None;
                }
                for part in [&mut of.condition, &mut of.step, &mut of.result] {
                    replace(part, name, by)?;
                }
            }
        }
        _ => return root.children_mut().try_for_each(|child| replace(child, name, by)),
    }
    Some(())
}

/// Whether a tree reads any of some names.
pub(crate) fn reads_any(root: &Node, of: impl Fn(&Arc<str>) -> bool) -> bool {
    root.descendants().any(|node| matches!(&node.expr, Expr::Ident(name) if of(name)))
}
