//! Brings a test into a form that is cheap to evaluate and never weaker: each thing is asked for once, loops over one
//! list are one loop, what is the same for all elements is asked before the loop.

use std::rc::Rc;

use palisade_cel::{
    ast::{Expr, Literal, Node},
    with_stack,
};

use super::{
    atoms::{equal_parts, is_empty, is_presence, weight},
    formula::{Each, Test},
    texts,
};
use crate::tree::{self, call, literal};

/// Atoms and their values: what is known where a test is evaluated.
type Facts = Vec<(Rc<Node>, bool)>;

/// The same test, or a stricter one, in a form that is cheap to evaluate.
pub(super) fn simplified(test: Test) -> Test {
    simplify(test, &mut Facts::new())
}

/// Whether an atom says something of a test: it asks for the same, or for the size of the same.
fn asks(test: &Test, atom: &Node) -> bool {
    let about = |node: &Node| {
        node == atom || matches!((at_most(node), at_most(atom)), (Some((one, _)), Some((other, _))) if one == other)
    };
    match test {
        Test::Const(_) => false,
        Test::Is(node, _) => about(node),
        Test::If(parts) => about(&parts.0) || asks(&parts.1, atom) || asks(&parts.2, atom),
        Test::All(tests) | Test::Any(tests) => tests.iter().any(|test| asks(test, atom)),
        Test::Each(each) => asks(&each.body, atom),
    }
}

