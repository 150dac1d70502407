//! From expressions to tests: this module evaluates an expression as far as it can without a request, and makes each
//! question that only a request can answer a case.
//!
//! `c.?a.?b.orValue('') != ''` has three cases: `a` is absent, `b` is, or neither. In the first two the value is known;
//! the third reads `c.a.b`, which is surely there. So a test never makes an optional value, and never fails.
//!
//! Where it cannot exclude a failure, or does not understand a part, the test is [`Test::Const`]`(false)`: stricter
//! than the expression, and never weaker.

use std::{
    cell::{Cell, RefCell},
    collections::BTreeMap,
    sync::Arc,
};

use palisade_cel::ast::{Entry, Expr, Literal, Node};

use super::{
    constants,
    formula::{Each, Test},
    simplify::simplified,
    tree::{TEMPLATE, call, ident, literal, node, presence, select, size, truth, variable},
};
use crate::fold::looping;

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

/// The variable with the parameters.
const PARAMETERS: &str = "params";

/// The longest list that the fast path loops over, and the longest within another loop. The full expressions judge
/// longer lists, which the pods of most tenants do not have.
const LONGEST: u64 = 32;
const LONGEST_WITHIN: u64 = 16;

/// The most fields that an object in a pod has set: a volume has its name and one source.
const FIELDS: u64 = 4;

/// The fields that parameters always have: the definition of their kind requires them.
const ALWAYS_IN_PARAMETERS: [&str; 7] =
    ["metadata", "spec", "problem", "integers", "strings", "booleans", "stringLists"];

/// The name for lists of containers.
const LIST: &str = "list";

/// How many values one test may look at. Beyond that, it gives up.
const MAX_STEPS: usize = 200_000;

/// Makes tests.
pub(super) struct Cases<'a> {
    /// The definitions of the policy's variables.
    pub definitions: &'a BTreeMap<&'a str, Node>,
    /// The paths that are there in every request.
    pub present: &'a [Node],
    /// Paths that the fast path does not read: few requests have them. Where they matter, the full expressions judge.
    pub ignored: &'a [Node],
    /// Whether there are parameters to read. All that an expression reads of them is assumed to be there.
    pub parameters: bool,
    /// Atoms without which no test holds.
    pub assumed: RefCell<Vec<Node>>,
    /// The elements of the enclosing loops, and their lists.
    items: RefCell<Vec<(Arc<str>, Node)>>,
    steps: Cell<usize>,
    /// Whether an expression calls a function that is not understood.
    pub gave_up: Cell<bool>,
}

impl<'a> Cases<'a> {
    /// With nothing assumed yet.
    pub fn new(definitions: &'a BTreeMap<&'a str, Node>, present: &'a [Node], ignored: &'a [Node]) -> Self {
        Self {
            definitions,
            present,
            ignored,
            parameters: true,
            assumed: RefCell::default(),
            items: RefCell::default(),
            steps: Cell::new(0),
            gave_up: Cell::new(false),
        }
    }

