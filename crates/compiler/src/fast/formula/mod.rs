//! Tests that may be stricter than what they are made of: conjunctions, disjunctions and loops over atoms of CEL, brought
//! into a form that is cheap to evaluate.
//!
//! An atom is evaluated only behind the tests that make sure that it does not fail: those of presence come first, the
//! shortest path first, and a loop comes last.

use std::sync::Arc;

use palisade_cel::ast::{Expr, Literal, Node};

use super::tree::{call, equal_parts, ident, is_presence, literal, mentions, negated, rename, truth, weight};
use super::{cost, texts};
use crate::fold::balance;

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
    /// What is looped over.
    pub list: Node,
    /// The most elements that it has.
    pub most: u64,
    /// The name of an element.
    pub item: Arc<str>,
    /// The test of an element.
    pub body: Test,
}

/// What is known where a test is evaluated.
type Facts = Vec<(Node, bool)>;

impl Test {
    /// The same test, or a stricter one, in a form that is cheap to evaluate.
    pub fn simplified(self) -> Self {
        simplify(self, &mut Facts::new())
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
                super::tree::node(Expr::Call { function: function.into(), target: Some(Box::new(list)), args })
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

    /// How much there is to evaluate.
    fn weight(&self) -> usize {
        match self {
            Self::Const(_) => 0,
            Self::Is(node, _) => weight(node),
            Self::If(parts) => weight(&parts.0) + parts.1.weight().max(parts.2.weight()),
            Self::All(tests) | Self::Any(tests) => tests.iter().map(Self::weight).sum(),
            Self::Each(each) => 100 + 4 * each.body.weight(),
        }
    }

    /// Whether an atom says something of it: it asks for the same, or for the size of the same.
    fn asks(&self, atom: &Node) -> bool {
        let about = |node: &Node| {
            node == atom || matches!((at_most(node), at_most(atom)), (Some((one, _)), Some((other, _))) if one == other)
        };
        match self {
            Self::Const(_) => false,
            Self::Is(node, _) => about(node),
            Self::If(parts) => about(&parts.0) || parts.1.asks(atom) || parts.2.asks(atom),
            Self::All(tests) | Self::Any(tests) => tests.iter().any(|test| test.asks(atom)),
            Self::Each(each) => each.body.asks(atom),
        }
    }

    fn mentions(&self, name: &str) -> bool {
        match self {
            Self::Const(_) => false,
            Self::Is(node, _) => mentions(node, name),
            Self::If(parts) => mentions(&parts.0, name) || parts.1.mentions(name) || parts.2.mentions(name),
            Self::All(tests) | Self::Any(tests) => tests.iter().any(|test| test.mentions(name)),
            Self::Each(each) => mentions(&each.list, name) || each.body.mentions(name),
        }
    }

    fn renamed(self, from: &str, to: &Arc<str>) -> Self {
        let each = |tests: Vec<Self>| tests.into_iter().map(|test| test.renamed(from, to)).collect();
        match self {
            Self::Const(value) => Self::Const(value),
            Self::Is(node, wanted) => Self::Is(rename(node, from, to), wanted),
            Self::If(parts) => {
                let (condition, yes, no) = *parts;
                Self::If(Box::new((rename(condition, from, to), yes.renamed(from, to), no.renamed(from, to))))
            }
            Self::All(tests) => Self::All(each(tests)),
            Self::Any(tests) => Self::Any(each(tests)),
            Self::Each(of) => {
                let list = rename(of.list, from, to);
                Self::Each(Box::new(Each { list, body: of.body.renamed(from, to), ..*of }))
            }
        }
    }
}

fn chain(function: &str, tests: Vec<Test>) -> Node {
    balance(function, &mut tests.into_iter().map(|test| Some(test.node())).collect::<Vec<_>>())
}

/// An atom without what a value of a test can say as well.
fn normal(node: Node, wanted: bool) -> Test {
    match node.expr {
        Expr::Literal(Literal::Bool(value)) => Test::Const(value == wanted),
        Expr::Call { function, target: None, mut args } if &*function == "!_" && args.len() == 1 => {
            normal(args.remove(0), !wanted)
        }
        Expr::Call { function, target: None, args } if &*function == "_!=_" => normal(call("_==_", args), !wanted),
        Expr::Call { function, target: None, mut args } if &*function == "@in" && only(&args).is_some() => {
            let one = only(&args).cloned();
            args.truncate(1);
            args.extend(one);
            normal(call("_==_", args), wanted)
        }
        expr => {
            let node = super::tree::node(expr);
            match texts::rewritten(&node, wanted) {
                Some(test) => test,
                None => Test::Is(node, wanted),
            }
        }
    }
}

/// The only element of the list that a membership is asked of.
fn only(args: &[Node]) -> Option<&Node> {
    match args {
        [_, Node { expr: Expr::List { elements, optional }, .. }] if optional.is_empty() => match elements.as_slice() {
            [one] => Some(one),
            _ => None,
        },
        _ => None,
    }
}

/// What the facts say of an atom.
fn known(node: &Node, facts: &Facts) -> Option<bool> {
    let limit = at_most(node);
    facts.iter().find_map(|(fact, value)| match (limit, at_most(fact)) {
        _ if fact == node => Some(*value),
        (Some((size, most)), Some((other, bound))) if *value && size == other && bound <= most => Some(true),
        _ => None,
    })
}

/// The parts of `size <= most`, or of `size == 0`.
fn at_most(node: &Node) -> Option<(&Node, i64)> {
    match &node.expr {
        Expr::Call { function, target: None, args } => match (&**function, args.as_slice()) {
            ("_<=_", [size, Node { expr: Expr::Literal(Literal::Int(most)), .. }]) => Some((size, *most)),
            ("_==_", [size, Node { expr: Expr::Literal(Literal::Int(0)), .. }]) if is_size(size) => Some((size, 0)),
            _ => None,
        },
        _ => None,
    }
}

fn is_size(of: &Node) -> bool {
    matches!(&of.expr, Expr::Call { function, target: Some(_), args } if &**function == "size" && args.is_empty())
}

fn simplify(test: Test, facts: &mut Facts) -> Test {
    match test {
        Test::Const(_) => test,
        Test::Is(node, wanted) => match normal(node, wanted) {
            Test::Is(node, wanted) => match known(&node, facts) {
                Some(value) => Test::Const(value == wanted),
                None => Test::Is(node, wanted),
            },
            Test::Const(value) => Test::Const(value),
            other => simplify(other, facts),
        },
        Test::If(parts) => {
            let (condition, yes, no) = *parts;
            match normal(condition, true) {
                Test::Const(value) => simplify(if value { yes } else { no }, facts),
                Test::Is(condition, true) => choose(condition, yes, no, facts),
                Test::Is(condition, false) => choose(condition, no, yes, facts),
                _ => Test::Const(false),
            }
        }
        Test::All(tests) => connect(tests, true, facts),
        Test::Any(tests) => connect(tests, false, facts),
        Test::Each(each) => repeat(*each, facts),
    }
}

fn choose(condition: Node, yes: Test, no: Test, facts: &mut Facts) -> Test {
    if let Some(value) = known(&condition, facts) {
        return simplify(if value { yes } else { no }, facts);
    }
    let mut given = |value, test| {
        facts.push((condition.clone(), value));
        let simpler = simplify(test, facts);
        facts.pop();
        simpler
    };
    let (yes, no) = (given(true, yes), given(false, no));
    let is = |wanted| Test::Is(condition.clone(), wanted);
    match (yes, no) {
        (yes, no) if yes == no => yes,
        (Test::Const(true), Test::Const(false)) => is(true),
        (Test::Const(false), Test::Const(true)) => is(false),
        (yes, Test::Const(false)) => with(is(true), yes, true),
        (Test::Const(false), no) => with(is(false), no, true),
        (yes, Test::Const(true)) => with(is(false), yes, false),
        (Test::Const(true), no) => with(is(true), no, false),
        (yes, no) => Test::If(Box::new((condition, yes, no))),
    }
}

/// Both, or either, of them, as one flat list.
fn with(first: Test, second: Test, and: bool) -> Test {
    let mut all = vec![first];
    match (second, and) {
        (Test::All(tests), true) | (Test::Any(tests), false) => all.extend(tests),
        (other, _) => all.push(other),
    }
    if and { Test::All(all) } else { Test::Any(all) }
}

/// A loop, without what is the same for all elements.
fn repeat(each: Each, facts: &mut Facts) -> Test {
    let Each { every, list, most, item, body } = each;
    let body = simplify(body, facts);
    let again = |body| Test::Each(Box::new(Each { every, list: list.clone(), most, item: item.clone(), body }));
    let split = |tests: Vec<Test>| tests.into_iter().partition::<Vec<_>, _>(|test| test.mentions(&item));
    match body {
        Test::Const(value) if value == every => Test::Const(value),
        // An empty list, or one that is not.
        Test::Const(_) => Test::Is(super::tree::is_empty(list.clone()), every),
        // Stricter where the list is empty, which a loop need not tell apart.
        Test::All(tests) => match split(tests) {
            (of_items, others) if !others.is_empty() && !of_items.is_empty() => {
                let mut all = others;
                all.push(again(connect(of_items, true, facts)));
                connect(all, true, facts)
            }
            (mut tests, others) => {
                tests.extend(others);
                again(Test::All(tests))
            }
        },
        Test::Any(tests) if every => match split(tests) {
            (of_items, others) if !others.is_empty() && !of_items.is_empty() => {
                let mut all = others;
                all.push(again(connect(of_items, false, facts)));
                connect(all, false, facts)
            }
            (mut tests, others) => {
                tests.extend(others);
                again(Test::Any(tests))
            }
        },
        body => again(body),
    }
}

/// All of them (`and`), or any.
fn connect(tests: Vec<Test>, and: bool, facts: &mut Facts) -> Test {
    let before = facts.len();
    let found = gather(tests, and, facts);
    facts.truncate(before);
    let Some((atoms, rest)) = found else { return Test::Const(!and) };
    let mut atoms = memberships(atoms, and);
    if and {
        let limits: Vec<_> = atoms.iter().filter(|(_, wanted)| *wanted).map(|(node, _)| node.clone()).collect();
        atoms.retain(|(node, wanted)| !(*wanted && dominated(node, &limits)));
    }
    atoms.sort_by_cached_key(|(node, _)| (!is_presence(node), at_most(node).is_none(), weight(node)));
    let mut rest = rest;
    rest.sort_by_cached_key(Test::weight);
    let mut all: Vec<_> = atoms.into_iter().map(|(node, wanted)| Test::Is(node, wanted)).collect();
    all.extend(rest);
    match (all.len(), and) {
        (0, _) => Test::Const(and),
        (1, _) => all.remove(0),
        (_, true) => Test::All(all),
        (_, false) => Test::Any(all),
    }
}

/// Whether another limit of the same size is lower.
fn dominated(node: &Node, limits: &[Node]) -> bool {
    at_most(node).is_some_and(|(size, most)| {
        limits.iter().filter_map(at_most).any(|(other, bound)| size == other && bound < most)
    })
}

/// The atoms among them, and the others, each simplified by what the atoms say; `None` if one of them decides.
fn gather(tests: Vec<Test>, and: bool, facts: &mut Facts) -> Option<(Vec<(Node, bool)>, Vec<Test>)> {
    let mut atoms = Vec::new();
    // Those that are still to be simplified, last first, and those that are not to be, for all that is known yet.
    let mut open: Vec<Test> = tests.into_iter().rev().collect();
    let mut done: Vec<Test> = Vec::new();
    loop {
        while let Some(test) = open.pop() {
            match simplify(test, facts) {
                Test::Const(value) if value == and => {}
                Test::Const(_) => return None,
                Test::Is(node, wanted) => {
                    // The others are asked where this one does not decide, so it may say something of each.
                    let says = |test: &Test| test.asks(&node);
                    let (again, rest): (Vec<_>, Vec<_>) = done.into_iter().partition(says);
                    done = rest;
                    open.extend(again);
                    facts.push((node.clone(), wanted == and));
                    atoms.push((node, wanted));
                }
                Test::All(tests) if and => open.extend(tests.into_iter().rev()),
                Test::Any(tests) if !and => open.extend(tests.into_iter().rev()),
                other => done.push(other),
            }
        }
        let before = done.clone();
        let together = factored(without_opposites(fused(grouped(done, and), and), and), and);
        if together == before {
            return Some((atoms, together));
        }
        let (new, old): (Vec<_>, Vec<_>) = together.into_iter().partition(|test| !before.contains(test));
        done = old;
        open = new;
    }
}

/// Those that ask for the presence of one thing before anything else become one test.
fn grouped(tests: Vec<Test>, and: bool) -> Vec<Test> {
    let mut guards: Vec<(Node, usize)> = Vec::new();
    for guard in tests.iter().flat_map(|test| guards_of(test, and)) {
        match guards.iter_mut().find(|(other, _)| *other == guard) {
            Some((_, count)) => *count += 1,
            None => guards.push((guard, 1)),
        }
    }
    guards.retain(|(_, count)| *count > 1);
    // The shortest path leads to all others.
    let Some((guard, _)) = guards.into_iter().min_by_key(|(guard, _)| weight(guard)) else { return tests };
    let (mut yes, mut no, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for test in tests {
        match split_by(test, &guard, and) {
            Ok((one, other)) => {
                yes.push(one);
                no.push(other);
            }
            Err(test) => others.push(test),
        }
    }
    let both = |tests| if and { Test::All(tests) } else { Test::Any(tests) };
    others.push(Test::If(Box::new((guard, both(yes), both(no)))));
    others
}

/// `(a || b) && (a || c)` as `a || (b && c)`.
fn factored(tests: Vec<Test>, and: bool) -> Vec<Test> {
    let within = |test: &Test| match (test, and) {
        (Test::Any(tests), true) | (Test::All(tests), false) => tests.clone(),
        _ => vec![],
    };
    let common = tests.iter().enumerate().find_map(|(index, test)| {
        let later: Vec<_> = tests[index + 1..].iter().flat_map(within).collect();
        // What is asked for before it keeps its place.
        let mut shared: Vec<_> =
            within(test).into_iter().filter(|one| !matches!(one, Test::Is(..)) && later.contains(one)).collect();
        shared.sort_by_cached_key(Test::weight);
        shared.pop()
    });
    let Some(common) = common else { return tests };
    let whole = |tests, all| if all { Test::All(tests) } else { Test::Any(tests) };
    let (with, mut others): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| within(test).contains(&common));
    let rests = with.iter().map(|test| whole(within(test).into_iter().filter(|one| *one != common).collect(), !and));
    others.push(whole(vec![common.clone(), whole(rests.collect(), and)], !and));
    others
}

/// `a && (!a || b)` as `a && b`.
fn without_opposites(tests: Vec<Test>, and: bool) -> Vec<Test> {
    let opposites: Vec<_> = tests.iter().map(|test| test.clone().opposite()).collect();
    tests
        .into_iter()
        .map(|test| match (test, and) {
            (Test::Any(tests), true) => Test::Any(tests.into_iter().filter(|one| !opposites.contains(one)).collect()),
            (Test::All(tests), false) => Test::All(tests.into_iter().filter(|one| !opposites.contains(one)).collect()),
            (other, _) => other,
        })
        .collect()
}

/// What a test asks the presence of before anything else.
fn guards_of(test: &Test, and: bool) -> Vec<Node> {
    match (test, and) {
        (Test::If(parts), _) if is_presence(&parts.0) => vec![parts.0.clone()],
        (Test::Any(tests), true) | (Test::All(tests), false) => {
            let guard = |test: &Test| match test {
                Test::Is(node, _) if is_presence(node) => Some(node.clone()),
                _ => None,
            };
            tests.iter().filter_map(guard).collect()
        }
        _ => vec![],
    }
}

/// The test where the guard is true, and where it is false; the test itself if it does not ask for it at once.
fn split_by(test: Test, guard: &Node, and: bool) -> Result<(Test, Test), Test> {
    match test {
        Test::If(parts) if parts.0 == *guard => Ok((parts.1, parts.2)),
        Test::Any(tests) if and => split_list(tests, guard, false),
        Test::All(tests) if !and => split_list(tests, guard, true),
        other => Err(other),
    }
}

fn split_list(mut tests: Vec<Test>, guard: &Node, and: bool) -> Result<(Test, Test), Test> {
    let whole = |tests| if and { Test::All(tests) } else { Test::Any(tests) };
    let at = tests.iter().position(|test| matches!(test, Test::Is(node, _) if node == guard));
    let Some(at) = at else { return Err(whole(tests)) };
    let Test::Is(_, wanted) = tests.remove(at) else { return Err(whole(tests)) };
    let decided = Test::Const(!and);
    let rest = whole(tests);
    // Where the atom decides, the rest does not matter.
    Ok(if wanted == and { (rest, decided) } else { (decided, rest) })
}

/// Loops over one list become one.
fn fused(tests: Vec<Test>, and: bool) -> Vec<Test> {
    let mut all: Vec<Test> = Vec::new();
    for test in tests {
        let Test::Each(each) = test else {
            all.push(test);
            continue;
        };
        let same = all.iter_mut().find_map(|other| match other {
            Test::Each(other) if other.every == and && each.every == and && other.list == each.list => Some(other),
            _ => None,
        });
        match same {
            Some(other) => {
                other.most = other.most.max(each.most);
                let body = if other.item == each.item { each.body } else { each.body.renamed(&each.item, &other.item) };
                let bodies = vec![std::mem::replace(&mut other.body, Test::Const(and)), body];
                other.body = if and { Test::All(bodies) } else { Test::Any(bodies) };
            }
            None => all.push(Test::Each(each)),
        }
    }
    all
}

/// `x == 'a' || x in ['b']` as `x in ['a', 'b']`.
fn memberships(atoms: Vec<(Node, bool)>, and: bool) -> Vec<(Node, bool)> {
    let mut of: Vec<(Node, Vec<Node>)> = Vec::new();
    let mut others = Vec::new();
    for (node, wanted) in atoms {
        let parts = if wanted == and { None } else { equal_parts(&node) };
        let Some((what, values)) = parts else {
            others.push((node, wanted));
            continue;
        };
        match of.iter_mut().find(|(other, _)| *other == what) {
            Some((_, all)) => all.extend(values.into_iter().filter(|value| !all.contains(value)).collect::<Vec<_>>()),
            None => of.push((what, values)),
        }
    }
    for (what, mut values) in of {
        let node = if values.len() == 1 {
            call("_==_", vec![what, values.remove(0)])
        } else {
            call("@in", vec![what, literal::list(values)])
        };
        others.push((node, !and));
    }
    others
}

#[cfg(test)]
mod tests;
