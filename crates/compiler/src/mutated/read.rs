//! Finds the reads of fields in an expression, and rewrites those that a mutation sets.

use std::{mem, sync::Arc};

use palisade_cel::ast::{Expr, Literal, Node};

use super::{Default, Redirected};
use crate::tree::{bound, call, ident, literal, looping, mentions, node, replace, select, unused, variable};

/// The names in the expressions that are put in place of reads.
const NEEDED: [&str; 3] = ["params", "request", "variables"];

/// The object in which a field is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The pod's spec.
    Spec,
    /// A container of any kind.
    Container,
    /// A volume.
    Volume,
}

/// The place of a field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub owner: Owner,
    /// The path below the owner.
    pub path: Vec<Arc<str>>,
}

impl Place {
    fn is_below(&self, other: &Self) -> bool {
        self.owner == other.owner && self.path.len() > other.path.len() && self.path.starts_with(&other.path)
    }

    fn is_image(&self) -> bool {
        let path: Vec<_> = self.path.iter().map(|key| &**key).collect();
        matches!((self.owner, &path[..]), (Owner::Container, ["image"]) | (Owner::Volume, ["image", "reference"]))
    }
}

/// An expression that reads a place.
#[derive(Clone, Debug)]
struct Read {
    /// The owner, as an expression.
    owner: Node,
    place: Place,
    /// Whether it is an optional value.
    is_optional: bool,
}

impl Read {
    fn of_owner(owner: Node, kind: Owner) -> Self {
        Self { owner, place: Place { owner: kind, path: Vec::new() }, is_optional: false }
    }

    fn field(mut self, field: &Arc<str>, is_optional: bool) -> Self {
        self.place.path.push(field.clone());
        self.is_optional |= is_optional;
        self
    }

    /// The same as an optional value that is never an error.
    fn optional(&self) -> Node {
        self.place.path.iter().fold(self.owner.clone(), |of, key| call("_?._", vec![of, literal::string(key)]))
    }
}

/// The names in scope, innermost last, and what they read. A name without a read hides an outer one.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    names: Vec<(Arc<str>, Option<Read>)>,
    /// The name of the redirected image of the outermost item.
    image: Option<Arc<str>>,
}

impl Scope {
    /// The scope of an expression about an item of a list.
    pub fn of_item(name: &str, kind: Owner) -> Self {
        Self { names: vec![(name.into(), Some(Read::of_owner(ident(name), kind)))], image: None }
    }

    /// The item's image: empty if it has none.
    pub fn image(&self) -> Option<Node> {
        let (_, item) = self.names.first()?;
        let item = item.as_ref()?;
        let path: &[&str] = match item.place.owner {
            Owner::Container => &["image"],
            Owner::Volume => &["image", "reference"],
            Owner::Spec => return None,
        };
        let read = path.iter().fold(item.clone(), |read, key| read.field(&(*key).into(), true));
        Some(member("orValue", read.optional(), vec![literal::string("")]))
    }

    /// The same scope, in which a name refers to the redirected image of the item.
    pub fn with_image(&self, name: &Arc<str>) -> Self {
        let mut scope = self.with(name, None);
        scope.image = Some(name.clone());
        scope
    }

    fn with(&self, name: &Arc<str>, read: Option<Read>) -> Self {
        let mut scope = self.clone();
        // What was read from an owner of this name, no name reads any more.
        for (_, other) in &mut scope.names {
            if other.as_ref().is_some_and(|other| mentions(&other.owner, name)) {
                *other = None;
            }
        }
        scope.names.push((name.clone(), read));
        scope
    }

    fn get(&self, name: &str) -> Option<&Read> {
        self.names.iter().rev().find(|(known, _)| &**known == name)?.1.as_ref()
    }

    /// Whether an expression reads an image of the item.
    pub fn reads_image(&self, of: &Node) -> bool {
        self.read(of).is_some_and(|read| read.place.is_image() && self.is_of_item(&read))
            || of.children().any(|part| self.reads_image(part))
    }

