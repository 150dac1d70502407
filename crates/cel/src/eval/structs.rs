//! Structs: constructing them, and their fields (apiserver `pkg/cel/mutation`).

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Error,
    machine::{EvalResult, Machine},
    node::Node,
};
use crate::{
    library::quote::quote,
    value::{Entries, JSON_PATCH, List, Map, Struct, Value},
};

const STRUCT_COST: u64 = 40;

impl<'a> Machine<'a, '_> {
    pub(super) fn construct(&mut self, name: &Arc<str>, fields: &'a [(Arc<str>, Node, bool)]) -> EvalResult<'a> {
        let mut values: BTreeMap<Arc<str>, Value<'a>> = BTreeMap::new();
        let filled = fields.iter().try_for_each(|(field, value, optional)| {
            let value = match self.eval(value)? {
                Value::Optional(None) if *optional => {
                    values.remove(field);
                    return Ok(());
                }
                Value::Optional(Some(value)) if *optional => Value::unwrapped(&value)?,
                value if *optional => {
                    let text = format!("cannot initialize optional entry '{field}' from non-optional value {value}");
                    return Err(Error::new(text));
                }
                value => value,
            };
            values.insert(Arc::clone(field), value);
            Ok(())
        });
        let made = filled.and_then(|()| if &**name == JSON_PATCH { patch(values) } else { Ok(values) });
        let (made, outcome) = match made {
            Ok(values) => (Some(values), Ok(())),
            Err(error) => (None, Err(error)),
        };
        self.constructed(outcome, STRUCT_COST)?;
        Ok(Value::Struct(Arc::new(Struct::new(Arc::clone(name), made.unwrap_or_default()))))
    }
}

/// The fields of a `JSONPatch`, if they are what it has.
fn patch(mut fields: BTreeMap<Arc<str>, Value<'_>>) -> Result<BTreeMap<Arc<str>, Value<'_>>, Error> {
    for (name, value) in &mut fields {
        match &**name {
            "op" | "path" | "from" => {
                let text = native(value);
                if text.as_str().is_none() {
                    let found = native_type(value);
                    return Err(Error::new(format!("unexpected type {found} for JSONPatchType '{name}' field")));
                }
                *value = text;
            }
            "value" => {}
            _ => return Err(Error::new(format!("unexpected JSONPatchType field: {name}"))),
        }
    }
    Ok(fields)
}

/// A field of an `Object`, by its type: an unset field is null.
pub(super) fn field<'a>(of: &Value<'a>, field: &str) -> EvalResult<'a> {
    match native(of) {
        Value::Map(map) => Value::unwrapped(&Arc::new(map.get(&Value::from(field.to_owned())).unwrap_or_default())),
        _ => Err(Error::new(format!("cannot get field {}", quote(field)))),
    }
}

/// Whether an `Object` was given a field.
pub(super) fn has_field(of: &Value<'_>, field: &str) -> bool {
    matches!(native(of), Value::Map(map) if map.get(&Value::from(field.to_owned())).is_some())
}

/// A field of a `JSONPatch`. Empty texts count as absent, but only in presence tests.
pub(super) fn patch_field<'a>(of: &Struct<'a>, key: &Value<'_>, if_present: bool) -> Result<Option<Value<'a>>, Error> {
    let Some(field @ ("op" | "path" | "from" | "value")) = key.as_str() else {
        let what = if if_present { "field" } else { "indexer" };
        return Err(Error::new(format!("unsupported {what}: {}", formatted(key))));
    };
    let value = of.get(field).cloned();
    if if_present {
        return Ok(value.filter(|value| field == "value" || value.as_str() != Some("")));
    }
    Ok(Some(value.unwrap_or_default()))
}

/// A value after a round trip through Go's types, as cel-go 0.26 treats values in an optional, and values that it
/// inspects by type: optionals in it are lost, types become texts, an `Object` becomes a map, and other types of
/// Kubernetes become an error.
pub(super) fn native<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Optional(None) => Value::Null,
        Value::Optional(Some(value)) => native(value),
        Value::Type(name) => Value::String(name.clone()),
        Value::Opaque(opaque) => Value::Opaque(opaque.converted()),
        Value::Struct(of) if !of.is_json_patch() => native_map(of).unwrap_or_default(),
        value => value.clone(),
    }
}

/// The fields of an `Object` as a map; `None` if a field has a map with keys that are not strings. Values in nested
/// lists and maps are not converted (apiserver `convertField`).
fn native_map<'a>(of: &Struct<'a>) -> Option<Value<'a>> {
    let mut fields = Entries::default();
    for (name, value) in of.fields() {
        let value = match value {
            Value::List(List::Items(items)) => items.iter().map(native).collect::<Vec<_>>().into(),
            Value::Map(map @ Map::Entries(_)) => {
                let mut entries = Entries::default();
                for (key, value) in map.entries() {
                    key.as_str()?;
                    entries.insert(key, native(&value));
                }
                entries.into()
            }
            value => native(value),
        };
        fields.insert(name.to_owned().into(), value);
    }
    Some(fields.into())
}

/// The name of the type in Go that a value is made of.
fn native_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::String(_) | Value::Type(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Timestamp(_) => "time.Time",
        Value::Duration(_) => "time.Duration",
        Value::List(List::Json(_) | List::Associative(..)) => "[]interface {}",
        Value::List(List::Items(_)) => "[]ref.Val",
        Value::Map(Map::Entries(_)) => "map[ref.Val]ref.Val",
        Value::Optional(None) => "<nil>",
        Value::Optional(Some(value)) => native_type(value),
        Value::Struct(of) if of.is_json_patch() => "*mutation.JSONPatchVal",
        Value::Map(_) | Value::Struct(_) => "map[string]interface {}",
        Value::Opaque(opaque) => opaque.native_type(),
    }
}

/// As Go's `%s` writes a value that is not a text: with a complaint.
fn formatted(key: &Value<'_>) -> String {
    match key {
        Value::String(text) => text.to_string(),
        other => format!("%!s({}={other})", other.go_type()),
    }
}
