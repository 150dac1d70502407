//! Values with a schema: objects as the rules of a CustomResourceDefinition see them (apiserver
//! `pkg/cel/common/valuesunstructured.go`).

use std::sync::Arc;

use serde_json::Value as Json;

use super::{Error, Kind, List, Map, Str, Value};
use crate::{
    library::strfmt,
    structural::{flag, part},
};

impl<'a> Value<'a> {
    /// A JSON value with the types of a CustomResourceDefinition's schema, to which
    /// [`with_metadata`](crate::schema::with_metadata) was applied. A value that does not match the schema is an error
    /// when it is read.
    pub fn typed(json: &'a Json, schema: &'a Json) -> Self {
        typed(json, schema).unwrap_or_else(|message| Kind::Failure(Error::new(message)).into())
    }
}

fn typed<'a>(json: &'a Json, schema: &'a Json) -> Result<Value<'a>, String> {
    let of = schema.get("type").and_then(Json::as_str).unwrap_or_default();
    let wrong = |expected: &str| format!("invalid data, expected {expected}");
    let got = |expected: &str| format!("invalid data, expected {expected}, got {}", go_type(json));
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
        ("string", _) => Err(got("string")),
        ("number", Json::Number(number)) => Ok(Value::Double(number.as_f64().unwrap_or(f64::NAN))),
        ("number", _) => Err(got("float")),
        ("integer", Json::Number(number)) if number.is_i64() => Ok(Value::from_json(json)),
        ("integer", _) => Err(got("int")),
        ("boolean", Json::Bool(value)) => Ok(Value::Bool(*value)),
        ("boolean", _) => Err(got("bool")),
        // Nothing in an expression can name it; it can only be compared with what it is in.
        _ => Ok(Value::from_json(json)),
    }
}

/// The name of its type in Go.
fn go_type(json: &Json) -> &'static str {
    match json {
        Json::Null => "<nil>",
        Json::Bool(_) => "bool",
        Json::Number(number) if number.is_i64() => "int64",
        Json::Number(_) => "float64",
        Json::String(_) => "string",
        Json::Array(_) => "[]interface {}",
        Json::Object(_) => "map[string]interface {}",
    }
}

fn formatted<'a>(text: &'a str, schema: &Json) -> Result<Value<'a>, String> {
    let wrong = |what: &str, why: String| format!("Invalid {what} {text}: {why}");
    Ok(match schema.get("format").and_then(Json::as_str) {
        Some("duration") => Value::Duration(strfmt::duration(text).map_err(|why| wrong("duration", why))?),
        Some("date") => Value::Timestamp(strfmt::date(text).map_err(|why| wrong("date formatted string", why))?),
        Some("date-time") => {
            Value::Timestamp(strfmt::date_time(text).map_err(|why| wrong("date-time formatted string", why))?)
        }
        Some("byte") => {
            // Not in the alphabet that the format is validated by.
            Value::Bytes(strfmt::decode_url(text).map_err(|why| wrong("byte formatted string", why))?.into())
        }
        _ => Value::String(Str::Borrowed(text)),
    })
}
