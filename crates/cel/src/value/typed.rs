//! Values with a schema: objects as the rules of a CustomResourceDefinition see them (apiserver
//! `pkg/cel/common/valuesunstructured.go`).

use std::sync::Arc;

use base64::Engine as _;
use serde_json::Value as Json;

use super::{Duration, Error, Kind, List, Map, Str, Timestamp, Value};
use crate::structural::{flag, part};

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
