//! The cases of a list: how long it is, and what holds of its elements.

use std::sync::Arc;

use palisade_cel::ast::{Expr, Literal, Node};

use super::{Cases, Continuation, Known, MAX_LOOPS, NEVER, PARAMETERS, Scope, root};
use crate::{
    fast::{
        atoms::{is_empty, size},
        constants,
        formula::{Each, Test},
        simplify::simplified,
    },
    tree::{call, ident, literal, looping, node, variable},
};

/// Maximum length of a list that the fast path loops over, and within two other loops. The full expressions
/// evaluate longer lists, which the pods of most tenants do not have.
const MAX_LIST: u64 = 32;
const MAX_INNERMOST_LIST: u64 = 16;

/// The most fields that an object in a pod has set: a volume has its name and one source.
const FIELDS: u64 = 4;

/// The name for lists of containers.
const LIST: &str = "list";

impl Cases<'_> {
    /// Whether an expression is a list that is better evaluated element by element.
    pub(super) fn is_list(&self, of: &Node, scope: &Scope) -> bool {
        match &of.expr {
            Expr::List { optional, .. } => optional.is_empty(),
            Expr::Select { .. } => {
                // Definitions use only those before them, so this ends.
                let name = variable(of).filter(|_| scope.get("variables").is_none());
                name.and_then(|name| self.definitions.get(&**name))
                    .is_some_and(|of| self.is_list(of, &Scope::default()))
            }
            Expr::Call { function, target, args } => match (&**function, target, args.as_slice()) {
                ("_+_", None, [left, right]) => self.is_list(left, scope) || self.is_list(right, scope),
                ("_?_:_", None, [_, yes, no]) => self.is_list(yes, scope) && self.is_list(no, scope),
                ("orValue", Some(_), [other]) => self.is_list(other, scope),
                ("map" | "filter" | "transformList", Some(_), args) => looping(function, args).is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    /// A test that all elements of a list meet (`every`), or that one meets.
    pub fn each(&self, list: &Node, scope: &Scope, every: bool, then: Continuation<'_>) -> Test {
        self.step(|| self.each_within(list, scope, every, then))
    }

    fn each_within(&self, list: &Node, scope: &Scope, every: bool, then: Continuation<'_>) -> Test {
        let all = |tests| Test::of(tests, every);
        let nothing = Test::Const(every);
        if let Some(name) = variable(list).filter(|_| scope.get("variables").is_none()) {
            return match self.definitions.get(&**name) {
                Some(definition) => self.each(definition, &Scope::default(), every, then),
                None => NEVER,
            };
        }
        match &list.expr {
            Expr::List { elements, optional } if optional.is_empty() => {
                all(elements.iter().map(|element| self.value(element, scope, then)).collect())
            }
            Expr::Call { function, target, args } => match (&**function, target.as_deref(), args.as_slice()) {
                ("_+_", None, [left, right]) => match self.lists(list, scope) {
                    Some(lists) if every => {
                        let item = self.fresh(LIST);
                        self.items.borrow_mut().push((Arc::clone(&item), lists.clone()));
                        let body = self.elements(Known::Cel(ident(&item)), every, then);
                        self.items.borrow_mut().pop();
                        let most = 3;
                        Test::Each(Box::new(Each { every, list: lists, most, item, body }))
                    }
                    _ => all(vec![self.each(left, scope, every, then), self.each(right, scope, every, then)]),
                },
                ("_?_:_", None, [condition, yes, no]) => {
                    let (yes, no) = (self.each(yes, scope, every, then), self.each(no, scope, every, then));
                    // A test that holds for the elements of either list needs no condition.
                    match (simplified(yes), simplified(no)) {
                        (yes, no) if yes == nothing && every && no != NEVER && !self.may_fail => {
                            self.unless(condition, true, scope, no)
                        }
                        (yes, no) if no == nothing && every && yes != NEVER && !self.may_fail => {
                            self.unless(condition, false, scope, yes)
                        }
                        (yes, no) => self.either(condition, scope, yes, no),
                    }
                }
                ("filter", Some(of), [Node { expr: Expr::Ident(item), .. }, test]) => {
                    self.each(of, scope, every, &mut |element| {
                        let scope = scope.with(item, element.clone());
                        self.conditional(&[test], &scope, every, then(element))
                    })
                }
                ("map" | "transformList", Some(of), _) => {
                    let Some((names, rest)) = looping(function, args).map(|found| args.split_at(found.names.len()))
                    else {
                        return self.give_up();
                    };
                    self.each(of, scope, every, &mut |element| {
                        self.mapped(names, rest, element, scope, every, &mut *then)
                    })
                }
                ("orValue", Some(target), [other]) => self.value(target, scope, &mut |found| match found {
                    Known::Present(value) => self.elements(*value, every, then),
                    Known::Absent => self.each(other, scope, every, then),
                    _ => NEVER,
                }),
                _ => self.value(list, scope, &mut |list| self.elements(list, every, then)),
            },
            _ => self.value(list, scope, &mut |list| self.elements(list, every, then)),
        }
    }

    /// A test of the value that a macro makes of an element: `names` are bound to its index and the element, the last
    /// of `rest` is the value, and those before it are conditions.
    fn mapped(
        &self,
        names: &[Node],
        rest: &[Node],
        element: Known,
        scope: &Scope,
        every: bool,
        then: Continuation<'_>,
    ) -> Test {
        let Some((value, conditions)) = rest.split_last() else { return NEVER };
        let mut values = [Known::Unknown, element].into_iter().skip(2 - names.len());
        let scope = names.iter().fold(scope.clone(), |scope, name| match (&name.expr, values.next()) {
            (Expr::Ident(name), Some(value)) => scope.with(name, value),
            _ => scope,
        });
        let then = self.value(value, &scope, then);
        self.conditional(&conditions.iter().collect::<Vec<_>>(), &scope, every, then)
    }

    /// A test of an element that a macro leaves out unless conditions hold: it is left out, or (for one that must do:
    /// and not) `then` holds. Where a condition may fail, it is evaluated for each element, whatever `then` is.
    fn conditional(&self, conditions: &[&Node], scope: &Scope, every: bool, then: Test) -> Test {
        let hold = |wanted: bool| conditions.iter().map(move |condition| self.holds(condition, wanted, scope));
        if !every {
            // An element for which a condition fails makes the whole list fail.
            if self.may_fail && !conditions.is_empty() {
                return self.give_up();
            }
            return Test::All(hold(true).chain([then]).collect());
        }
        if self.may_fail && !conditions.is_empty() {
            let kept = Test::All(hold(true).chain([then]).collect());
            return Test::Any(hold(false).chain([kept]).collect());
        }
        Test::Any(hold(false).chain([then]).collect())
    }

    /// The list of the summed lists, if each of them is a field that is there or optional, so that the test of the
    /// elements is written once.
    fn lists(&self, sum: &Node, scope: &Scope) -> Option<Node> {
        let mut terms = Vec::new();
        summands(sum, &mut terms);
        let (mut elements, mut optional) = (Vec::new(), Vec::new());
        for term in terms {
            let (path, may_be_absent) = match &term.expr {
                Expr::Call { function, target: Some(path), .. } if &**function == "orValue" => (&**path, true),
                _ => (term, false),
            };
            let mut found = None;
            self.value(path, scope, &mut |value| {
                let (value, is_optional) = match value {
                    Known::Present(value) => (*value, true),
                    other => (other, false),
                };
                if let Known::Cel(path) = value
                    && is_optional == may_be_absent
                {
                    found = Some(path);
                }
                Test::Const(false)
            });
            let Expr::Select { operand, field, .. } = &found.as_ref()?.expr else { return None };
            if may_be_absent {
                optional.push(elements.len());
                elements.push(call("_?._", vec![(**operand).clone(), literal::string(field)]));
            } else {
                // A field that may be absent would fail here.
                elements.push(found.filter(|path| self.is_present(path))?);
            }
        }
        Some(node(Expr::List { elements, optional }))
    }

    /// `test`; or, if that is cheap to test, that a condition has this value.
    fn unless(&self, condition: &Node, value: bool, scope: &Scope, test: Test) -> Test {
        match simplified(self.holds(condition, value, scope)) {
            condition @ (Test::Is(..) | Test::Const(_)) => Test::Any(vec![condition, test]),
            _ => test,
        }
    }

    pub(super) fn elements(&self, list: Known, every: bool, then: Continuation<'_>) -> Test {
        match list {
            Known::List(list, scope) => self.each(&list, &scope, every, then),
            Known::Map(entries, _) if entries.is_empty() => Test::Const(every),
            Known::Cel(_) if self.items.borrow().len() == MAX_LOOPS => self.give_up(),
            Known::Cel(list) => {
                let item = self.item(&list);
                self.items.borrow_mut().push((Arc::clone(&item), list.clone()));
                let body = simplified(then(Known::Cel(ident(&item))));
                self.items.borrow_mut().pop();
                // Few pods comply because one of many elements does: most profiles demand less.
                if !every && !matches!(body, Test::Const(_)) && root(&list) != Some(PARAMETERS) {
                    return NEVER;
                }
                // An object has no more fields than its type.
                let is_object = matches!(&list.expr, Expr::Ident(name) if !is_lists(name));
                let most = if is_object { FIELDS } else { self.longest() };
                match body {
                    Test::Const(value) if value == every => Test::Const(value),
                    // No loop is needed.
                    Test::Const(_) => Test::Is(is_empty(list), every),
                    body if is_object => Test::Each(Box::new(Each { every, list, most, item, body })),
                    body => {
                        let bound = bounded(list.clone(), i64::try_from(most).unwrap_or_default());
                        Test::All(vec![bound, Test::Each(Box::new(Each { every, list, most, item, body }))])
                    }
                }
            }
            _ => NEVER,
        }
    }

    /// The longest list that the fast path loops over at this point.
    fn longest(&self) -> u64 {
        let items = self.items.borrow();
        let around = items.iter().filter(|(item, _)| !is_lists(item)).count();
        match around {
            0 => MAX_LIST,
            1 => self.within,
            _ => MAX_INNERMOST_LIST,
        }
    }

    /// A name for the elements of a list.
    fn item(&self, list: &Node) -> Arc<str> {
        let of = match &list.expr {
            Expr::Select { field, .. } if field.ends_with("ontainers") => "c",
            Expr::Select { field, .. } if field.ends_with("ounts") => "m",
            Expr::Select { field, .. } => &field[..field.chars().next().map_or(0, char::len_utf8)],
            Expr::Ident(name) if is_lists(name) => "c",
            _ => "x",
        };
        self.fresh(&of.to_ascii_lowercase())
    }

    /// A name that no loop around uses.
    fn fresh(&self, name: &str) -> Arc<str> {
        let taken = |name: &str| self.items.borrow().iter().any(|(item, _)| &**item == name);
        let mut fresh = name.to_owned();
        let mut number = 1;
        while taken(&fresh) {
            number += 1;
            fresh = format!("{name}{number}");
        }
        fresh.into()
    }

    /// Whether a list has an element.
    pub(super) fn member(&self, what: &Node, list: &Node, wanted: bool, scope: &Scope) -> Test {
        self.step(|| self.member_within(what, list, wanted, scope))
    }

    fn member_within(&self, what: &Node, list: &Node, wanted: bool, scope: &Scope) -> Test {
        let mut elements = Vec::new();
        if self.written(list, scope, &mut elements) {
            return self.value(what, scope, &mut |what| {
                let Known::Cel(what) = what else { return NEVER };
                self.all_values(&elements, scope, &mut Vec::new(), &mut |values| {
                    let known = constants::folded(call("@in", vec![what.clone(), literal::list(values.to_vec())]));
                    match known.expr {
                        Expr::Literal(Literal::Bool(value)) => Test::Const(value == wanted),
                        expr => Test::Is(node(expr), wanted),
                    }
                })
            });
        }
        if let Expr::Call { function, target, args } = &list.expr {
            match (&**function, target, args.as_slice()) {
                ("orValue", Some(target), [other]) => {
                    return self.value(target, scope, &mut |found| match found {
                        Known::Present(list) => self.member_of(what, scope, &list, wanted),
                        Known::Absent => self.member(what, other, wanted, scope),
                        _ => NEVER,
                    });
                }
                ("_?_:_", None, [condition, yes, no]) => {
                    let [yes, no] = [yes, no].map(|list| self.member(what, list, wanted, scope));
                    return self.either(condition, scope, yes, no);
                }
                ("dyn", None, [list]) => return self.member(what, list, wanted, scope),
                _ => {}
            }
        }
        self.value(list, scope, &mut |list| self.member_of(what, scope, &list, wanted))
    }

    fn member_of(&self, what: &Node, scope: &Scope, list: &Known, wanted: bool) -> Test {
        self.value(what, scope, &mut |what| {
            let Known::Cel(what) = what else { return NEVER };
            let is = |found: Node| match found.expr {
                Expr::Literal(Literal::Bool(value)) => Test::Const(value == wanted),
                expr => Test::Is(node(expr), wanted),
            };
            match list {
                Known::Cel(list) => Test::Is(call("@in", vec![what, list.clone()]), wanted),
                Known::Map(entries, _) if entries.is_empty() => Test::Const(!wanted),
                Known::List(list, of) => self.each(list, of, !wanted, &mut |element| match element {
                    Known::Cel(element) => is(constants::folded(call("_==_", vec![element, what.clone()]))),
                    _ => NEVER,
                }),
                _ => NEVER,
            }
        })
    }

    /// How many elements a list has, compared with a number.
    pub(super) fn counted(&self, list: &Node, compared: &str, to: i64, wanted: bool, scope: &Scope) -> Test {
        let empty = |every: bool| self.each(list, scope, every, &mut |_| Test::Const(!every));
        match (compared, to, wanted) {
            ("_==_", 0, true) | ("_!=_" | "_>_", 0, false) | ("_>=_", 1, false) => empty(true),
            ("_==_", 0, false) | ("_!=_" | "_>_", 0, true) | ("_>=_", 1, true) => empty(false),
            ("_<=_", most, true) | ("_>_", most, false) => self.at_most(list, most, scope),
            ("_<_", above, true) | ("_>=_", above, false) => self.at_most(list, above - 1, scope),
            _ => NEVER,
        }
    }

    /// A list is not longer than this. For a sum of lists, each gets its share.
    fn at_most(&self, list: &Node, most: i64, scope: &Scope) -> Test {
        if let Some(name) = variable(list).filter(|_| scope.get("variables").is_none()) {
            return self.definitions.get(&**name).map_or(NEVER, |of| self.at_most(of, most, &Scope::default()));
        }
        match &list.expr {
            // Elements and tests that may fail are evaluated, not counted.
            Expr::List { elements, .. } if self.may_fail && !elements.is_empty() => self.give_up(),
            Expr::List { elements, .. } => {
                Test::Const(i64::try_from(elements.len()).is_ok_and(|length| length <= most))
            }
            Expr::Call { function, target, args } => match (&**function, target.as_deref(), args.as_slice()) {
                ("_+_", None, _) => {
                    let mut terms = Vec::new();
                    summands(list, &mut terms);
                    let part = most / i64::try_from(terms.len()).unwrap_or(most).max(1);
                    Test::All(terms.into_iter().map(|term| self.at_most(term, part, scope)).collect())
                }
                ("filter" | "map", Some(_), _) if self.may_fail => self.give_up(),
                ("filter" | "map", Some(of), _) => self.at_most(of, most, scope),
                ("orValue", Some(target), [other]) => self.value(target, scope, &mut |found| match found {
                    Known::Present(value) => match *value {
                        Known::Cel(list) => bounded(list, most),
                        Known::List(list, scope) => self.at_most(&list, most, &scope),
                        _ => NEVER,
                    },
                    Known::Absent => self.at_most(other, most, scope),
                    _ => NEVER,
                }),
                _ => NEVER,
            },
            _ => self.value(list, scope, &mut |list| match list {
                Known::Cel(list) => bounded(list, most),
                _ => NEVER,
            }),
        }
    }
}

/// Whether a loop's element is one of several lists.
fn is_lists(item: &str) -> bool {
    item.starts_with(LIST)
}

fn bounded(list: Node, most: i64) -> Test {
    Test::Is(call("_<=_", vec![size(list), literal::int(most)]), true)
}

fn summands<'n>(of: &'n Node, terms: &mut Vec<&'n Node>) {
    match &of.expr {
        Expr::Call { function, target: None, args } if &**function == "_+_" => {
            for arg in args {
                summands(arg, terms);
            }
        }
        _ => terms.push(of),
    }
}
