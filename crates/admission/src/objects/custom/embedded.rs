//! Objects inside of objects, `x-kubernetes-embedded-resource` (`pkg/apiserver/schema/objectmeta`).

use palisade_cel::Minor;
use serde_json::{Map, Value};

use super::{
    super::{decode::Decoder, encode, table::Table},
    schema::{EMBEDDED, additional, is, items, property},
};
use crate::validation::{Checking, ErrorType, FieldError, meta, names, text};

/// Checks the types of `apiVersion` and `kind`, and decodes the metadata: fields that it does not
/// have are dropped, and their paths added to `unknown`. Returns the first error.
pub(super) fn coerce(
    table: &Table,
    value: &mut Value,
    schema: &Value,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    match value {
        Value::Object(object) => coerce_object(table, object, schema, path, unknown),
        Value::Array(list) => {
            let Some(of) = items(schema) else { return Ok(()) };
            let mut elements = list.iter_mut().enumerate();
            elements.try_for_each(|(i, element)| coerce(table, element, of, &format!("{path}[{i}]"), unknown))
        }
        _ => Ok(()),
    }
}

pub(super) fn coerce_object(
    table: &Table,
    object: &mut Map<String, Value>,
    schema: &Value,
    path: &str,
    unknown: &mut Vec<String>,
) -> Result<(), FieldError> {
    if is(schema, EMBEDDED) {
        for key in ["apiVersion", "kind"] {
            if let Some(value) = object.get(key).filter(|value| !value.is_string()) {
                return Err(untyped(table.minor, child(path, key), value, "must be a string"));
            }
        }
        if let Some(metadata) = object.get_mut("metadata") {
            let at = child(path, "metadata");
            let mut decoder = Decoder::new(table);
            let decoded =
                decoder.metadata_at(&at, metadata).map_err(|error| untyped(table.minor, at, metadata, &error))?;
            unknown.append(&mut decoder.unknown);
            let mut encoded = encode::encode(table, "meta/v1.ObjectMeta", &decoded);
            encoded.retain(|_, value| !value.is_null());
            *metadata = Value::Object(encoded);
        }
    }
    for (key, value) in object {
        if let Some(of) = property(schema, key) {
            coerce(table, value, of, &child(path, key), unknown)?;
        } else if let Some(of) = additional(schema) {
            coerce(table, value, of, &format!("{path}[{key}]"), unknown)?;
        }
    }
    Ok(())
}

fn untyped(minor: Minor, path: String, value: &Value, detail: &str) -> FieldError {
    FieldError::untyped(minor, ErrorType::Invalid, path, value, detail)
}

/// The errors of objects inside of a value: their types, and their metadata.
pub(super) fn validate(minor: Minor, schema: &Value, value: &Value, path: &str, errors: &mut Vec<FieldError>) {
    match value {
        Value::Object(object) => {
            if is(schema, EMBEDDED) {
                validate_one(minor, object, path, errors);
            }
            for (key, value) in object {
                if let Some(of) = property(schema, key) {
                    validate(minor, of, value, &child(path, key), errors);
                } else if let Some(of) = additional(schema) {
                    validate(minor, of, value, &format!("{path}[{key}]"), errors);
                }
            }
        }
        Value::Array(list) => {
            let Some(of) = items(schema) else { return };
            for (i, element) in list.iter().enumerate() {
                validate(minor, of, element, &format!("{path}[{i}]"), errors);
            }
        }
        _ => {}
    }
}

fn validate_one(minor: Minor, object: &Map<String, Value>, path: &str, errors: &mut Vec<FieldError>) {
    let detail = if minor < Minor::V1_34 { "must not be empty" } else { "" };
    let missing = ["apiVersion", "kind"].into_iter().filter(|key| !object.contains_key(*key));
    errors.extend(missing.map(|key| FieldError::required(child(path, key), detail)));
    for key in ["apiVersion", "kind"] {
        let wrong = match object.get(key) {
            None => continue,
            Some(Value::String(text)) if text.is_empty() => "must not be empty".to_owned(),
            Some(Value::String(text)) if key == "apiVersion" => {
                if text.matches('/').count() < 2 {
                    continue;
                }
                format!("unexpected GroupVersion string: {text}")
            }
            Some(Value::String(kind)) => {
                let wrong = names::label_1035(&kind.to_lowercase());
                if wrong.is_empty() {
                    continue;
                }
                format!("may have mixed case, but should otherwise match: {}", wrong.join(","))
            }
            Some(_) => "must be a string".to_owned(),
        };
        errors.push(FieldError::untyped(minor, ErrorType::Invalid, child(path, key), &object[key], &wrong));
    }
    if let Some(metadata) = object.get("metadata") {
        validate_metadata(minor, metadata, path, errors);
    }
}

/// A name is not required, and may be each that can be part of a path.
fn validate_metadata(minor: Minor, metadata: &Value, path: &str, errors: &mut Vec<FieldError>) {
    let mut named = Map::from_iter([("metadata".to_owned(), metadata.clone())]);
    if text(metadata, "name").is_empty()
        && let Some(metadata) = named.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("name".to_owned(), Value::from("fakename"));
    }
    let mut checking = Checking { minor, old: None, errors: Vec::new(), unknown: None };
    let namespace = text(metadata, "namespace");
    if !namespace.is_empty() {
        let wrong = names::label(namespace);
        let wrong = wrong.iter().map(|wrong| FieldError::invalid("metadata.namespace", namespace, wrong));
        checking.errors.extend(wrong);
    }
    if metadata["generation"].as_i64().is_some_and(|generation| generation < 0) {
        let detail = "must be greater than or equal to 0";
        let generation = &metadata["generation"];
        let error = FieldError::untyped(minor, ErrorType::Invalid, "metadata.generation", generation, detail);
        checking.errors.push(error);
    }
    meta::check(&mut checking, &Value::Object(named), names::path_segment);
    errors.extend(checking.errors.into_iter().map(|error| FieldError { field: child(path, &error.field), ..error }));
}

fn child(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}
