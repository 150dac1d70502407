//! From expressions to tests: this module evaluates an expression as far as it can without a request, and makes each
//! question that only a request can answer a case.
//!
//! `c.?a.?b.orValue('') != ''` has three cases: `a` is absent, `b` is, or neither. In the first two the value is known;
//! the third reads `c.a.b`, which is surely there. So a test never makes an optional value, and never fails.
//!
//! Where it cannot exclude a failure, or does not understand a part, the test is [`Test::Const`]`(false)`: stricter
//! than the expression, and never weaker.

mod lists;
#[cfg(test)]
mod tests;
mod values;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

use palisade_api::names::Shape;
use palisade_cel::ast::{Entry, Expr, Literal, Node};

use super::{cost, formula::Test};
use crate::tree::{TEMPLATE, call, ident, literal, select};

/// A value as far as it is known.
#[derive(Clone, Debug)]
pub(super) enum Known {
    /// CEL that evaluates without a failure.
    Cel(Node),
    /// An optional without a value.
    Absent,
    /// An optional with one.
    Present(Box<Self>),
    /// A list, not evaluated yet.
    List(Node, Scope),
    /// A map with constant keys.
    Map(Vec<Entry>, Scope),
}

/// The names of the loops around, innermost last.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope(Vec<(Arc<str>, Known)>);

impl Scope {
    /// With one more name.
    pub fn with(&self, name: &Arc<str>, value: Known) -> Self {
        let mut names = self.0.clone();
        names.push((Arc::clone(name), value));
        Self(names)
    }

    fn get(&self, name: &str) -> Option<&Known> {
        self.0.iter().rev().find(|(known, _)| &**known == name).map(|(_, value)| value)
    }
}

/// What a caller makes of a value.
type Then<'k> = &'k mut dyn FnMut(Known) -> Test;

const NEVER: Test = Test::Const(false);

/// How many values one test may look at.
const MOST_VALUES: usize = 200_000;

/// The variable with the parameters.
const PARAMETERS: &str = "params";

/// Makes tests.
pub(super) struct Cases<'a> {
    /// The definitions of the policy's variables.
    pub definitions: &'a BTreeMap<&'a str, Node>,
    /// The paths that are there in every request.
    present: Vec<Node>,
    /// Paths that the fast path does not read: few requests have them. Where they matter, the full expressions judge.
    ignored: Vec<Node>,
    /// Whether there are parameters to read. All that an expression reads of them is assumed to be there.
    pub parameters: bool,
    /// Atoms without which no test holds.
    pub assumed: RefCell<Vec<Node>>,
    /// The longest list that is looped over within another loop.
    within: u64,
    /// The elements of the enclosing loops, and their lists.
    items: RefCell<Vec<(Arc<str>, Node)>>,
    /// How many values it may look at before it gives up.
    left: Cell<usize>,
    /// Whether an expression calls a function that is not understood.
    pub gave_up: Cell<bool>,
}

impl<'a> Cases<'a> {
    /// Of an object that is a pod, or whose pod template a loop names [`TEMPLATE`](crate::tree::TEMPLATE); which of the
    /// fields of the pod's spec are not looked at; the longest list that is looped over within another loop.
    pub fn new(definitions: &'a BTreeMap<&'a str, Node>, shape: Shape, ignored: &[&str], within: u64) -> Self {
        let pod = match shape {
            Shape::Pods => ident("object"),
            Shape::Workloads => ident(TEMPLATE),
        };
        let spec = select(pod.clone(), "spec");
        let mut present = vec![select(spec.clone(), "containers")];
        if shape == Shape::Pods {
            present.extend([select(pod, "metadata"), spec.clone()]);
        }
        Self {
            definitions,
            present,
            ignored: ignored.iter().map(|field| select(spec.clone(), field)).collect(),
            parameters: true,
            assumed: RefCell::default(),
            within,
            items: RefCell::default(),
            left: Cell::new(MOST_VALUES),
            gave_up: Cell::new(false),
        }
    }