/// An atom without what a value of a test can say as well.
fn normal(node: Node, wanted: bool) -> Test {
    match node.expr {
        Expr::Literal(Literal::Bool(value)) => Test::Const(value == wanted),
        Expr::Call { function, target: None, args } if &*function == "_!=_" => normal(call("_==_", args), !wanted),
        Expr::Call { function, target: None, mut args } if &*function == "@in" && only(&args).is_some() => {
            let one = only(&args).cloned();
            args.truncate(1);
            args.extend(one);
            normal(call("_==_", args), wanted)
        }
        expr => {
            let node = tree::node(expr);
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

/// The value of an atom, if the facts determine it.
fn known(node: &Node, facts: &Facts) -> Option<bool> {
    let limit = at_most(node);
    facts.iter().find_map(|(fact, value)| match (limit, at_most(fact)) {
        _ if **fact == *node => Some(*value),
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
    with_stack(|| simplify_within(test, facts))
}

fn simplify_within(test: Test, facts: &mut Facts) -> Test {
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
    let condition = Rc::new(condition);
    let mut given = |value, test| {
        facts.push((Rc::clone(&condition), value));
        let simpler = simplify(test, facts);
        facts.pop();
        simpler
    };
    let (yes, no) = (given(true, yes), given(false, no));
    let condition = Rc::unwrap_or_clone(condition);
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
    Test::of(all, and)
}

/// A loop, without what is the same for all elements.
fn repeat(each: Each, facts: &mut Facts) -> Test {
    let Each { every, list, most, item, body } = each;
    let (and, tests) = match simplify(body, facts) {
        Test::Const(value) if value == every => return Test::Const(value),
        // An empty list, or one that is not.
        Test::Const(_) => return Test::Is(is_empty(list), every),
        Test::All(tests) => (true, tests),
        // Where one element must do, what is the same for all is no part of a choice: the list may be empty.
        Test::Any(tests) if every => (false, tests),
        body => return Test::Each(Box::new(Each { every, list, most, item, body })),
    };
    let (mut within, mut before): (Vec<_>, Vec<_>) = tests.into_iter().partition(|test| test.mentions(&item));
    if within.is_empty() {
        within.append(&mut before);
    }
    if before.is_empty() {
        return Test::Each(Box::new(Each { every, list, most, item, body: Test::of(within, and) }));
    }
    let body = connect(within, and, facts);
    let each = Test::Each(Box::new(Each { every, list, most, item, body }));
    // Stricter where the list is empty, which a loop need not tell apart.
    before.push(each);
    connect(before, and, facts)
}

/// All of them (`and`), or any.
fn connect(tests: Vec<Test>, and: bool, facts: &mut Facts) -> Test {
    let before = facts.len();
    let found = gather(tests, and, facts);
    facts.truncate(before);
    let Some((atoms, rest)) = found else { return Test::Const(!and) };
    // Nothing else has them any more.
    let atoms = atoms.into_iter().map(|(node, wanted)| (Rc::unwrap_or_clone(node), wanted)).collect();
    let mut atoms = memberships(atoms, and);
    if and {
        let limits: Vec<_> = atoms.iter().filter(|(_, wanted)| *wanted).map(|(node, _)| node.clone()).collect();
        atoms.retain(|(node, wanted)| !(*wanted && dominated(node, &limits)));
    }
    atoms.sort_by_cached_key(|(node, _)| (rank(node), weight(node)));
    let mut rest = rest;
    rest.sort_by_cached_key(Test::weight);
    let mut all: Vec<_> = atoms.into_iter().map(|(node, wanted)| Test::Is(node, wanted)).collect();
    all.extend(rest);
    match (all.len(), and) {
        (0, _) => Test::Const(and),
        (1, _) => all.remove(0),
        _ => Test::of(all, and),
    }
}

/// The rank of an atom in the order of evaluation: first the presence of fields, then their sizes, then all others.
fn rank(atom: &Node) -> u8 {
    match &atom.expr {
        Expr::Call { function, .. } if &**function == "has" => 0,
        _ if at_most(atom).is_some() => 1,
        _ => 2,
    }
}

/// Whether another limit of the same size is lower.
fn dominated(node: &Node, limits: &[Node]) -> bool {
    at_most(node).is_some_and(|(size, most)| {
        limits.iter().filter_map(at_most).any(|(other, bound)| size == other && bound < most)
    })
}

/// The atoms among them, and the others, each simplified by what the atoms say; `None` if one of them decides.
fn gather(tests: Vec<Test>, and: bool, facts: &mut Facts) -> Option<(Facts, Vec<Test>)> {
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
                    let says = |test: &Test| asks(test, &node);
                    let (again, rest): (Vec<_>, Vec<_>) = done.into_iter().partition(says);
                    done = rest;
                    open.extend(again);
                    let node = Rc::new(node);
                    facts.push((Rc::clone(&node), wanted == and));
                    atoms.push((node, wanted));
                }
                Test::All(tests) if and => open.extend(tests.into_iter().rev()),
                Test::Any(tests) if !and => open.extend(tests.into_iter().rev()),
                other => done.push(other),
            }
        }
        let mut together: Option<Vec<Test>> = None;
        for change in [grouped, fused, without_opposites, factored] {
            together = change(together.as_ref().unwrap_or(&done), and).or(together);
        }
        let Some(together) = together.filter(|together| *together != done) else { return Some((atoms, done)) };
        (open, done) = together.into_iter().partition(|test| !done.contains(test));
    }
}

/// Those that ask for the presence of one thing before anything else become one test; `None` if there are none.
fn grouped(tests: &[Test], and: bool) -> Option<Vec<Test>> {
    let mut guards: Vec<(&Node, usize)> = Vec::new();
    for guard in tests.iter().flat_map(|test| guards_of(test, and)) {
        match guards.iter_mut().find(|(other, _)| *other == guard) {
            Some((_, count)) => *count += 1,
            None => guards.push((guard, 1)),
        }
    }
    guards.retain(|(_, count)| *count > 1);
    // The shortest path leads to all others.
    let (guard, _) = guards.into_iter().min_by_key(|(guard, _)| weight(guard))?;
    let (mut yes, mut no, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for test in tests {
        match split_by(test, guard) {
            Some((one, other)) => {
                yes.push(one);
                no.push(other);
            }
            None => others.push(test.clone()),
        }
    }
    others.push(Test::If(Box::new((guard.clone(), Test::of(yes, and), Test::of(no, and)))));
    Some(others)
}

/// `(a || b) && (a || c)` as `a || (b && c)`; `None` if no two have a part in common.
fn factored(tests: &[Test], and: bool) -> Option<Vec<Test>> {
    let common = tests.iter().enumerate().find_map(|(index, test)| {
        let shared = |one: &&Test| tests[index + 1..].iter().any(|test| within(test, and).contains(one));
        // What is asked for before it keeps its place.
        let loose = within(test, and).iter().filter(|one| !matches!(one, Test::Is(..)));
        loose.filter(shared).max_by_key(|one| one.weight())
    })?;
    let (with, without): (Vec<_>, Vec<_>) = tests.iter().partition(|test| within(test, and).contains(common));
    let rest = |test| Test::of(within(test, and).iter().filter(|one| *one != common).cloned().collect(), !and);
    let rests = with.into_iter().map(rest).collect();
    let mut others: Vec<_> = without.into_iter().cloned().collect();
    others.push(Test::of(vec![common.clone(), Test::of(rests, and)], !and));
    Some(others)
}

/// `a && (!a || b)` as `a && b`; `None` if there is no such part.
fn without_opposites(tests: &[Test], and: bool) -> Option<Vec<Test>> {
    let stays = |one: &&Test| !tests.iter().any(|test| test.is_opposite(one));
    if tests.iter().flat_map(|test| within(test, and)).all(|one| stays(&one)) {
        return None;
    }
    let without = |test: &Test| match within(test, and) {
        [] => test.clone(),
        parts => Test::of(parts.iter().filter(stays).cloned().collect(), !and),
    };
    Some(tests.iter().map(without).collect())
}

/// The parts of a choice among tests that must all hold (`and`), or the other way round.
fn within(test: &Test, and: bool) -> &[Test] {
    match (test, and) {
        (Test::Any(tests), true) | (Test::All(tests), false) => tests,
        _ => &[],
    }
}

/// The presence tests that a test starts with.
fn guards_of(test: &Test, and: bool) -> Vec<&Node> {
    match test {
        Test::If(parts) => vec![&parts.0],
        _ => within(test, and).iter().filter_map(presence_asked).collect(),
    }
}

fn presence_asked(test: &Test) -> Option<&Node> {
    match test {
        Test::Is(node, _) if is_presence(node) => Some(node),
        _ => None,
    }
}

/// The test where the guard is true, and where it is false; `None` if the test does not ask for it at once.
fn split_by(test: &Test, guard: &Node) -> Option<(Test, Test)> {
    match test {
        Test::If(parts) if parts.0 == *guard => Some((parts.1.clone(), parts.2.clone())),
        Test::Any(tests) => split_list(tests, guard, false),
        Test::All(tests) => split_list(tests, guard, true),
        _ => None,
    }
}

fn split_list(tests: &[Test], guard: &Node, and: bool) -> Option<(Test, Test)> {
    let asked = |test: &Test| match test {
        Test::Is(node, wanted) if node == guard => Some(*wanted),
        _ => None,
    };
    let (at, wanted) = tests.iter().enumerate().find_map(|(at, test)| Some((at, asked(test)?)))?;
    let decided = Test::Const(!and);
    let rest = Test::of([&tests[..at], &tests[at + 1..]].concat(), and);
    // Where the atom decides, the rest does not matter.
    Some(if wanted == and { (rest, decided) } else { (decided, rest) })
}

/// Loops over one list become one; `None` if no two loop over the same.
fn fused(tests: &[Test], and: bool) -> Option<Vec<Test>> {
    let same = |one: &Test, other: &Test| match (one, other) {
        (Test::Each(one), Test::Each(other)) => one.every == and && other.every == and && one.list == other.list,
        _ => false,
    };
    tests.iter().enumerate().find(|(index, test)| tests[index + 1..].iter().any(|other| same(test, other)))?;
    let mut all: Vec<Test> = Vec::new();
    for test in tests {
        match (all.iter_mut().find(|other| same(other, test)), test) {
            (Some(Test::Each(other)), Test::Each(each)) => {
                other.most = other.most.max(each.most);
                let body = each.body.clone();
                let body = if other.item == each.item { body } else { body.renamed(&each.item, &other.item) };
                let bodies = vec![std::mem::replace(&mut other.body, Test::Const(and)), body];
                other.body = Test::of(bodies, and);
            }
            _ => all.push(test.clone()),
        }
    }
    Some(all)
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
