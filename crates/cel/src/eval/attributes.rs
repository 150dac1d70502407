//! Values and the paths into them (cel-go `interpreter/attributes.go`).

use std::sync::Arc;

use super::{
    Error,
    machine::{EvalResult, Machine, Slot},
    node::{Attribute, Base, Key, Node, Qualifier},
    structs,
};
use crate::{
    stack::with_stack,
    value::{List, Map, Value, lossless_int},
};

impl<'a> Machine<'a, '_> {
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        let value = self.resolve(attribute);
        if matches!(&value, Err(error) if error.fatal) {
            return value;
        }
        // A conditional has no cost of its own.
        if !matches!(attribute.base, Base::Conditional(..)) {
            self.charge(1)?;
        }
        value
    }

    pub(super) fn test(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        let value = self.resolve(attribute);
        if matches!(&value, Err(error) if error.fatal) {
            return value;
        }
        if matches!(attribute.base, Base::Conditional(..)) {
            self.cost = self.cost.wrapping_sub(1);
        }
        match value? {
            Value::Optional(value) => Ok(Value::Bool(value.is_some())),
            value => Ok(value),
        }
    }

    pub(super) fn resolve(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        let base = match &attribute.base {
            Base::Global(name) => {
                // A value that does not fit its schema is an error where it is read.
                self.activation
                    .get(name)
                    .ok_or_else(|| Error::new(format!("no such attribute(s): {name}")))?
                    .checked()?
            }
            Base::Local(slot) => self.local(*slot)?,
            Base::Relative(node) => self.eval(node)?,
            Base::Conditional(condition, branches) => match self.eval(condition)? {
                Value::Bool(true) => self.resolve_deep(&branches[0])?,
                Value::Bool(false) => self.resolve_deep(&branches[1])?,
                _ => return Err(Error::no_such_overload()),
            },
        };
        if attribute.qualifiers.is_empty() && !matches!(base, Value::Optional(_)) {
            return Ok(base);
        }
        self.qualify_all(base, &attribute.qualifiers)
    }

    pub(super) fn resolve_deep(&mut self, attribute: &'a Attribute) -> EvalResult<'a> {
        with_stack(|| self.resolve(attribute))
    }

    pub(super) fn qualify_all(&mut self, mut value: Value<'a>, qualifiers: &'a [Qualifier]) -> EvalResult<'a> {
        let mut optional = false;
        if let Value::Optional(inner) = &value {
            let Some(inner) = inner else { return Ok(value) };
            optional = true;
            value = if self.boxed { Value::clone(inner) } else { structs::native(inner) };
            if !qualifiers.is_empty() {
                value = Value::unwrapped(&Arc::new(value))?;
            }
        }
        for qualifier in qualifiers {
            optional |= qualifier.optional;
            match self.qualify(&value, &qualifier.key, optional)? {
                Some(found) => value = found,
                None => return Ok(Value::Optional(None)),
            }
        }
        Ok(if optional { Value::some(value) } else { value })
    }

    /// One step into a value. With an optional step, an absent value is not an error and costs nothing.
    pub(super) fn qualify(
        &mut self,
        value: &Value<'a>,
        key: &'a Key,
        optional: bool,
    ) -> Result<Option<Value<'a>>, Error> {
        let found = match key {
            Key::Const(key) => self.find(value, key, optional),
            Key::Test(key) => {
                let found = self.find(value, key, true);
                if optional { found } else { found.map(|found| Some(Value::Bool(found.is_some()))) }
            }
            Key::Field(field) => structs::field(value, field).map(Some),
            Key::TestField(field) => Ok(Some(Value::Bool(structs::has_field(value, field)))),
            Key::Dynamic(attribute) => match self.resolve_deep(attribute) {
                Ok(key) => qualifier(&key, is_input(attribute)).and_then(|()| self.find(value, &key, optional)),
                Err(error) => Err(error),
            },
        };
        if matches!(&found, Err(error) if error.fatal) {
            return found;
        }
        if !optional || matches!(found, Ok(Some(_))) {
            self.charge(1)?;
        }
        found
    }

    /// The element of a list or the value of a map at a key (cel-go `refQualify`).
    pub(super) fn find(
        &mut self,
        value: &Value<'a>,
        key: &Value<'_>,
        optional: bool,
    ) -> Result<Option<Value<'a>>, Error> {
        let found = match value {
            Value::Map(Map::Variables(_)) => self.activation.composed(key)?,
            Value::Map(map) => map.get(key),
            Value::List(list) => {
                let index = index(key)?;
                let found = usize::try_from(index).ok().and_then(|index| list.get(index));
                if found.is_none() && !optional {
                    return Err(Error::new(format!("index out of bounds: {key}")));
                }
                found
            }
            Value::Struct(of) if of.is_json_patch() => return structs::patch_field(of, key, optional),
            _ => None,
        };
        match found {
            None if !optional => Err(Error::new(format!("no such key: {key}"))),
            Some(value) => value.checked().map(Some),
            None => Ok(None),
        }
    }

    pub(super) fn local(&mut self, slot: usize) -> EvalResult<'a> {
        self.force(slot)?;
        match &self.slots[slot] {
            Slot::Known(outcome) => outcome.clone(),
            _ => Err(Error::new("no such attribute(s): ")),
        }
    }

    /// Evaluates an accumulator's first value, if that has not happened yet.
    pub(super) fn force(&mut self, slot: usize) -> Result<(), Error> {
        if let Slot::Lazy(init) = &self.slots[slot] {
            let init: &'a Node = init;
            let outcome = self.operand(init)?;
            self.slots[slot] = Slot::Known(outcome);
        }
        Ok(())
    }
}

fn index(key: &Value<'_>) -> Result<i64, Error> {
    let index = match key {
        Value::Int(index) => Some(*index),
        Value::Uint(index) => i64::try_from(*index).ok(),
        Value::Double(index) => lossless_int(*index),
        other => {
            return Err(Error::new(format!("unsupported index type '{}' in list", other.type_name())));
        }
    };
    index.ok_or_else(|| Error::new(format!("unsupported index value {key} in list")))
}

/// Whether the value may come straight from the input.
fn is_input(attribute: &Attribute) -> bool {
    match &attribute.base {
        Base::Global(_) => true,
        Base::Conditional(_, branches) => branches.iter().any(is_input),
        Base::Local(_) | Base::Relative(_) => false,
    }
}

/// Checks that a value is a valid key or index. `native`: the value comes directly from the input and has a Go type.
fn qualifier(key: &Value<'_>, native: bool) -> Result<(), Error> {
    let name = match key {
        Value::String(_) | Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => return Ok(()),
        Value::Null if native => "<nil>",
        Value::List(List::Json(_)) if native => "[]interface {}",
        Value::Map(Map::Json(_)) if native => "map[string]interface {}",
        other => other.go_type(),
    };
    Err(Error::new(format!("invalid qualifier type: {name}")))
}
