//! Pruning and defaulting (`pkg/apiserver/schema/{pruning,defaulting}`).

use serde_json::{Map, Number, Value};

use super::schema::{EMBEDDED, PRESERVES, additional, allows_any, is, items, property};

type Object = Map<String, Value>;

const OF_EVERY_OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// Integers that have no place in 64 bits with a sign are doubles, as Go decodes them.
pub(super) fn widen(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_u64() && !number.is_i64() => {
            if let Some(double) = number.as_f64().and_then(Number::from_f64) {
                *number = double;
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(widen),
        Value::Object(fields) => fields.values_mut().for_each(widen),
        _ => {}
    }
}

/// Drops what the schema does not have; returns their paths, sorted.
pub(super) fn prune(object: &mut Object, schema: &Value) -> Vec<String> {
    let mut unknown = Vec::new();
    // The root is a resource, whatever its schema says.
    prune_object(object, schema, true, is(schema, PRESERVES), "", &mut unknown);
    unknown.sort();
    unknown
}

/// Whether there is anything in a value that its schema does not have.
pub(super) fn changes(value: &Value, schema: &Value) -> bool {
    let mut pruned = value.clone();
    prune_value(&mut pruned, Some(schema), "", &mut Vec::new());
    pruned != *value
}

fn child(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn prune_value(value: &mut Value, schema: Option<&Value>, path: &str, unknown: &mut Vec<String>) {
    let preserves = schema.is_some_and(|schema| is(schema, PRESERVES));
    match value {
        Value::Object(object) => {
            let schema = schema.unwrap_or(&Value::Null);
            prune_object(object, schema, is(schema, EMBEDDED), preserves, path, unknown);
        }
        Value::Array(list) => {
            for (i, element) in list.iter_mut().enumerate() {
                let of = schema.and_then(items);
                if preserves && of.is_none() {
                    continue;
                }
                // Below a list whose fields are kept they are kept as well.
                if preserves {
                    keep_value(element, of, &format!("{path}[{i}]"), unknown);
                } else {
                    prune_value(element, of, &format!("{path}[{i}]"), unknown);
                }
            }
        }
        _ => {}
    }
}

fn keep_value(value: &mut Value, schema: Option<&Value>, path: &str, unknown: &mut Vec<String>) {
    let Some(schema) = schema else { return };
    match value {
        Value::Object(object) => prune_object(object, schema, is(schema, EMBEDDED), true, path, unknown),
        Value::Array(list) => {
            for (i, element) in list.iter_mut().enumerate() {
                keep_value(element, items(schema), &format!("{path}[{i}]"), unknown);
            }
        }
        _ => {}
    }
}

fn prune_object(
    object: &mut Object,
    schema: &Value,
    embedded: bool,
    preserves: bool,
    path: &str,
    unknown: &mut Vec<String>,
) {
    object.retain(|key, value| {
        let of_every = OF_EVERY_OBJECT.contains(&key.as_str());
        if embedded && of_every {
            return true;
        }
        let known = property(schema, key).or_else(|| additional(schema));
        if known.is_some() {
            prune_value(value, known, &child(path, key), unknown);
        } else if allows_any(schema) && !preserves {
            prune_value(value, None, &child(path, key), unknown);
        } else if !preserves {
            if !of_every || !path.is_empty() {
                unknown.push(child(path, key));
            }
            return false;
        }
        true
    });
}

/// Is it null, though it may not be, and has a default?
fn is_replaced(value: &Value, schema: &Value) -> bool {
    value.is_null() && !is(schema, "nullable")
}

fn default_of(schema: &Value) -> Option<&Value> {
    schema.get("default").filter(|default| !default.is_null())
}

/// Drops nulls that may not be, and have no default (`PruneNonNullableNullsWithoutDefaults`).
pub(super) fn drop_nulls(object: &mut Object, schema: &Value) {
    object.retain(|key, value| {
        let Some(of) = property(schema, key).or_else(|| additional(schema)) else { return true };
        let dropped = is_replaced(value, of) && default_of(of).is_none();
        if !dropped {
            drop_nulls_in(value, of);
        }
        !dropped
    });
}

fn drop_nulls_in(value: &mut Value, schema: &Value) {
    match value {
        Value::Object(object) => drop_nulls(object, schema),
        Value::Array(list) => {
            if let Some(of) = items(schema) {
                for element in list.iter_mut() {
                    drop_nulls_in(element, of);
                }
            }
        }
        _ => {}
    }
}

/// Sets the defaults of properties whose object is there.
pub(super) fn fill(object: &mut Object, schema: &Value) {
    for (key, of) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if let Some(default) = default_of(of)
            && object.get(key).is_none_or(|value| is_replaced(value, of))
        {
            object.insert(key.clone(), default.clone());
        }
    }
    for (key, value) in object.iter_mut() {
        let Some(of) = property(schema, key).or_else(|| additional(schema)) else { continue };
        fill_value(value, of);
    }
}

fn fill_value(value: &mut Value, schema: &Value) {
    if is_replaced(value, schema)
        && let Some(default) = default_of(schema)
    {
        *value = default.clone();
    }
    match value {
        Value::Object(object) => fill(object, schema),
        Value::Array(list) => {
            if let Some(of) = items(schema) {
                for element in list.iter_mut() {
                    fill_value(element, of);
                }
            }
        }
        _ => {}
    }
}
