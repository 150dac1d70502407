//! A simplified test holds only where the original test holds.

use palisade_cel::{ast::Node, format::print};
use proptest::{
    prelude::*,
    strategy::ValueTree as _,
    test_runner::{Config, RngSeed, TestRunner},
};

use super::{
    super::atoms::{presence, size},
    Each, Test, simplified,
};
use crate::tree::{call, ident, literal, select};

/// The elements of the only list that is looped over; there may be fewer.
const ELEMENTS: [&str; 2] = ["first", "second"];

/// The properties of a request.
#[derive(Debug)]
struct Request {
    atoms: Vec<(Node, bool)>,
    length: usize,
    size: i64,
}

fn text(node: &Node) -> String {
    print(node, usize::MAX, &[]).map_or_else(String::new, |printed| printed.text)
}

impl Request {
    /// The value of an atom. If the atom was not drawn, the value depends on its text alone.
    fn atom(&self, node: &Node) -> bool {
        if let Some(drawn) = self.drawn(node) {
            return drawn;
        }
        let text = text(node);
        if let Some(most) = text.strip_prefix("s.size() <= ") {
            return most.parse().is_ok_and(|most: i64| self.size <= most);
        }
        if text == "l.size() == 0" {
            return self.length == 0;
        }
        if let Some(values) = text.strip_prefix("t in [") {
            let is = |value: &str| self.drawn(&value_is(value.trim_matches('\'')));
            return values.trim_end_matches(']').split(", ").any(|value| is(value) == Some(true));
        }
        text.len().is_multiple_of(2)
    }

    fn drawn(&self, node: &Node) -> Option<bool> {
        self.atoms.iter().find(|(atom, _)| atom == node).map(|(_, value)| *value)
    }

    fn holds(&self, test: &Test) -> bool {
        match test {
            Test::Const(value) => *value,
            Test::Is(node, wanted) => match super::normal(node.clone(), *wanted) {
                Test::Is(node, wanted) => self.atom(&node) == wanted,
                Test::Const(value) => value,
                other => self.holds(&other),
            },
            Test::If(parts) => {
                self.holds(if self.holds(&Test::Is(parts.0.clone(), true)) { &parts.1 } else { &parts.2 })
            }
            Test::All(tests) => tests.iter().all(|test| self.holds(test)),
            Test::Any(tests) => tests.iter().any(|test| self.holds(test)),
            Test::Each(each) => {
                let mut elements = ELEMENTS[..self.length].iter();
                let of = |element: &&str| {
                    let named = std::sync::Arc::from(*element);
                    self.holds(&each.body.clone().renamed(&each.item, &named))
                };
                if each.every { elements.all(&of) } else { elements.any(of) }
            }
        }
    }
}

/// `t == value`.
fn value_is(value: &str) -> Node {
    call("_==_", vec![ident("t"), literal::string(value)])
}

/// Atoms of the pod, and of an element.
fn atoms(item: &str) -> Vec<Node> {
    let at_most = |most| call("_<=_", vec![size(ident("s")), literal::int(most)]);
    vec![
        presence(select(ident("a"), "x")),
        presence(select(ident("a"), "y")),
        presence(select(select(ident("a"), "x"), "z")),
        select(ident("a"), "b"),
        at_most(3),
        at_most(5),
        value_is("u"),
        value_is("v"),
        presence(select(ident(item), "x")),
        select(ident(item), "b"),
        presence(select(ident(item), "y")),
    ]
}

fn test() -> impl Strategy<Value = Test> {
    let atom = prop::sample::select(atoms("c"));
    let leaf = prop_oneof![
        8 => (atom, any::<bool>()).prop_map(|(node, wanted)| Test::Is(node, wanted)),
        1 => any::<bool>().prop_map(Test::Const),
    ];
    leaf.prop_recursive(5, 60, 4, |inner| {
        let guard = prop::sample::select(atoms("c"));
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Test::All),
            prop::collection::vec(inner.clone(), 0..5).prop_map(Test::Any),
            (guard, inner.clone(), inner.clone()).prop_map(|(node, yes, no)| Test::If(Box::new((node, yes, no)))),
            (any::<bool>(), inner).prop_map(|(every, body)| {
                // No loop hides the element of another.
                let item = format!("c{}", loops(&body)).into();
                let body = body.renamed("c", &item);
                Test::Each(Box::new(Each { every, list: ident("l"), most: 2, item, body }))
            }),
        ]
    })
}

/// How many loops are in each other.
fn loops(test: &Test) -> usize {
    match test {
        Test::Const(_) | Test::Is(..) => 0,
        Test::If(parts) => loops(&parts.1).max(loops(&parts.2)),
        Test::All(tests) | Test::Any(tests) => tests.iter().map(loops).max().unwrap_or(0),
        Test::Each(each) => 1 + loops(&each.body),
    }
}

