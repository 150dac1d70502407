//! The old value that belongs to a new one (apiserver `pkg/cel/common/{equality,maplist}.go`).

use serde_json::{Map, Value};

use super::schema::{additional, items, property};

/// A value and the one that it replaces, with their schema. Only such a value can be found unchanged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Correlation<'v> {
    pub(super) schema: &'v Value,
    pub(super) new: &'v Value,
    pub(super) old: &'v Value,
}

impl Correlation<'_> {
    /// The value of a field, or of a key.
    pub(super) fn key(self, key: &str) -> Option<Self> {
        let schema = property(self.schema, key).or_else(|| additional(self.schema))?;
        Some(Self { schema, new: self.new.as_object()?.get(key)?, old: self.old.as_object()?.get(key)? })
    }

    /// The element at an index, if the list has keys that identify its elements.
    pub(super) fn index(self, index: usize) -> Option<Self> {
        let new = self.new.as_array()?.get(index)?;
        let old = old_element(self.schema, self.old.as_array()?, new)?;
        Some(Self { schema: items(self.schema)?, new, old })
    }

    /// Whether nothing was changed, as far as both belong together.
    pub(super) fn is_unchanged(self) -> bool {
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                let by_key = !keys(self.schema).is_empty() && !old.is_empty();
                let is_same = |index| self.index(index).map_or(!by_key && new == old, Self::is_unchanged);
                new.len() == old.len() && (0..new.len()).all(is_same)
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len() && new.keys().all(|key| self.key(key).is_some_and(Self::is_unchanged))
            }
            (new, old) => new == old,
        }
    }
}

/// The keys of an associative list.
fn keys(schema: &Value) -> Vec<&str> {
    if schema.get("type").is_none_or(|of| of != "array")
        || schema.get("x-kubernetes-list-type").is_none_or(|of| of != "map")
    {
        return Vec::new();
    }
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
    keys.into_iter().flatten().filter_map(Value::as_str).collect()
}

/// The element of an old list that has the keys of a new one.
pub(super) fn old_element<'v>(schema: &Value, old: &'v [Value], new: &Value) -> Option<&'v Value> {
    let keys = keys(schema);
    if keys.is_empty() {
        return None;
    }
    let wanted = key_of(new.as_object()?, &keys)?;
    old.iter().find(|element| element.as_object().is_some_and(|of| key_of(of, &keys).as_ref() == Some(&wanted)))
}

/// The values of the keys, which are scalars.
fn key_of<'v>(element: &'v Map<String, Value>, keys: &[&str]) -> Option<Vec<&'v Value>> {
    let scalar = |value: &&Value| !matches!(value, Value::Null | Value::Array(_) | Value::Object(_));
    keys.iter().map(|key| element.get(*key).filter(scalar)).collect()
}