    /// A test that holds only where CEL of type bool has this value.
    pub fn holds(&self, of: &Node, wanted: bool, scope: &Scope) -> Test {
        let both = |args: &[Node], and: bool| {
            let tests = args.iter().map(|arg| self.holds(arg, wanted, scope)).collect();
            Test::of(tests, and)
        };
        let Expr::Call { function, target, args } = &of.expr else { return self.is(of, wanted, scope) };
        match (&**function, target, args.as_slice()) {
            ("!_", None, [operand]) => self.holds(operand, !wanted, scope),
            ("_&&_", None, _) => both(args, wanted),
            ("_||_", None, _) => both(args, !wanted),
            ("_?_:_", None, [condition, yes, no]) => {
                self.either(condition, scope, self.holds(yes, wanted, scope), self.holds(no, wanted, scope))
            }
            ("has", None, [Node { expr: Expr::Select { operand, field, .. }, .. }]) => {
                self.value(operand, scope, &mut |of| {
                    self.there(of, field, &mut |found| Test::Const(found.is_some() == wanted))
                })
            }
            ("all" | "exists", Some(list), [Node { expr: Expr::Ident(item), .. }, test]) => {
                let every = (&**function == "all") == wanted;
                self.each(list, scope, every, &mut |element| self.holds(test, wanted, &scope.with(item, element)))
            }
            ("@in", None, [what, list]) => self.member(what, list, wanted, scope),
            (compared, None, [Node { expr: Expr::Call { function, target: Some(list), args }, .. }, to])
                if &**function == "size" && args.is_empty() && self.is_list(list) =>
            {
                match &to.expr {
                    Expr::Literal(Literal::Int(to)) => self.counted(list, compared, *to, wanted, scope),
                    _ => NEVER,
                }
            }
            _ => self.is(of, wanted, scope),
        }
    }

    fn is(&self, of: &Node, wanted: bool, scope: &Scope) -> Test {
        self.value(of, scope, &mut |value| match value {
            Known::Cel(node) if wanted => Test::Is(shorter(node), wanted),
            Known::Cel(node) => Test::Is(node, wanted),
            _ => NEVER,
        })
    }

    /// The first test where a condition holds, the second where it does not.
    fn either(&self, condition: &Node, scope: &Scope, yes: Test, no: Test) -> Test {
        if yes == no {
            return yes;
        }
        let (holds, fails) = (self.holds(condition, true, scope), self.holds(condition, false, scope));
        match (holds, fails) {
            (Test::Is(node, true), _) => Test::If(Box::new((node, yes, no))),
            (Test::Is(node, false), _) => Test::If(Box::new((node, no, yes))),
            (Test::Const(true), _) => yes,
            (_, Test::Const(true)) => no,
            (holds, fails) => Test::Any(vec![Test::All(vec![holds, yes]), Test::All(vec![fails, no])]),
        }
    }
}

/// A bound on the size of a text that is above what a test reads becomes that. Lists have lower bounds.
fn shorter(atom: Node) -> Node {
    let most = i64::try_from(cost::TEXT).unwrap_or(i64::MAX);
    let Expr::Call { function, target: None, args } = &atom.expr else { return atom };
    let ("_<=_", [size, Node { expr: Expr::Literal(Literal::Int(bound)), .. }]) = (&**function, args.as_slice()) else {
        return atom;
    };
    let is_size = matches!(&size.expr, Expr::Call { function, args, .. } if &**function == "size" && args.is_empty());
    if is_size && *bound > 2 * most { call("_<=_", vec![size.clone(), literal::int(most)]) } else { atom }
}

/// The variable that a path begins with.
fn root(path: &Node) -> Option<&str> {
    match &path.expr {
        Expr::Ident(name) => Some(name),
        Expr::Select { operand, .. } => root(operand),
        Expr::Call { function, target: None, args } if &**function == "_[_]" => root(args.first()?),
        _ => None,
    }
}
