//! Tests of a request: conjunctions, disjunctions and loops over atoms of CEL.
//!
//! A test evaluates an atom only behind the tests that ensure that it does not fail: tests of presence come first, the
//! shortest path first, and loops come last.

use std::sync::Arc;

use palisade_cel::ast::{Expr, Node};

use super::{
    atoms::{negated, weight},
    cost,
};
use crate::tree::{self, balance, call, ident, mentions, replace, truth, unused};

/// The names of types, of which expressions ask with `type(...)`.
const TYPES: [&str; 9] = ["bool", "int", "uint", "double", "string", "bytes", "map", "null_type", "type"];

/// A test of a request.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    /// Always this.
    Const(bool),
    /// CEL of type bool has this value.
    Is(Node, bool),
    /// The first test where CEL of type bool is true, the second where it is false.
    If(Box<(Node, Self, Self)>),
    /// All of them hold.
    All(Vec<Self>),
    /// One of them holds.
    Any(Vec<Self>),
    /// A loop.
    Each(Box<Each>),
}

/// A loop over a list, or over the keys of a map.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Each {
    /// Whether all elements must meet the test; otherwise one must.
    pub every: bool,
    /// The list that it loops over.
    pub list: Node,
    /// The most elements that it has.
    pub most: u64,
    /// The name of an element.
    pub item: Arc<str>,
    /// The test of an element.
    pub body: Test,
}

impl Test {
    /// All of them (`and`), or any.
    pub fn of(tests: Vec<Self>, and: bool) -> Self {
        if and { Self::All(tests) } else { Self::Any(tests) }
    }

    /// As CEL of type bool.
    pub fn node(self) -> Node {
        match self {
            Self::Const(value) => truth(value),
            Self::Is(node, true) => node,
            Self::Is(node, false) => negated(node),
            Self::If(parts) => {
                let (condition, yes, no) = *parts;
                call("_?_:_", vec![condition, yes.node(), no.node()])
            }
            Self::All(tests) => chain("_&&_", tests),
            Self::Any(tests) => chain("_||_", tests),
            Self::Each(each) => {
                let Each { every, list, item, body, .. } = *each;
                let function = if every { "all" } else { "exists" };
                let args = vec![ident(&item), body.node()];
                tree::node(Expr::Call { function: function.into(), target: Some(Box::new(list)), args })
            }
        }
    }

    /// The most that it may cost, in the API server's units.
    pub fn cost(&self) -> u64 {
        let sum = |tests: &[Self]| tests.iter().fold(0_u64, |sum, test| sum.saturating_add(test.cost()));
        match self {
            Self::Const(_) => 1,
            Self::Is(node, _) => cost::of(node),
            Self::If(parts) => cost::of(&parts.0).saturating_add(parts.1.cost().max(parts.2.cost())),
            Self::All(tests) | Self::Any(tests) => sum(tests),
            Self::Each(each) => {
                let one = each.body.cost().saturating_add(cost::ITERATION);
                cost::of(&each.list).saturating_add(each.most.saturating_mul(one))
            }
        }
    }

    /// A test that holds where this one does not.
    pub fn opposite(self) -> Self {
        let each = |tests: Vec<Self>| tests.into_iter().map(Self::opposite).collect();
        match self {
            Self::Const(value) => Self::Const(!value),
            Self::Is(node, wanted) => Self::Is(node, !wanted),
            Self::If(parts) => {
                let (condition, yes, no) = *parts;
                Self::If(Box::new((condition, yes.opposite(), no.opposite())))
            }
            Self::All(tests) => Self::Any(each(tests)),
            Self::Any(tests) => Self::All(each(tests)),
            Self::Each(of) => Self::Each(Box::new(Each { every: !of.every, body: of.body.opposite(), ..*of })),
        }
    }