    /// A test that holds only where CEL of type bool has this value.
    pub fn holds(&self, of: &Node, wanted: bool, scope: &Scope) -> Test {
        let both = |args: &[Node], and: bool| {
            let tests = args.iter().map(|arg| self.holds(arg, wanted, scope)).collect();
            if and { Test::All(tests) } else { Test::Any(tests) }
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
            Known::Cel(Node { expr: Expr::Literal(Literal::Bool(value)), .. }) => Test::Const(value == wanted),
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

    /// What `then` makes of each value that CEL may have.
    pub fn value(&self, of: &Node, scope: &Scope, then: Then<'_>) -> Test {
        self.steps.set(self.steps.get() + 1);
        if self.steps.get() > MAX_STEPS {
            return NEVER;
        }
        if self.is_list(of) {
            return then(Known::List(of.clone(), scope.clone()));
        }
        match &of.expr {
            Expr::Literal(_) => then(Known::Cel(of.clone())),
            Expr::Ident(name) => match scope.get(name) {
                Some(known) => then(known.clone()),
                None => match &**name {
                    PARAMETERS if !self.parameters => NEVER,
                    "object" | "oldObject" | "request" | PARAMETERS | TEMPLATE => then(Known::Cel(of.clone())),
                    _ => NEVER,
                },
            },
            Expr::Select { operand, field, test: false } => {
                match variable(of).filter(|_| scope.get("variables").is_none()) {
                    Some(name) => match self.definitions.get(&**name) {
                        Some(definition) => self.value(definition, &Scope::default(), then),
                        None => NEVER,
                    },
                    None => self.value(operand, scope, &mut |of| {
                        self.there(of, field, &mut |found| found.map_or(NEVER, &mut *then))
                    }),
                }
            }
            Expr::Map(entries) => then(Known::Map(entries.clone(), scope.clone())),
            Expr::Call { function, target, args } => self.called(of, function, target.as_deref(), args, scope, then),
            _ => NEVER,
        }
    }

    fn called(
        &self,
        of: &Node,
        function: &str,
        target: Option<&Node>,
        args: &[Node],
        scope: &Scope,
        then: Then<'_>,
    ) -> Test {
        match (function, target, args) {
            ("_?._", None, [operand, Node { expr: Expr::Literal(Literal::String(field)), .. }]) => {
                self.value(operand, scope, &mut |of| match of {
                    Known::Absent => then(Known::Absent),
                    Known::Present(of) => self.there(*of, field, &mut |found| then(optional(found))),
                    of => self.there(of, field, &mut |found| then(optional(found))),
                })
            }
            ("_[_]", None, [map, key]) => self.entry(map, key, scope, &mut |found| found.map_or(NEVER, &mut *then)),
            ("_[?_]", None, [map, key]) => self.entry(map, key, scope, &mut |found| then(optional(found))),
            ("orValue", Some(target), [other]) => self.value(target, scope, &mut |found| match found {
                Known::Present(value) => then(*value),
                Known::Absent => self.value(other, scope, then),
                _ => NEVER,
            }),
            ("or", Some(target), [other]) => self.value(target, scope, &mut |found| match found {
                Known::Absent => self.value(other, scope, then),
                present @ Known::Present(_) => then(present),
                _ => NEVER,
            }),
            ("value", Some(target), []) => self.value(target, scope, &mut |found| match found {
                Known::Present(value) => then(*value),
                _ => NEVER,
            }),
            ("hasValue", Some(target), []) => self.value(target, scope, &mut |found| match found {
                Known::Present(_) => then(Known::Cel(truth(true))),
                Known::Absent => then(Known::Cel(truth(false))),
                _ => NEVER,
            }),
            ("_?_:_", None, [condition, yes, no]) => {
                let (yes, no) = (self.value(yes, scope, then), self.value(no, scope, then));
                self.either(condition, scope, yes, no)
            }
            ("!_" | "_&&_" | "_||_" | "has", None, _) | ("all" | "exists", Some(_), _) => {
                let (yes, no) = (then(Known::Cel(truth(true))), then(Known::Cel(truth(false))));
                self.either(of, scope, yes, no)
            }
            ("size", Some(target), []) | ("size", None, [target]) => self.sized(target, scope, then),
            _ if constants::never_fails(function, args.len()) => {
                let nodes: Vec<_> = target.into_iter().chain(args).collect();
                self.all_values(&nodes, scope, &mut Vec::new(), &mut |parts| {
                    let (target, args) = match target {
                        Some(_) => (Some(Box::new(parts[0].clone())), parts[1..].to_vec()),
                        None => (None, parts.to_vec()),
                    };
                    let called = node(Expr::Call { function: function.into(), target, args });
                    then(Known::Cel(constants::folded(called)))
                })
            }
            _ => {
                self.gave_up.set(true);
                NEVER
            }
        }
    }

    /// What `then` makes of the size of a list, map or text.
    fn sized(&self, of: &Node, scope: &Scope, then: Then<'_>) -> Test {
        let constant = |length: usize| i64::try_from(length).ok().map(|length| Known::Cel(literal::int(length)));
        match &of.expr {
            Expr::List { elements, optional } if optional.is_empty() => constant(elements.len()).map_or(NEVER, then),
            Expr::Call { function, target: Some(target), args } if &**function == "orValue" && args.len() == 1 => self
                .value(target, scope, &mut |found| match found {
                    Known::Present(value) => match *value {
                        Known::Cel(value) => then(Known::Cel(constants::folded(size(value)))),
                        _ => NEVER,
                    },
                    Known::Absent => self.sized(&args[0], scope, then),
                    _ => NEVER,
                }),
            _ => self.value(of, scope, &mut |of| match of {
                Known::Cel(of) => then(Known::Cel(constants::folded(size(of)))),
                Known::Map(entries, _) => constant(entries.len()).map_or(NEVER, &mut *then),
                _ => NEVER,
            }),
        }
    }

    /// What `then` makes of the values of all of these.
    fn all_values(
        &self,
        nodes: &[&Node],
        scope: &Scope,
        before: &mut Vec<Node>,
        then: &mut dyn FnMut(&[Node]) -> Test,
    ) -> Test {
        let Some((first, rest)) = nodes.split_first() else { return then(before) };
        self.value(first, scope, &mut |value| {
            let Known::Cel(value) = value else { return NEVER };
            before.push(value);
            let test = self.all_values(rest, scope, before, then);
            before.pop();
            test
        })
    }

    /// What `then` makes of a field, if it is there.
    fn there(&self, of: Known, field: &Arc<str>, then: &mut dyn FnMut(Option<Known>) -> Test) -> Test {
        match of {
            Known::Cel(of) => {
                let path = select(of, field);
                let found = |path: &Node| Some(Known::Cel(path.clone()));
                if self.is_present(&path) {
                    return then(found(&path));
                }
                if self.ignored.contains(&path) {
                    return NEVER;
                }
                let (yes, no) = (then(found(&path)), then(None));
                if yes == no { yes } else { Test::If(Box::new((presence(path), yes, no))) }
            }
            Known::Map(entries, scope) => match entry_of(&entries, field) {
                Some(value) => self.value(value, &scope, &mut |value| then(Some(value))),
                None => then(None),
            },
            _ => NEVER,
        }
    }

    fn is_present(&self, path: &Node) -> bool {
        let Expr::Select { operand, field, .. } = &path.expr else { return false };
        // An object in a list of a pod that has a name always has it.
        let named =
            || matches!(&operand.expr, Expr::Ident(item) if self.items.borrow().iter().any(|(of, _)| of == item));
        self.present.contains(path)
            || (root(path) == Some(PARAMETERS) && ALWAYS_IN_PARAMETERS.contains(&&**field))
            || (&**field == "name" && named())
    }

    fn assume(&self, atom: Node) {
        let mut assumed = self.assumed.borrow_mut();
        if !assumed.contains(&atom) {
            assumed.push(atom);
        }
    }

    /// What `then` makes of an entry of a map, if it is there.
    fn entry(&self, map: &Node, key: &Node, scope: &Scope, then: &mut dyn FnMut(Option<Known>) -> Test) -> Test {
        self.value(map, scope, &mut |map| {
            self.value(key, scope, &mut |key| {
                let Known::Cel(key) = key else { return NEVER };
                match (&map, &key.expr) {
                    // Only maps are read by keys here.
                    (_, Expr::Literal(Literal::Int(_))) => NEVER,
                    (Known::Map(entries, _), _) if entries.is_empty() => then(None),
                    (Known::Cel(map), _) => {
                        let found = call("_[_]", vec![map.clone(), key.clone()]);
                        let asked = call("@in", vec![key.clone(), map.clone()]);
                        let looped = matches!(&key.expr, Expr::Ident(item)
                            if self.items.borrow().iter().any(|(of, range)| of == item && range == map));
                        if looped {
                            return then(Some(Known::Cel(found)));
                        }
                        if root(map) == Some(PARAMETERS) {
                            self.assume(asked);
                            return then(Some(Known::Cel(found)));
                        }
                        let (yes, no) = (then(Some(Known::Cel(found))), then(None));
                        Test::If(Box::new((asked, yes, no)))
                    }
                    _ => NEVER,
                }
            })
        })
    }

    /// Whether an expression surely is a list that is better evaluated element by element.
    fn is_list(&self, of: &Node) -> bool {
        match &of.expr {
            Expr::List { optional, .. } => optional.is_empty(),
            Expr::Select { .. } => {
                variable(of).and_then(|name| self.definitions.get(&**name)).is_some_and(|of| self.is_list(of))
            }
            Expr::Call { function, target, args } => match (&**function, target, args.as_slice()) {
                ("_?_:_", None, [_, yes, no]) => self.is_list(yes) || self.is_list(no),
                ("_+_", None, [left, right]) => self.is_list(left) || self.is_list(right),
                ("orValue", Some(_), [other]) => self.is_list(other),
                ("map" | "filter" | "transformList", Some(_), args) => looping(function, args).is_some(),
                _ => false,
            },
            _ => false,
        }
    }

    /// A test that all elements of a list meet (`every`), or that one meets.
    pub fn each(&self, list: &Node, scope: &Scope, every: bool, then: Then<'_>) -> Test {
        let all = |tests| if every { Test::All(tests) } else { Test::Any(tests) };
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
                        (yes, no) if yes == nothing && every && no != NEVER => self.unless(condition, true, scope, no),
                        (yes, no) if no == nothing && every && yes != NEVER => {
                            self.unless(condition, false, scope, yes)
                        }
                        (yes, no) => self.either(condition, scope, yes, no),
                    }
                }
                ("filter", Some(of), [Node { expr: Expr::Ident(item), .. }, test]) => {
                    self.each(of, scope, every, &mut |element| {
                        let test = self.holds(test, !every, &scope.with(item, element.clone()));
                        let then = then(element);
                        if every { Test::Any(vec![test, then]) } else { Test::All(vec![test, then]) }
                    })
                }
                ("map", Some(of), [Node { expr: Expr::Ident(item), .. }, rest @ .., value])
                | ("transformList", Some(of), [_, Node { expr: Expr::Ident(item), .. }, rest @ .., value]) => self
                    .each(of, scope, every, &mut |element| {
                        let scope = scope.with(item, element);
                        let then = self.value(value, &scope, then);
                        let tests = rest.iter().map(|test| self.holds(test, !every, &scope)).chain([then]).collect();
                        if every { Test::Any(tests) } else { Test::All(tests) }
                    }),
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

    /// The list of the summed lists, if each of them is a field, so that the test of the elements is written once.
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
                elements.push(found?);
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

    fn elements(&self, list: Known, every: bool, then: Then<'_>) -> Test {
        match list {
            Known::List(list, scope) => self.each(&list, &scope, every, then),
            Known::Map(entries, _) if entries.is_empty() => Test::Const(every),
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
                    Test::Const(_) => Test::Is(super::tree::is_empty(list), every),
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
        if around == 0 { LONGEST } else { LONGEST_WITHIN }
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
    fn member(&self, what: &Node, list: &Node, wanted: bool, scope: &Scope) -> Test {
        if let Expr::List { elements, .. } = &list.expr {
            let elements: Vec<_> = elements.iter().collect();
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
        if let Expr::Call { function, target: Some(target), args } = &list.expr
            && (&**function, args.len()) == ("orValue", 1)
        {
            return self.value(target, scope, &mut |found| match found {
                Known::Present(list) => self.member_of(what, scope, &list, wanted),
                Known::Absent => self.member(what, &args[0], wanted, scope),
                _ => NEVER,
            });
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
    fn counted(&self, list: &Node, compared: &str, to: i64, wanted: bool, scope: &Scope) -> Test {
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

fn optional(found: Option<Known>) -> Known {
    found.map_or(Known::Absent, |value| Known::Present(Box::new(value)))
}

fn entry_of<'e>(entries: &'e [Entry], field: &str) -> Option<&'e Node> {
    let is = |key: &Node| matches!(&key.expr, Expr::Literal(Literal::String(key)) if &**key == field);
    entries.iter().find(|entry| is(&entry.key)).map(|entry| &entry.value)
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
