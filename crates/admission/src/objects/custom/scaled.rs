//! The fields that the subresource `scale` reads (`ValidateScaleSpec` and `ValidateScaleStatus` of
//! `pkg/registry/customresource/validator.go`).

use palisade_cel::{Minor, float_text};
use serde_json::{Value, json};

use crate::validation::{ErrorType, FieldError};

/// The errors of the number of replicas that is wanted.
pub(super) fn spec(minor: Minor, scale: &Value, object: &Value) -> Vec<FieldError> {
    replicas(minor, scale, "specReplicasPath", object).into_iter().collect()
}

/// The errors of the number of replicas that there are, and of the selector.
pub(super) fn status(minor: Minor, scale: &Value, object: &Value) -> Vec<FieldError> {
    let mut errors: Vec<_> = replicas(minor, scale, "statusReplicasPath", object).into_iter().collect();
    if let Some(path) = scale["labelSelectorPath"].as_str() {
        let wrong = match find(object, path) {
            Err(wrong) => wrong,
            Ok(None | Some(Value::String(_))) => return errors,
            Ok(Some(other)) => mismatch(path, other, "string"),
        };
        errors.push(FieldError::invalid(path, "", &wrong));
    }
    errors
}

fn replicas(minor: Minor, scale: &Value, key: &str, object: &Value) -> Option<FieldError> {
    let path = scale[key].as_str().unwrap_or_default();
    let (number, detail) = match find(object, path) {
        Err(wrong) => (0, wrong),
        Ok(None) => return None,
        Ok(Some(value)) => match value.as_i64() {
            None => (0, mismatch(path, value, "int64")),
            Some(number @ ..0) => (number, "should be a non-negative integer".to_owned()),
            Some(0..=2_147_483_647) => return None,
            Some(number) => (number, "should be less than or equal to 2147483647".to_owned()),
        },
    };
    Some(FieldError::untyped(minor, ErrorType::Invalid, path, &json!(number), &detail))
}

/// The value at a path (`NestedFieldNoCopy`); below a null there is none.
fn find<'v>(object: &'v Value, path: &str) -> Result<Option<&'v Value>, String> {
    let keys: Vec<&str> = path.strip_prefix('.').unwrap_or(path).split('.').collect();
    let mut value = object;
    for (index, key) in keys.iter().enumerate() {
        match value {
            Value::Null => return Ok(None),
            Value::Object(fields) => match fields.get(*key) {
                Some(found) => value = found,
                None => return Ok(None),
            },
            other => return Err(mismatch(&keys[..=index].join("."), other, "map[string]interface{}")),
        }
    }
    Ok(Some(value))
}

fn mismatch(path: &str, value: &Value, expected: &str) -> String {
    let path = path.strip_prefix('.').unwrap_or(path);
    format!(".{path} accessor error: {} is of the type {}, expected {expected}", printed(value), go_type(value))
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_i64() => "int64",
        Value::Number(_) => "float64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

/// A value as Go prints it (`%v`).
fn printed(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(number) if !number.is_i64() => number.as_f64().map_or_else(String::new, float_text),
        Value::Array(elements) => format!("[{}]", elements.iter().map(printed).collect::<Vec<_>>().join(" ")),
        Value::Object(fields) => {
            let fields = fields.iter().map(|(key, value)| format!("{key}:{}", printed(value)));
            format!("map[{}]", fields.collect::<Vec<_>>().join(" "))
        }
        other => other.to_string(),
    }
}
