//! Values with a schema: what the rules of a CustomResourceDefinition see of an object (apiserver
//! `pkg/cel/common/valuesunstructured.go`).

use std::{collections::BTreeMap, sync::Arc};

use base64::Engine as _;
use serde_json::{Map as Fields, Value as Json};

use super::{Duration, Kind, List, Map, Str, Timestamp, Value, equal};
use crate::{
    eval::Error,
    names::{escape, unescape},
    structural::{flag, part, properties},
};

impl<'a> Value<'a> {
    /// A JSON value as a schema of a CustomResourceDefinition types it, to which
    /// [`with_metadata`](crate::schema::with_metadata) was applied. What does not fit the schema is an error where it is
    /// read.
    pub fn typed(json: &'a Json, schema: &'a Json) -> Self {
        typed(json, schema).unwrap_or_else(|message| Kind::Failure(Error::new(message)).into())
    }
}

fn typed<'a>(json: &'a Json, schema: &'a Json) -> Result<Value<'a>, String> {
    let of = schema.get("type").and_then(Json::as_str).unwrap_or_default();
    let wrong = |expected: &str| format!("invalid data, expected {expected}");
    match json {
        Json::Null if flag(schema, "nullable") => return Ok(Value::Null),
        Json::Null => return Err("invalid data, got null for schema with nullable=false".to_owned()),
        _ if flag(schema, "x-kubernetes-int-or-string") => {
            return match Value::from_json(json) {
                value @ (Value::Int(_) | Value::String(_)) => Ok(value),
                _ => Err(wrong("XIntOrString value to be either a string or integer")),
            };
        }
        _ => {}
    }
    match (of, json) {
        ("object", Json::Object(fields)) => Ok(Value::Map(Map::Typed(fields, schema))),
        ("object", _) => Err(wrong("a map for the provided schema with type=object")),
        ("array", Json::Array(items)) => {
            let of = part(schema, "items").ok_or("invalid array type, expected Items with a non-empty Schema")?;
            let items: Vec<_> = items.iter().map(|item| Value::typed(item, of)).collect();
            Ok(match schema.get("x-kubernetes-list-type").and_then(Json::as_str) {
                Some("map" | "set") => Value::List(List::Associative(Arc::new(items), schema)),
                _ => items.into(),
            })
        }
        ("array", _) => Err(wrong("an array for the provided schema with type=array")),
        ("string", Json::String(text)) => formatted(text, schema),
        ("string", _) => Err(wrong("string")),
        ("number", Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN))),
        ("number", _) => Err(wrong("float")),
        ("integer", Json::Number(number)) if number.is_i64() => Ok(Value::from_json(json)),
        ("integer", _) => Err(wrong("int")),
        ("boolean", Json::Bool(value)) => Ok(Value::Bool(*value)),
        ("boolean", _) => Err(wrong("bool")),
        // Nothing in an expression can name it; it can only be compared with what it is in.
        _ => Ok(Value::from_json(json)),
    }
}

fn formatted<'a>(text: &'a str, schema: &Json) -> Result<Value<'a>, String> {
    Ok(match schema.get("format").and_then(Json::as_str) {
        Some("duration") => Value::Duration(duration(text).map_err(|why| format!("Invalid duration {text}: {why}"))?),
        Some("date") => Value::Timestamp(
            Timestamp::parse(&format!("{text}T00:00:00Z"))
                .map_err(|why| format!("Invalid date formatted string {text}: {why}"))?,
        ),
        Some("date-time") => Value::Timestamp(
            Timestamp::parse(text).map_err(|why| format!("Invalid date-time formatted string {text}: {why}"))?,
        ),
        Some("byte") => {
            let bytes = base64::engine::general_purpose::STANDARD.decode(text);
            Value::Bytes(bytes.map_err(|why| format!("Invalid byte formatted string {text}: {why}"))?.into())
        }
        _ => Value::String(Str::Borrowed(text)),
    })
}

