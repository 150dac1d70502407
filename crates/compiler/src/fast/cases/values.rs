//! The cases of a value: absent or there, and of what it is made.

use std::sync::Arc;

use palisade_cel::ast::{Entry, Expr, Literal, Node};

use super::{Cases, Continuation, Known, NEVER, PARAMETERS, Scope, is_logical, root};
use crate::{
    fast::{
        atoms::{presence, size},
        constants,
        formula::Test,
    },
    tree::{TEMPLATE, call, literal, node, select, truth, variable},
};

impl Cases<'_> {
    /// What `then` makes of each value that CEL may have.
    pub(super) fn value(&self, of: &Node, scope: &Scope, then: Continuation<'_>) -> Test {
        self.step(|| self.value_within(of, scope, then))
    }

    fn value_within(&self, of: &Node, scope: &Scope, then: Continuation<'_>) -> Test {
        if self.is_list(of, scope) {
            return then(Known::List(of.clone(), scope.clone()));
        }
        match &of.expr {
            Expr::Literal(_) => then(Known::Cel(of.clone())),
            Expr::Ident(name) => match scope.get(name) {
                Some(known) => then(known.clone()),
                None => match &**name {
                    PARAMETERS if !self.parameters => NEVER,
                    "object" | "request" | PARAMETERS | TEMPLATE => then(Known::Cel(of.clone())),
                    // A new object has no old one, so nothing says which of its fields can be asked for.
                    "oldObject" => self.give_up(),
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
            // A map whose entries may fail is evaluated as a whole.
            Expr::Map(entries) if self.may_fail && !entries.is_empty() => self.give_up(),
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
        then: Continuation<'_>,
    ) -> Test {
        match (function, target, args) {
            ("_?._", None, [operand, Node { expr: Expr::Literal(Literal::String(field)), .. }]) => {
                self.value(operand, scope, &mut |of| match of {
                    Known::Absent => then(Known::Absent),
                    Known::Present(of) => self.there(*of, field, &mut |found| then(optional(found))),
                    of => self.there(of, field, &mut |found| then(optional(found))),
                })
            }
            ("_[_]", None, [map, key]) => self.value(map, scope, &mut |map| {
                self.entry(&map, key, scope, &mut |found| found.map_or(NEVER, &mut *then))
            }),
            ("_[?_]", None, [map, key]) => self.value(map, scope, &mut |map| match map {
                Known::Absent => then(Known::Absent),
                Known::Present(map) => self.entry(&map, key, scope, &mut |found| then(optional(found))),
                map => self.entry(&map, key, scope, &mut |found| then(optional(found))),
            }),
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
            ("of", Some(Node { expr: Expr::Ident(name), .. }), [value]) if is_optional_type(name, scope) => {
                self.value(value, scope, &mut |found| then(Known::Present(Box::new(found))))
            }
            ("none", Some(Node { expr: Expr::Ident(name), .. }), []) if is_optional_type(name, scope) => {
                then(Known::Absent)
            }
            ("dyn", None, [value]) => self.value(value, scope, then),
            ("hasValue", Some(target), []) => self.value(target, scope, &mut |found| match found {
                Known::Present(_) => then(Known::Cel(truth(true))),
                Known::Absent => then(Known::Cel(truth(false))),
                _ => NEVER,
            }),
            ("_?_:_", None, [condition, yes, no]) => {
                let (yes, no) = (self.value(yes, scope, then), self.value(no, scope, then));
                self.either(condition, scope, yes, no)
            }
            _ if is_logical(function, target, args) => {
                let (yes, no) = (then(Known::Cel(truth(true))), then(Known::Cel(truth(false))));
                self.either(of, scope, yes, no)
            }
            ("size", Some(target), []) | ("size", None, [target]) => self.sized(target, scope, then),
            // It could be a sum of numbers, or a pattern that is none.
            ("_+_", None, args) if self.may_fail && !args.iter().any(is_text) => self.give_up(),
            ("matches", Some(_), [pattern]) if self.may_fail && !is_text(pattern) => self.give_up(),
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
            _ => self.give_up(),
        }
    }

    /// What `then` makes of the size of a list, map or text.
    fn sized(&self, of: &Node, scope: &Scope, then: Continuation<'_>) -> Test {
        let constant = |length: usize| i64::try_from(length).ok().map(|length| Known::Cel(literal::int(length)));
        match &of.expr {
            Expr::List { elements, .. } if self.may_fail && !elements.is_empty() => self.give_up(),
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
    pub(super) fn all_values(
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
    pub(super) fn there(&self, of: Known, field: &Arc<str>, then: &mut dyn FnMut(Option<Known>) -> Test) -> Test {
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

    /// Whether a list is written element by element, and adds these to `elements`. Conditions may hold in any case.
    pub(super) fn written<'n>(&self, list: &'n Node, scope: &Scope, elements: &mut Vec<&'n Node>) -> bool {
        match &list.expr {
            Expr::List { elements: written, optional } if optional.is_empty() => {
                elements.extend(written);
                true
            }
            Expr::Call { function, target: None, args } => match (&**function, args.as_slice()) {
                ("_+_", [left, right]) => self.written(left, scope, elements) && self.written(right, scope, elements),
                ("_?_:_", [condition, yes, _]) => {
                    self.holds(condition, true, scope) == Test::Const(true) && self.written(yes, scope, elements)
                }
                _ => false,
            },
            _ => false,
        }
    }

    pub(super) fn assume(&self, atom: Node) {
        let mut assumed = self.assumed.borrow_mut();
        if !assumed.contains(&atom) {
            assumed.push(atom);
        }
    }

    /// What `then` makes of an entry of a map, if it is there.
    fn entry(&self, map: &Known, key: &Node, scope: &Scope, then: &mut dyn FnMut(Option<Known>) -> Test) -> Test {
        self.value(key, scope, &mut |key| {
            let Known::Cel(key) = key else { return NEVER };
            match (map, &key.expr) {
                (Known::Map(entries, _), _) if entries.is_empty() => then(None),
                // A text is the key of a map: a list is read by numbers, for which `in` asks something else.
                (Known::Cel(map), Expr::Literal(Literal::String(_))) => {
                    let found = call("_[_]", vec![map.clone(), key.clone()]);
                    let asked = call("@in", vec![key.clone(), map.clone()]);
                    if root(map) == Some(PARAMETERS) {
                        self.assume(asked);
                        return then(Some(Known::Cel(found)));
                    }
                    let (yes, no) = (then(Some(Known::Cel(found))), then(None));
                    Test::If(Box::new((asked, yes, no)))
                }
                (Known::Cel(map), Expr::Ident(item)) if self.range_of(item).as_ref() == Some(map) => {
                    then(Some(Known::Cel(call("_[_]", vec![map.clone(), key.clone()]))))
                }
                (Known::Cel(_), _) => self.give_up(),
                _ => NEVER,
            }
        })
    }
}

fn optional(found: Option<Known>) -> Known {
    found.map_or(Known::Absent, |value| Known::Present(Box::new(value)))
}

fn entry_of<'e>(entries: &'e [Entry], field: &str) -> Option<&'e Node> {
    let is = |key: &Node| matches!(&key.expr, Expr::Literal(Literal::String(key)) if &**key == field);
    entries.iter().find(|entry| is(&entry.key)).map(|entry| &entry.value)
}

/// Whether an expression is a constant text.
fn is_text(of: &Node) -> bool {
    matches!(of.expr, Expr::Literal(Literal::String(_)))
}

/// Whether a name is that of the namespace of optional values, and no loop hides it.
fn is_optional_type(name: &str, scope: &Scope) -> bool {
    name == "optional" && scope.get(name).is_none()
}