fn request() -> impl Strategy<Value = Request> {
    let nodes: Vec<Node> = ["c", "first", "second"].iter().flat_map(|item| atoms(item)).collect();
    // What the size of a text says is known from it.
    let nodes: Vec<Node> = nodes.into_iter().filter(|node| super::at_most(node).is_none()).collect();
    (prop::collection::vec(any::<bool>(), nodes.len()), 0..=2_usize, 0..8_i64, 0..3_usize).prop_map(
        move |(values, length, size, which)| {
            let mut atoms: Vec<_> = nodes.iter().cloned().zip(values).collect();
            // A text has one value.
            for (index, value) in ["u", "v"].iter().enumerate() {
                let is = value_is(value);
                atoms.iter_mut().filter(|(node, _)| *node == is).for_each(|(_, value)| *value = index == which);
            }
            Request { atoms, length, size }
        },
    )
}

#[test]
fn simplified_condition_is_never_weaker() {
    let config = Config { cases: 20_000, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let (mut held, mut lost) = (0, 0);
    let outcome = TestRunner::new(config).run(&(test(), prop::collection::vec(request(), 8)), |(test, requests)| {
        let simplified = simplified(test.clone());
        for request in &requests {
            let (before, after) = (request.holds(&test), request.holds(&simplified));
            prop_assert!(
                before || !after,
                "{request:?}\n{}\n{}",
                text(&test.clone().node()),
                text(&simplified.clone().node())
            );
            // Only what is asked before a loop may be asked for nothing, where the list is empty.
            prop_assert!(
                after || !before || request.length == 0,
                "{}\n{}",
                text(&test.clone().node()),
                text(&simplified.clone().node())
            );
        }
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let (mut runner, strategy) = (TestRunner::deterministic(), (test(), request()));
    for _ in 0..500 {
        let (test, request) = strategy.new_tree(&mut runner).unwrap().current();
        held += usize::from(request.holds(&test));
        lost += usize::from(request.holds(&test) && !request.holds(&simplified(test.clone())));
    }
    assert!(held > 100 && lost < held / 10, "{held} held, {lost} of them no longer hold");
}

#[test]
fn opposite_holds_where_a_test_does_not() {
    let config = Config { cases: 2_000, failure_persistence: None, rng_seed: RngSeed::Fixed(1), ..Config::default() };
    let outcome = TestRunner::new(config).run(&(test(), request()), |(test, request)| {
        prop_assert_eq!(request.holds(&test), !request.holds(&test.clone().opposite()), "{}", text(&test.node()));
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
}

#[test]
fn renaming_reaches_lists_and_bodies_of_inner_loops() {
    let body = Test::Is(call("_==_", vec![select(ident("c"), "x"), select(ident("m"), "x")]), true);
    let inner = Each { every: true, list: select(ident("c"), "l"), most: 2, item: "m".into(), body };
    let renamed = Test::Each(Box::new(inner)).renamed("c", &"d".into());
    assert_eq!(text(&renamed.node()), "d.l.all(m, d.x == m.x)");
}

#[test]
fn what_an_atom_says_reaches_tests_before_it() {
    let (b, x, y) = (select(ident("a"), "b"), presence(select(ident("a"), "x")), presence(select(ident("a"), "y")));
    let choice = Test::If(Box::new((x, Test::Is(b.clone(), true), Test::Is(y, true))));
    assert_eq!(text(&simplified(Test::All(vec![choice, Test::Is(b, true)])).node()), "a.b && (has(a.x) || has(a.y))");
}

/// `x in [?y]` is not `x == y`.
#[test]
fn an_optional_element_is_no_constant() {
    let root = palisade_cel::parse::parse_unexpanded("t in [?a.?x]", crate::style::SYNTAX).unwrap().root;
    assert_eq!(text(&simplified(Test::Is(root, true)).node()), "t in [?a.?x]");
}

/// A read after a presence test stays after it.
#[test]
fn simplification_keeps_reads_behind_their_presence_test() {
    let path = select(ident("a"), "x");
    let (has, value) = (presence(path.clone()), call("_==_", vec![select(path, "z"), literal::int(1)]));
    let guarded = |yes| Test::If(Box::new((has.clone(), yes, Test::Const(false))));
    let both = Test::All(vec![guarded(Test::Is(value.clone(), true)), Test::Is(select(ident("a"), "b"), true)]);
    assert_eq!(text(&simplified(both).node()), "has(a.x) && a.b && a.x.z == 1");
    let either = Test::Any(vec![Test::Is(value, true), Test::Is(has, false)]);
    assert_eq!(text(&simplified(either).node()), "!has(a.x) || a.x.z == 1");
}

#[test]
fn loops_over_one_list_are_merged_and_presence_tested_once() {
    let each = |body| Test::Each(Box::new(Each { every: true, list: ident("l"), most: 2, item: "c".into(), body }));
    let of = |field: &str| select(ident("c"), field);
    let unless = |field: &str| Test::If(Box::new((presence(of("x")), Test::Is(of(field), true), Test::Const(true))));
    let outside = Test::Is(select(ident("a"), "b"), true);
    let test = Test::All(vec![each(unless("d")), each(Test::All(vec![unless("e"), outside]))]);
    assert_eq!(text(&simplified(test).node()), "a.b && l.all(c, !has(c.x) || (c.d && c.e))");
}