/// A duration as Go writes it, or a number with a unit such as `3 days` (kube-openapi
/// `pkg/validation/strfmt/duration.go`).
fn duration(text: &str) -> Result<Duration, String> {
    const UNITS: &[(&[&str], i64)] = &[
        (&["ns", "nano"], 1),
        (&["us", "µs", "micro"], 1_000),
        (&["ms", "milli"], 1_000_000),
        (&["s", "sec"], 1_000_000_000),
        (&["m", "min"], 60_000_000_000),
        (&["h", "hr", "hour"], 3_600_000_000_000),
        (&["d", "day"], 86_400_000_000_000),
        (&["w", "wk", "week"], 604_800_000_000_000),
    ];
    let refused = match Duration::parse(text) {
        Ok(duration) => return Ok(duration),
        Err(refused) => refused,
    };
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let unit = text[digits..].trim_start().to_lowercase();
    let known = |names: &[&str]| {
        names.contains(&unit.as_str())
            || (unit.len() > 3 && names.iter().any(|name| name.len() > 2 && unit.starts_with(name)))
    };
    let factor = UNITS.iter().find(|(names, _)| known(names)).map(|(_, factor)| *factor);
    let nanoseconds =
        text[..digits].parse::<i64>().ok().zip(factor).and_then(|(count, factor)| count.checked_mul(factor));
    nanoseconds.map(Duration).ok_or(refused)
}

/// Whether the names of fields are escaped, and nulls are as absent.
fn has_fields(schema: &Json) -> bool {
    properties(schema).is_some()
}

/// The schema of a field or of the value of a key.
fn schema_of<'a>(schema: &'a Json, key: &str) -> Option<&'a Json> {
    if has_fields(schema) { schema.get("properties")?.get(key) } else { part(schema, "additionalProperties") }
}

/// What a map with a schema has at a key.
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

/// `==` of a map with a schema. What the schema does not name is unequal only if both have it and it differs.
pub(super) fn equal_map(fields: &Fields<String, Json>, schema: &Json, other: &Map<'_>) -> Result<bool, Error> {
    if fields.len() != other.len() {
        return Ok(false);
    }
    for (key, value) in fields {
        if schema_of(schema, key).is_none() {
            let Map::Typed(others, _) = other else { return Err(Error::no_such_overload()) };
            if others.get(key).is_some_and(|other| other != value) {
                return Ok(false);
            }
            continue;
        }
        let theirs = other.get(&Value::String(Str::Borrowed(key)));
        match (get(fields, schema, key), theirs) {
            (Some(ours), Some(theirs)) if equal::equal(&ours, &theirs)? => {}
            (None, None) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// What makes an element of an associative list the same as another: its keys, or all of it.
fn identity(element: &Value<'_>, schema: &Json) -> String {
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

/// `==` of an associative list: in whatever order.
pub(super) fn equal_list(items: &[Value<'_>], schema: &Json, other: &List<'_>) -> Result<bool, Error> {
    if items.len() != other.len() {
        return Ok(false);
    }
    let by_key: BTreeMap<_, _> = items.iter().map(|item| (identity(item, schema), item)).collect();
    for theirs in other.iter() {
        match by_key.get(&identity(&theirs, schema)) {
            Some(ours) if equal::equal(ours, &theirs)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// `+` of an associative list: what both have is taken from the right side, at its place in the left one.
pub(super) fn merge<'a>(items: &[Value<'a>], schema: &'a Json, other: &List<'a>) -> List<'a> {
    let mut merged = items.to_vec();
    let mut places: BTreeMap<_, _> =
        items.iter().enumerate().map(|(place, item)| (identity(item, schema), place)).collect();
    for theirs in other.iter() {
        let identity = identity(&theirs, schema);
        if let Some(place) = places.get(&identity) {
            merged[*place] = theirs;
        } else {
            places.insert(identity, merged.len());
            merged.push(theirs);
        }
    }
    List::Associative(Arc::new(merged), schema)
}
