//! Fields, keys, indices and optionals.

use std::rc::Rc;

use palisade_cel::ast::{Expr, Node};

use super::{Choice, Evaluator, Result, Scope, Truth, Value, field, lists::entries, lookup, unsupported, value::Item};
use crate::{
    formula::{Atom, FALSE, Formula, Path, Step, TRUE, Term, child},
    universe::Type,
};

/// The result of a selection of a field that is absent.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Selection {
    /// It fails: `x.f`.
    Plain,
    /// It is an optional: `x.?f`.
    Optional,
}

impl Evaluator<'_> {
    pub(super) fn select(&mut self, operand: &Node, name: &str, test: bool, scope: &Scope) -> Result<Choice> {
        if test {
            return self.has(operand, name, scope);
        }
        if let Expr::Ident(ident) = &operand.expr
            && &**ident == "variables"
            && lookup(scope, ident).is_none()
        {
            return self.variable(name);
        }
        let of = self.value(operand, scope)?;
        self.field(&of, name, Selection::Plain)
    }

    /// `has(operand.name)`.
    pub(super) fn has(&mut self, operand: &Node, name: &str, scope: &Scope) -> Result<Choice> {
        if matches!(&operand.expr, Expr::Ident(ident) if &**ident == "variables" && lookup(scope, ident).is_none()) {
            return unsupported("has() of a variable of the policy");
        }
        let of = self.value(operand, scope)?;
        let mut cases = Vec::new();
        let mut errors = vec![of.error()];
        for (guard, value) in &of.values {
            match value {
                Value::Null => errors.push(*guard),
                value => {
                    let (present, _) = self.member_of(value, name)?;
                    cases.push((*guard, present));
                }
            }
        }
        let error = self.formulas.or(errors);
        Ok(self.decided(cases, error).choice())
    }

    /// When a value has a field or a key, and its value there.
    fn member_of(&mut self, of: &Value, name: &str) -> Result<(Formula, Choice)> {
        match of {
            Value::Object(path, fields) => {
                let Some(found) = fields.get(name) else { return unsupported(format!("the field {name}")) };
                let path = field(path, name);
                let present = if found.always { TRUE } else { self.formulas.atom(Atom::Present(Rc::clone(&path))) };
                let value = self.at(path, &found.of);
                Ok((present, Choice::of(value)))
            }
            Value::Map(path, of) => {
                if self.keys.insert(name.into()) {
                    self.grown = true;
                }
                let path = child(path, Step::Key(name.into()));
                let present = self.formulas.atom(Atom::Present(Rc::clone(&path)));
                let value = self.at(path, of);
                Ok((present, Choice::of(value)))
            }
            Value::Record(entries) => {
                Ok(entries.get(name).map_or_else(|| (FALSE, Choice::default()), |value| (TRUE, value.clone())))
            }
            _ => unsupported(format!("the field {name} of a value of unknown type")),
        }
    }

    pub(super) fn field(&mut self, of: &Choice, name: &str, how: Selection) -> Result<Choice> {
        let (mut values, mut errors) = (Vec::new(), vec![of.error()]);
        for (guard, value) in &of.values {
            let (inner, optional) = match value {
                Value::None if how == Selection::Optional => {
                    values.push((*guard, Value::None));
                    continue;
                }
                Value::Some(inner) => (&**inner, true),
                Value::Null if how == Selection::Plain => {
                    errors.push(*guard);
                    continue;
                }
                Value::None => return unsupported("a field of an optional"),
                value => (value, how == Selection::Optional),
            };
            let (present, found) = self.member_of(inner, name)?;
            let absent = self.formulas.not(present);
            let missing = self.formulas.and([*guard, absent]);
            let guard = self.formulas.and([*guard, present]);
            if optional {
                values.push((missing, Value::None));
            } else {
                errors.push(missing);
            }
            errors.push(self.formulas.and([guard, found.error()]));
            for (also, value) in found.values {
                let value = if optional { Value::Some(Rc::new(value)) } else { value };
                values.push((self.formulas.and([guard, also]), value));
            }
        }
        let error = self.formulas.or(errors);
        Ok(Choice::new(values, error))
    }

    pub(super) fn index(&mut self, of: &Choice, key: &Choice, how: Selection) -> Result<Choice> {
        let [(TRUE, key)] = key.values.as_slice() else { return unsupported("an index that is one of several") };
        match key {
            Value::Text(Term::Text(name)) => self.field(of, name, how),
            Value::Text(Term::At(path)) if how == Selection::Plain => self.entry(of, path),
            Value::Int(Term::Int(0)) if how == Selection::Plain => self.first(of),
            Value::Text(key) if how == Selection::Optional => self.looked_up(of, key),
            _ => unsupported("an index that is computed"),
        }
    }

    /// The value of a map whose key is that of an entry of the same map.
    fn entry(&mut self, of: &Choice, key: &Path) -> Result<Choice> {
        let (mut values, mut errors) = (Vec::new(), vec![of.error()]);
        for (guard, value) in &of.values {
            match value {
                Value::Map(path, of) => {
                    let Some((Step::EntryKey, entry)) = key.split_last() else {
                        return unsupported("an index that is computed");
                    };
                    let Some((Step::Element(_), list)) = entry.split_last() else {
                        return unsupported("an index that is computed");
                    };
                    if *list != *entries(path) {
                        return unsupported("the key of another map");
                    }
                    let at = child(&entry.into(), Step::EntryValue);
                    values.push((*guard, self.at(at, of)));
                }
                Value::Record(entries) if entries.is_empty() => errors.push(*guard),
                _ => return unsupported("an index of a value of unknown type"),
            }
        }
        let error = self.formulas.or(errors);
        Ok(Choice::new(values, error))
    }

    /// `of[?key]`, of a map and any text: it never fails. The same value for the same key; nothing else is known of it.
    fn looked_up(&mut self, of: &Choice, key: &Term) -> Result<Choice> {
        let mut values = Vec::new();
        for (guard, value) in &of.values {
            let map = if let Value::Some(inner) = value { &**inner } else { value };
            match map {
                Value::None => values.push((*guard, Value::None)),
                Value::Record(entries) if entries.is_empty() => values.push((*guard, Value::None)),
                Value::Map(path, of) => {
                    let args: Rc<[Term]> = [Term::At(Rc::clone(path)), key.clone()].into();
                    let present = self.formulas.atom(Atom::Opaque("has a key".into(), Rc::clone(&args)));
                    let absent = self.formulas.not(present);
                    let found = Term::Call("the value of a key".into(), args);
                    let found = if matches!(**of, Type::Text) { Value::Text(found) } else { Value::Opaque(found) };
                    values.push((self.formulas.and([*guard, present]), Value::Some(Rc::new(found))));
                    values.push((self.formulas.and([*guard, absent]), Value::None));
                }
                _ => return unsupported("an index of a value of unknown type"),
            }
        }
        Ok(Choice::new(values, of.error()))
    }

    /// `of[0]`, of a list with elements of its own.
    fn first(&mut self, of: &Choice) -> Result<Choice> {
        let (mut values, mut errors) = (Vec::new(), vec![of.error()]);
        for (guard, value) in &of.values {
            let Value::List(elements) = value else { return unsupported("an index of a value other than a list") };
            let mut before = *guard;
            for element in elements.iter() {
                let Item::One(value) = &element.item else { return unsupported("the first element of a list") };
                if !element.over.is_empty() {
                    return unsupported("the first element of a list");
                }
                values.push((self.formulas.and([before, element.guard]), value.clone()));
                let not = self.formulas.not(element.guard);
                before = self.formulas.and([before, not]);
            }
            errors.push(before);
        }
        let error = self.formulas.or(errors);
        Ok(Choice::new(values, error))
    }

    /// `of.orValue(other)`, or `of.or(other)`.
    pub(super) fn or_value(&mut self, of: &Choice, other: &Node, scope: &Scope, unwrap: bool) -> Result<Choice> {
        let (mut values, mut errors) = (Vec::new(), vec![of.error()]);
        for (guard, value) in &of.values {
            match value {
                Value::Some(value) if unwrap => values.push((*guard, (**value).clone())),
                Value::Some(_) => values.push((*guard, value.clone())),
                Value::None => {
                    let other = self.value(other, scope)?;
                    errors.push(self.formulas.and([*guard, other.error()]));
                    for (also, value) in other.values {
                        values.push((self.formulas.and([*guard, also]), value));
                    }
                }
                _ => return unsupported("orValue() of a value of unknown type"),
            }
        }
        let error = self.formulas.or(errors);
        Ok(self.merged(Choice::new(values, error)))
    }

    pub(super) fn has_value(&mut self, of: &Choice) -> Result<Truth> {
        let mut cases = Vec::new();
        for (guard, value) in &of.values {
            match value {
                Value::Some(_) => cases.push((*guard, TRUE)),
                Value::None => cases.push((*guard, FALSE)),
                _ => return unsupported("hasValue() of a value of unknown type"),
            }
        }
        Ok(self.decided(cases, of.error()))
    }

    /// `of.value()`.
    pub(super) fn unwrapped(&mut self, of: &Choice) -> Result<Choice> {
        let (mut values, mut errors) = (Vec::new(), vec![of.error()]);
        for (guard, value) in &of.values {
            match value {
                Value::Some(value) => values.push((*guard, (**value).clone())),
                Value::None => errors.push(*guard),
                _ => return unsupported("value() of a value of unknown type"),
            }
        }
        let error = self.formulas.or(errors);
        Ok(self.merged(Choice::new(values, error)))
    }

    /// `of.optMap(name, body)`, or `optFlatMap` if not `wrap`.
    pub(super) fn opt_map(&mut self, of: &Choice, args: &[Node], scope: &Scope, wrap: bool) -> Result<Choice> {
        let [Node { expr: Expr::Ident(name), .. }, body] = args else { return unsupported("optMap()") };
        let (mut values, mut errors) = (Vec::new(), vec![of.error()]);
        for (guard, value) in &of.values {
            match value {
                Value::Some(value) => {
                    let body = self.value(body, &super::with(scope, name, (**value).clone()))?;
                    errors.push(self.formulas.and([*guard, body.error()]));
                    for (also, value) in body.values {
                        let value = if wrap { Value::Some(Rc::new(value)) } else { value };
                        values.push((self.formulas.and([*guard, also]), value));
                    }
                }
                Value::None => values.push((*guard, Value::None)),
                _ => return unsupported("optMap() of a value of unknown type"),
            }
        }
        let error = self.formulas.or(errors);
        Ok(Choice::new(values, error))
    }
}