    /// Whether the other one is the [`opposite`](Self::opposite) of this one.
    pub fn is_opposite(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Const(one), Self::Const(other)) => one != other,
            (Self::Is(one, wanted), Self::Is(other, of_other)) => wanted != of_other && one == other,
            (Self::If(one), Self::If(other)) => {
                one.0 == other.0 && one.1.is_opposite(&other.1) && one.2.is_opposite(&other.2)
            }
            (Self::All(one), Self::Any(other)) | (Self::Any(one), Self::All(other)) => {
                one.len() == other.len() && one.iter().zip(other).all(|(one, other)| one.is_opposite(other))
            }
            (Self::Each(one), Self::Each(other)) => {
                one.every != other.every
                    && one.most == other.most
                    && one.item == other.item
                    && one.list == other.list
                    && one.body.is_opposite(&other.body)
            }
            _ => false,
        }
    }

    /// The number of nodes to evaluate.
    pub fn weight(&self) -> usize {
        match self {
            Self::Const(_) => 0,
            Self::Is(node, _) => weight(node),
            Self::If(parts) => weight(&parts.0).saturating_add(parts.1.weight().max(parts.2.weight())),
            Self::All(tests) | Self::Any(tests) => tests.iter().map(Self::weight).fold(0, usize::saturating_add),
            Self::Each(each) => each.body.weight().saturating_mul(4).saturating_add(100),
        }
    }

    /// Whether a name is in it.
    pub fn mentions(&self, name: &str) -> bool {
        match self {
            Self::Const(_) => false,
            Self::Is(node, _) => mentions(node, name),
            Self::If(parts) => mentions(&parts.0, name) || parts.1.mentions(name) || parts.2.mentions(name),
            Self::All(tests) | Self::Any(tests) => tests.iter().any(|test| test.mentions(name)),
            Self::Each(each) => mentions(&each.list, name) || each.body.mentions(name),
        }
    }

    /// The same with another name in place of one. The names of loops in it that would bind the other name are changed.
    pub fn renamed(self, from: &str, to: &Arc<str>) -> Self {
        let each = |tests: Vec<Self>| tests.into_iter().map(|test| test.renamed(from, to)).collect();
        match self {
            Self::Const(value) => Self::Const(value),
            Self::Is(node, wanted) => Self::Is(replace(node, from, &ident(to)), wanted),
            Self::If(parts) => {
                let (condition, yes, no) = *parts;
                Self::If(Box::new((replace(condition, from, &ident(to)), yes.renamed(from, to), no.renamed(from, to))))
            }
            Self::All(tests) => Self::All(each(tests)),
            Self::Any(tests) => Self::Any(each(tests)),
            Self::Each(of) => {
                let Each { every, list, most, mut item, mut body } = *of;
                let list = replace(list, from, &ident(to));
                // A loop's own name is another one.
                if &*item != from && body.mentions(from) {
                    if item == *to {
                        let fresh = unused(&item, &|name| name == &**to || body.mentions(name));
                        body = body.renamed(&item, &fresh);
                        item = fresh;
                    }
                    body = body.renamed(from, to);
                }
                Self::Each(Box::new(Each { every, list, most, item, body }))
            }
        }
    }

    /// Whether each name in it is that of a loop around or one of these, and no loop hides the name of another one.
    pub fn is_closed(&self, names: &mut Vec<Arc<str>>) -> bool {
        let known = |node: &Node, names: &[Arc<str>]| {
            let known =
                |name: &Arc<str>| names.contains(name) || tree::ROOTS.contains(&&**name) || TYPES.contains(&&**name);
            tree::free(node).iter().all(known)
        };
        match self {
            Self::Const(_) => true,
            Self::Is(node, _) => known(node, names),
            Self::If(parts) => known(&parts.0, names) && parts.1.is_closed(names) && parts.2.is_closed(names),
            Self::All(tests) | Self::Any(tests) => tests.iter().all(|test| test.is_closed(names)),
            Self::Each(each) => {
                if names.contains(&each.item) || tree::ROOTS.contains(&&*each.item) || !known(&each.list, names) {
                    return false;
                }
                names.push(Arc::clone(&each.item));
                let closed = each.body.is_closed(names);
                names.pop();
                closed
            }
        }
    }
}

fn chain(function: &str, tests: Vec<Test>) -> Node {
    balance(function, &mut tests.into_iter().map(|test| Some(test.node())).collect::<Vec<_>>())
}
