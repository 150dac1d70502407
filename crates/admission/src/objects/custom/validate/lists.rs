//! Sets and maps that are written as lists (`pkg/apiserver/schema/listtype`).

use std::collections::BTreeMap;

use palisade_cel::Minor;
use serde_json::{Map, Value};

use crate::{
    objects::custom::schema::{additional, items, property},
    validation::{ErrorType, FieldError, go_json},
};

/// The errors of lists that have something twice that may be there once.
pub(in super::super) fn duplicates(
    minor: Minor,
    schema: &Value,
    given: &Value,
    path: &str,
    errors: &mut Vec<FieldError>,
) {
    match given {
        Value::Array(elements) => {
            unique(minor, schema, elements, path, errors);
            if let Some(of) = items(schema) {
                for (i, element) in elements.iter().enumerate() {
                    duplicates(minor, of, element, &format!("{path}[{i}]"), errors);
                }
            }
        }
        Value::Object(fields) => {
            for (key, inner) in fields {
                if let Some(of) = property(schema, key) {
                    let child = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    duplicates(minor, of, inner, &child, errors);
                } else if let Some(of) = additional(schema) {
                    duplicates(minor, of, inner, &format!("{path}[{key}]"), errors);
                }
            }
        }
        _ => {}
    }
}

fn unique(minor: Minor, schema: &Value, given: &[Value], path: &str, errors: &mut Vec<FieldError>) {
    // Each element with its text in the error, and its key for the comparison.
    let keys: Vec<(Value, String)> = match schema.get("x-kubernetes-list-type").and_then(Value::as_str) {
        Some("set") => given.iter().map(|item| (item.clone(), identity(item))).collect(),
        Some("map") => {
            if let Some((i, other)) = given.iter().enumerate().find(|(_, item)| !item.is_object() && !item.is_null()) {
                let detail = "must be an object for an array of list-type map";
                let field = format!("{path}[{i}]");
                errors.push(FieldError::untyped(minor, ErrorType::Invalid, field, other, detail));
                return;
            }
            let names = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array);
            let names: Vec<&str> = names.into_iter().flatten().filter_map(Value::as_str).collect();
            given.iter().map(|item| key(&names, item)).collect()
        }
        _ => return,
    };
    // The second of several is reported, and no further one.
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for (i, (key, identity)) in keys.into_iter().enumerate() {
        let times = seen.entry(identity).or_default();
        *times += 1;
        if *times == 2 {
            errors.push(FieldError::untyped(minor, ErrorType::Duplicate, format!("{path}[{i}]"), &key, ""));
        }
    }
}

/// The keys of an item. One alone is compared as it is, several are as JSON.
fn key(names: &[&str], item: &Value) -> (Value, String) {
    let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(*name)?.clone())));
    let key = Value::Object(fields.collect::<Map<_, _>>());
    let identity = match names {
        [name] => item.get(*name).map_or_else(String::new, identity),
        _ => go_json(&key),
    };
    (key, identity)
}

/// A string that is the same for values that are equal in Go: a double is no integer, but in a list or an object it may
/// be written as an integer.
fn identity(value: &Value) -> String {
    match value {
        Value::Number(number) if !number.is_i64() => format!("float {number}"),
        other => go_json(other),
    }
}
