//! Schemas of the parts of a map or list that has a schema (apiserver `pkg/cel/common/valuesunstructured.go`).

use std::collections::BTreeMap;

use serde_json::{Map as Fields, Value as Json};

use super::Value;
use crate::{
    names::{escape, unescape},
    structural::{part, properties},
};

/// Whether the names of fields are escaped, and nulls are as absent.
fn has_fields(schema: &Json) -> bool {
    properties(schema).is_some()
}

/// The schema of a field or of the value of a key.
pub(super) fn schema_of<'a>(schema: &'a Json, key: &str) -> Option<&'a Json> {
    if has_fields(schema) { schema.get("properties")?.get(key) } else { part(schema, "additionalProperties") }
}

/// The value of a map with a schema at a key.
pub(super) fn get<'a>(fields: &'a Fields<String, Json>, schema: &'a Json, key: &str) -> Option<Value<'a>> {
    let key = if has_fields(schema) { unescape(key)? } else { key.into() };
    let value = fields.get(&*key)?;
    if value.is_null() && has_fields(schema) {
        return None;
    }
    Some(Value::typed(value, schema_of(schema, &key)?))
}

/// Keys and values of a map with a schema, as far as expressions can see them.
pub(super) fn entries<'a>(
    fields: &'a Fields<String, Json>,
    schema: &'a Json,
) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
    fields.iter().filter_map(move |(key, value)| {
        let of = schema_of(schema, key)?;
        let name = if has_fields(schema) { escape(key).unwrap_or_else(|| key.into()) } else { key.into() };
        Some((Value::from(name.into_owned()), Value::typed(value, of)))
    })
}

/// The identity of an element in an associative list: the values of its keys, or the whole element.
pub(super) fn identity(element: &Value<'_>, schema: &Json) -> String {
    let keys = schema.get("x-kubernetes-list-map-keys").and_then(Json::as_array);
    match (element, keys) {
        (Value::Map(map), Some(keys)) => {
            let part = |key: &Json| {
                let name = escape(key.as_str().unwrap_or_default()).unwrap_or_default().into_owned();
                map.get(&name.into()).map_or_else(String::new, |value| value.canonical())
            };
            keys.iter().map(part).collect::<Vec<_>>().join("\0")
        }
        _ => element.canonical(),
    }
}

/// The elements of two associative lists: what both have is taken from the right one, at its place in the left one.
pub(super) fn merge<'a>(items: &[Value<'a>], others: impl Iterator<Item = Value<'a>>, schema: &Json) -> Vec<Value<'a>> {
    let mut merged = items.to_vec();
    let mut places: BTreeMap<_, _> =
        items.iter().enumerate().map(|(place, item)| (identity(item, schema), place)).collect();
    for theirs in others {
        let identity = identity(&theirs, schema);
        if let Some(place) = places.get(&identity) {
            merged[*place] = theirs;
        } else {
            places.insert(identity, merged.len());
            merged.push(theirs);
        }
    }
    merged
}