    fn is_of_item(&self, read: &Read) -> bool {
        self.names.first().is_some_and(|(_, item)| item.as_ref().is_some_and(|item| item.owner == read.owner))
    }

    /// The place that an expression reads; `None` if it is something else.
    fn read(&self, of: &Node) -> Option<Read> {
        match &of.expr {
            Expr::Ident(name) => self.get(name).cloned(),
            Expr::Select { operand, field, test: false } => match variable(of).map(|name| &**name) {
                Some("spec") => Some(Read::of_owner(of.clone(), Owner::Spec)),
                Some("podSecurityContext") => {
                    let spec = Read::of_owner(select(ident("variables"), "spec"), Owner::Spec);
                    Some(spec.field(&"securityContext".into(), false))
                }
                Some(_) => None,
                None => Some(self.read(operand)?.field(field, false)),
            },
            Expr::Call { function, target, args } => match (&**function, target.as_deref(), &args[..]) {
                ("_?._" | "_[?_]", None, [operand, key]) => Some(self.read(operand)?.field(text(key)?, true)),
                ("_[_]", None, [operand, key]) => Some(self.read(operand)?.field(text(key)?, false)),
                // An empty object has no fields, as an absent one.
                ("orValue", Some(target), [Node { expr: Expr::Map(entries), .. }]) if entries.is_empty() => {
                    self.read(target).filter(|read| read.is_optional).map(|read| Read { is_optional: false, ..read })
                }
                ("value", Some(target), []) => {
                    self.read(target).filter(|read| read.is_optional).map(|read| Read { is_optional: false, ..read })
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The kind of the elements of a list of owners.
    fn elements(&self, list: &Node) -> Option<Owner> {
        if let Some(name) = variable(list) {
            return match &**name {
                "containers" => Some(Owner::Container),
                "volumes" => Some(Owner::Volume),
                _ => None,
            };
        }
        if let Expr::Call { function, target, args } = &list.expr {
            let is_empty = |of: &Node| matches!(&of.expr, Expr::List { elements, .. } if elements.is_empty());
            let either = |one: &Node, other: &Node| match (self.elements(one), self.elements(other)) {
                (Some(one), Some(other)) => (one == other).then_some(one),
                (Some(found), None) => is_empty(other).then_some(found),
                (None, Some(found)) => is_empty(one).then_some(found),
                (None, None) => None,
            };
            match (&**function, target.as_deref(), &args[..]) {
                ("filter", Some(target), [_, _]) => return self.elements(target),
                ("orValue", Some(target), [other]) => return either(target, other),
                ("_+_", None, [one, other]) | ("_?_:_", None, [_, one, other]) => return either(one, other),
                _ => {}
            }
        }
        let read = self.read(list)?;
        match (read.place.owner, &read.place.path[..]) {
            (Owner::Spec, [key]) => match &**key {
                "containers" | "initContainers" | "ephemeralContainers" => Some(Owner::Container),
                "volumes" => Some(Owner::Volume),
                _ => None,
            },
            _ => None,
        }
    }
}

/// Rewrites reads.
pub(super) struct Reader<'a> {
    pub defaults: &'a [Default],
    pub redirected: Option<&'a Redirected>,
}

impl Reader<'_> {
    /// The same with each read of a field that the mutation sets.
    pub fn rewrite(&self, of: Node, scope: &Scope) -> Node {
        if let Some(rewritten) = self.reads(&of, scope) {
            return rewritten;
        }
        let Expr::Call { function, target: Some(target), args } = of.expr else {
            return of.map_children(&mut |part| self.rewrite(part, scope));
        };
        let (names, args) = without_hiding(&function, args);
        let item = match &*function {
            "optMap" | "optFlatMap" => scope.read(&target).map(|read| Read { is_optional: false, ..read }),
            _ if looping(&function, &args).is_some() => {
                let kind = scope.elements(&target);
                kind.zip(names.last()).map(|(kind, name)| Read::of_owner(ident(name), kind))
            }
            _ => None,
        };
        let mut inner = scope.clone();
        for (index, name) in names.iter().enumerate() {
            inner = inner.with(name, item.clone().filter(|_| index + 1 == names.len()));
        }
        let target = Some(Box::new(self.rewrite(*target, scope)));
        let is_name = |arg: &Node| matches!(&arg.expr, Expr::Ident(name) if names.contains(name));
        let args = args
            .into_iter()
            .enumerate()
            .map(|(index, arg)| if index < names.len() && is_name(&arg) { arg } else { self.rewrite(arg, &inner) });
        Node { id: of.id, expr: Expr::Call { function, target, args: args.collect() } }
    }

    /// A whole read of a field; `None` if it is none, or the mutation does not touch it.
    fn reads(&self, of: &Node, scope: &Scope) -> Option<Node> {
        match &of.expr {
            Expr::Call { function, target: None, args } if &**function == "has" => match &args[..] {
                [Node { id, expr: Expr::Select { operand, field, test } }] => {
                    let read = scope.read(operand).map(|read| read.field(field, false));
                    read.and_then(|read| self.presence(&read)).or_else(|| {
                        let operand = Box::new(self.rewrite((**operand).clone(), scope));
                        let arg = Node { id: *id, expr: Expr::Select { operand, field: field.clone(), test: *test } };
                        Some(call("has", vec![arg]))
                    })
                }
                _ => None,
            },
            Expr::Call { function, target: Some(target), args } => match (&**function, &args[..]) {
                ("hasValue", []) => self.presence(&scope.read(target).filter(|read| read.is_optional)?),
                ("orValue", [other]) => match scope.read(target).filter(|read| read.is_optional) {
                    Some(read) => {
                        let other = self.rewrite(other.clone(), scope);
                        self.with_fallback(&read, other, scope).or_else(|| self.value(of, scope))
                    }
                    None => None,
                },
                _ => self.value(of, scope),
            },
            _ => self.value(of, scope),
        }
    }

    /// CEL of type bool: whether a field is set in the pod.
    fn presence(&self, read: &Read) -> Option<Node> {
        if self.is_within_default(&read.place) {
            return None;
        }
        let set: Vec<_> = self.at_or_below(&read.place).map(|default| default.applies_to(read)).collect();
        if set.is_empty() && !self.is_created_above(&read.place) {
            return None;
        }
        let has = member("hasValue", read.optional(), vec![]);
        Some(set.into_iter().fold(has, |terms, applies| call("_||_", vec![terms, applies])))
    }

    /// CEL: the field in the pod, or another value.
    fn with_fallback(&self, read: &Read, other: Node, scope: &Scope) -> Option<Node> {
        let optional = read.optional();
        if let Some(default) = self.at(&read.place) {
            let applies = default.applies_to(read);
            if default.is_list {
                let is_unset = default.is_unset(read);
                let found = member("orValue", optional, vec![other]);
                return Some(choice(call("_&&_", vec![is_unset, applies]), default.value.clone(), found));
            }
            let value = of_one_type(default.value.clone(), &other);
            return Some(member("orValue", optional, vec![choice(applies, value, other)]));
        }
        let (Some(redirected), true) = (self.redirected, read.place.is_image()) else { return None };
        if let Some(name) = scope.image.as_ref().filter(|_| scope.is_of_item(read)) {
            return Some(choice(member("hasValue", optional, vec![]), node(Expr::Ident(name.clone())), other));
        }
        let found = member("orValue", optional.clone(), vec![literal::string("")]);
        Some(choice(member("hasValue", optional, vec![]), redirected.reference(found), other))
    }

    /// CEL: the field in the pod.
    fn value(&self, of: &Node, scope: &Scope) -> Option<Node> {
        let read = scope.read(of)?;
        if let Some(default) = self.at(&read.place) {
            let gets = call("_&&_", vec![default.is_unset(&read), default.applies_to(&read)]);
            return Some(if read.is_optional {
                choice(gets, optional_of(default.value.clone()), read.optional())
            } else {
                choice(gets, default.value.clone(), of.clone())
            });
        }
        if let (Some(redirected), true) = (self.redirected, read.place.is_image()) {
            let own = scope.image.as_ref().filter(|_| scope.is_of_item(&read));
            return Some(match (own, read.is_optional) {
                (Some(name), false) => node(Expr::Ident(name.clone())),
                (None, false) => redirected.reference(of.clone()),
                (_, true) => {
                    let name = unused(super::IMAGE, &|name| mentions(&read.owner, name));
                    let reference = redirected.reference(ident(&name));
                    member("optMap", read.optional(), vec![ident(&name), reference])
                }
            });
        }
        let created = self.is_created_above(&read.place) && !self.is_within_default(&read.place);
        (read.is_optional && created).then(|| read.optional())
    }

    fn at(&self, place: &Place) -> Option<&Default> {
        self.defaults.iter().find(|default| default.place == *place)
    }

    fn at_or_below<'s>(&'s self, place: &'s Place) -> impl Iterator<Item = &'s Default> {
        self.defaults.iter().filter(|default| default.place == *place || default.place.is_below(place))
    }

    /// Whether a default sets an object with the field.
    fn is_within_default(&self, place: &Place) -> bool {
        self.defaults.iter().any(|default| place.is_below(&default.place))
    }

    /// Whether an object on the path to the place may be one that the mutation creates.
    fn is_created_above(&self, place: &Place) -> bool {
        (1..place.path.len()).any(|length| {
            let above = Place { owner: place.owner, path: place.path[..length].to_vec() };
            self.defaults.iter().any(|default| default.place.is_below(&above))
        })
    }
}

impl Default {
    /// CEL of type bool: whether the field gets the default if it is unset.
    fn applies_to(&self, read: &Read) -> Node {
        match read.place.owner {
            Owner::Container => replace(self.applies.clone(), "c", &read.owner),
            Owner::Spec | Owner::Volume => self.applies.clone(),
        }
    }

    /// CEL of type bool: whether the field is unset in the template.
    fn is_unset(&self, read: &Read) -> Node {
        let owner = Read { place: self.place.clone(), ..read.clone() };
        if self.is_list {
            let found = member("orValue", owner.optional(), vec![literal::list(vec![])]);
            call("_==_", vec![member("size", found, vec![]), literal::int(0)])
        } else {
            call("!_", vec![member("hasValue", owner.optional(), vec![])])
        }
    }
}

/// The names that a macro binds, and its arguments, after the names that rewritten reads need have been renamed.
fn without_hiding(function: &str, mut args: Vec<Node>) -> (Vec<Arc<str>>, Vec<Node>) {
    for name in bound(function, &args).iter().filter(|name| NEEDED.contains(&&***name)) {
        let fresh = unused(&format!("{name}2"), &|name| args.iter().any(|arg| mentions(arg, name)));
        args = args.into_iter().map(|arg| replace(arg, name, &ident(&fresh))).collect();
    }
    (bound(function, &args), args)
}

fn member(function: &str, target: Node, args: Vec<Node>) -> Node {
    node(Expr::Call { function: function.into(), target: Some(Box::new(target)), args })
}

fn choice(condition: Node, yes: Node, no: Node) -> Node {
    call("_?_:_", vec![condition, yes, no])
}

/// The value, dynamic unless another one certainly has its type.
fn of_one_type(value: Node, other: &Node) -> Node {
    let same = match (&value.expr, &other.expr) {
        (Expr::Literal(one), Expr::Literal(other)) => mem::discriminant(one) == mem::discriminant(other),
        (Expr::Call { function, .. }, _) => &**function == "dyn",
        _ => false,
    };
    if same { value } else { call("dyn", vec![value]) }
}

fn optional_of(value: Node) -> Node {
    member("of", ident("optional"), vec![value])
}

/// The constant text of a key.
fn text(key: &Node) -> Option<&Arc<str>> {
    match &key.expr {
        Expr::Literal(Literal::String(text)) => Some(text),
        _ => None,
    }
}
