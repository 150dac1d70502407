//! From expressions to tests: this module evaluates an expression as far as it can without a request, and makes each
//! question that only a request can answer a case.
//!
//! `c.?a.?b.orValue('') != ''` has three cases: `a` is absent, `b` is, or neither. In the first two the value is known;
//! the third reads `c.a.b`, which is certainly there. So a test never makes an optional value, and never fails.
//!
//! Where it cannot exclude a failure, or does not understand a part, the test is [`Test::Const`]`(false)`: stricter
//! than the expression, and never weaker. Because a test may be stricter, the opposite of a test proves nothing: a
//! condition decides between two values only where its two tests are exact opposites ([`Cases::either`]).

mod lists;
mod required;
#[cfg(test)]
mod tests;
mod values;

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

use palisade_api::names::Shape;
use palisade_cel::{
    ast::{Entry, Expr, Literal, Node},
    with_stack,
};

use super::{cost, formula::Test};
use crate::tree::{TEMPLATE, call, ident, literal, looping, select};

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
    /// A value of which nothing is known but that it is there.
    Unknown,
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
type Continuation<'k> = &'k mut dyn FnMut(Known) -> Test;

const NEVER: Test = Test::Const(false);

/// Maximum number of values and conditions that one test evaluates.
const MAX_STEPS: usize = 400_000;
/// Maximum nesting of expressions and their cases.
const MAX_LEVELS: usize = 2_000;
/// Maximum nesting of loops. The time of the simplification grows with each of them.
const MAX_LOOPS: usize = 8;

/// The variable with the parameters.
const PARAMETERS: &str = "params";

/// Makes tests.
pub(super) struct Cases<'a> {
    /// The definitions of the policy's variables.
    pub definitions: &'a BTreeMap<&'a str, Node>,
    /// The pod's spec.
    spec: Node,
    /// The paths that are there in every request.
    present: Vec<Node>,
    /// Paths that the fast path does not read: few requests have them. Where they matter, the full expressions
    /// evaluate.
    ignored: Vec<Node>,
    /// Whether there are parameters to read. All that an expression reads of them is assumed to be there.
    pub parameters: bool,
    /// Atoms without which no test holds.
    pub assumed: RefCell<Vec<Node>>,
    /// The longest list that is looped over within another loop.
    within: u64,
    /// The elements of the enclosing loops, and their lists.
    items: RefCell<Vec<(Arc<str>, Node)>>,
    /// How many steps it may take before it gives up.
    left: Cell<usize>,
    /// How deep the current step is.
    level: Cell<usize>,
    /// Whether a part of an expression is not understood.
    pub gave_up: Cell<bool>,
    /// Whether parts of an expression may fail, as those that users write. The checks of the catalogue never fail,
    /// which tests show; then a part without which the answer is known need not be looked at.
    may_fail: bool,
}

impl<'a> Cases<'a> {
    /// Of an object that is a pod, or whose pod template a loop names [`TEMPLATE`](crate::tree::TEMPLATE); which of the
    /// fields of the pod's spec are not looked at; the longest list that is looped over within another loop.
    pub fn new(definitions: &'a BTreeMap<&'a str, Node>, shape: Shape, ignored: &[&str], within: u64) -> Self {
        let pod = match shape {
            Shape::Pods | Shape::Objects => ident("object"),
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
            spec,
            parameters: true,
            assumed: RefCell::default(),
            within,
            items: RefCell::default(),
            left: Cell::new(MAX_STEPS),
            level: Cell::new(0),
            gave_up: Cell::new(false),
            may_fail: false,
        }
    }

    /// The same for expressions that users write.
    pub fn of_users(self) -> Self {
        Self { may_fail: true, ..self }
    }

    /// One step of the recursion, within the bounds of how many and how deep.
    fn step(&self, step: impl FnOnce() -> Test) -> Test {
        let (Some(left), level) = (self.left.get().checked_sub(1), self.level.get()) else { return self.give_up() };
        if level == MAX_LEVELS {
            return self.give_up();
        }
        self.left.set(left);
        self.level.set(level + 1);
        let test = with_stack(step);
        self.level.set(level);
        test
    }

    /// The test of what is not understood.
    fn give_up(&self) -> Test {
        self.gave_up.set(true);
        NEVER
    }

    /// A test that holds only where CEL of type bool has this value.
    pub fn holds(&self, of: &Node, wanted: bool, scope: &Scope) -> Test {
        self.step(|| self.holds_within(of, wanted, scope))
    }

    fn holds_within(&self, of: &Node, wanted: bool, scope: &Scope) -> Test {
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
            // No parameter is empty: the resolver rejects such a value. So the test demands it once, for all that ask.
            ("_!=_", None, [value, Node { expr: Expr::Literal(Literal::String(text)), .. }])
                if text.is_empty() && root(value) == Some(PARAMETERS) && scope.get(PARAMETERS).is_none() =>
            {
                self.value(value, scope, &mut |value| match value {
                    Known::Cel(value) => {
                        self.assume(call("_!=_", vec![value, literal::string("")]));
                        Test::Const(wanted)
                    }
                    _ => NEVER,
                })
            }
            (compared, None, [Node { expr: Expr::Call { function, target: Some(list), args }, .. }, to])
                if &**function == "size" && args.is_empty() && self.is_list(list, scope) =>
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
        if yes == no && !self.may_fail {
            return yes;
        }
        let (holds, fails) = (self.holds(condition, true, scope), self.holds(condition, false, scope));
        if holds == Test::Const(true) {
            return yes;
        }
        if fails == Test::Const(true) {
            return no;
        }
        match (holds.is_opposite(&fails), holds) {
            (true, _) if yes == no => yes,
            (true, Test::Is(node, true)) => Test::If(Box::new((node, yes, no))),
            (true, Test::Is(node, false)) => Test::If(Box::new((node, no, yes))),
            (_, holds) => Test::Any(vec![Test::All(vec![holds, yes]), Test::All(vec![fails, no])]),
        }
    }
}

/// Whether a call is one whose value [`Cases::holds`] derives from its parts.
fn is_logical(function: &str, target: Option<&Node>, args: &[Node]) -> bool {
    match (function, target, args) {
        ("!_", None, [_]) | ("_&&_" | "_||_", None, _) => true,
        ("has", None, [of]) => matches!(of.expr, Expr::Select { .. }),
        ("all" | "exists", Some(_), args) => looping(function, args).is_some_and(|found| found.names.len() == 1),
        _ => false,
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
