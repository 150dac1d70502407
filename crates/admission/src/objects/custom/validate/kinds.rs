//! Types of values, and which formats a schema has for its type.

use palisade_cel::{Minor, strfmt};
use serde_json::Value;

use super::{Found, Reading, Validator, body, numbers::Number};
use crate::{
    objects::custom::schema::{INT_OR_STRING, is},
    validation::{ErrorType, FieldError, quote},
};

/// The types that a value may have; none if it may have any.
pub(super) fn types(validator: Validator, schema: &Value) -> Vec<&str> {
    if validator.reading == Reading::Objects && is(schema, INT_OR_STRING) {
        return vec!["integer", "string"];
    }
    schema.get("type").and_then(Value::as_str).filter(|of| !of.is_empty()).into_iter().collect()
}

/// The format of a schema; empty where the API server ignores it (`StripUnsupportedFormatsPostProcessorForVersion`).
pub(super) fn format<'s>(validator: Validator, schema: &'s Value, types: &[&str]) -> &'s str {
    let format = schema.get("format").and_then(Value::as_str).unwrap_or_default();
    if validator.reading == Reading::Defaults {
        return format;
    }
    let of_strings = strfmt::check(validator.minor, format).is_some();
    let is_supported = match types {
        // Until 1.35 those of strings are, of any type, and those of numbers are not.
        _ if validator.minor < Minor::V1_36 => of_strings,
        ["integer"] => matches!(format, "int32" | "int64"),
        ["number"] => matches!(format, "float" | "double"),
        [one] if *one != "string" => false,
        _ => of_strings,
    };
    if is_supported { format } else { "" }
}

/// The type of a value, and the format of its type in Go.
fn of(value: &Value) -> (&'static str, &'static str) {
    match value {
        Value::Null => ("null", ""),
        Value::Bool(_) => ("boolean", ""),
        Value::Number(number) => match Number::of(number) {
            Number::Int(_) => ("integer", "int64"),
            Number::Float(_) => ("number", "float64"),
        },
        Value::String(_) => ("string", ""),
        Value::Array(_) => ("array", ""),
        Value::Object(_) => ("object", ""),
    }
}

/// Whether a value has the type and the format of a schema (`typeValidator`).
pub(super) fn check(
    (types, format, nullable): (&[&str], &str, bool),
    value: &Value,
    path: &str,
    minor: Minor,
    found: &mut Found,
) {
    let (of_value, go_format) = of(value);
    let mut wrong = |wanted: &str, what: &str| {
        let message = body(path, &format!("must be of type {wanted}: {}", quote(what)));
        let shown = Value::from(what);
        found.add(path, &message, |field| FieldError::untyped(minor, ErrorType::TypeInvalid, field, &shown, &message));
    };
    if value.is_null() {
        if types.is_empty() || nullable {
            found.matches += 1;
        } else {
            wrong(&types.join(","), of_value);
        }
        return;
    }
    let is_text = value.is_string() || value.is_array();
    let whole = value.as_number().is_some_and(|number| match Number::of(number) {
        Number::Int(_) => false,
        Number::Float(number) => super::numbers::is_integer(minor, number),
    });
    let has = |name: &str| types.contains(&name);
    let fits = has(of_value) || (whole && has("integer")) || (of_value == "integer" && has("number"));
    if !is_text && !format.is_empty() && !fits && go_format != format {
        return wrong(format, go_format);
    }
    let is_of_format = !has("number") && !has("integer") && !format.is_empty() && is_text;
    if is_of_format || fits {
        found.matches += 1;
    } else {
        wrong(&types.join(","), of_value);
    }
}

/// Whether Go finds a value equal to another one after it is converted to its type.
pub(super) fn converts_to(value: &Value, other: &Value) -> bool {
    match (value, other) {
        (Value::Null, _) | (_, Value::Null) => false,
        (Value::Number(value), Value::Number(other)) => match (Number::of(value), Number::of(other)) {
            (value @ Number::Float(_), Number::Int(other)) => value.to_int() == other,
            (Number::Int(value), Number::Int(other)) => value == other,
            #[expect(clippy::float_cmp, reason = "as in Go")]
            (value, Number::Float(other)) => value.to_float() == other,
        },
        // An integer becomes the character with this number.
        (Value::Number(value), Value::String(text)) => match Number::of(value) {
            Number::Int(code) => {
                let c = u32::try_from(code).ok().and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER);
                text.chars().eq([c])
            }
            Number::Float(_) => false,
        },
        (value, other) => value == other,
    }
}
