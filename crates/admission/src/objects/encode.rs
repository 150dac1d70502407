//! Go types to what policies see (`runtime.DefaultUnstructuredConverter`): empty values are absent where the field says
//! `omitempty`, and there otherwise.

use serde_json::{Map, Value};

use super::{
    own,
    table::{Field, Own, Table, Type},
};

/// The decoded object as policies see it.
pub(super) fn encode(table: &Table, name: &str, object: &Map<String, Value>) -> Map<String, Value> {
    let Some(of) = table.get(name) else { return object.clone() };
    let mut out = Map::new();
    for field in &of.fields {
        if let Some(value) = encode_field(table, field, object.get(&field.name)) {
            out.insert(field.name.clone(), value);
        }
    }
    out
}

/// None where the field is left out.
fn encode_field(table: &Table, field: &Field, value: Option<&Value>) -> Option<Value> {
    let empty = || (!field.omit_empty).then_some(());
    match (field.of.under(), value) {
        // A struct is never empty, and zero only for `omitzero`.
        (Type::Struct(name), value) => {
            let nothing = Map::new();
            let object = value.and_then(Value::as_object).unwrap_or(&nothing);
            let encoded = encode(table, name, object);
            (!field.omit_zero || object.values().any(|value| !is_blank(value))).then_some(Value::Object(encoded))
        }
        (Type::Own(Own::Time | Own::MicroTime), None | Some(Value::Null)) if field.omit_zero => None,
        (Type::Own(own), None) => Some(own::zero(*own)),
        (Type::Pointer(_), None) => empty().map(|()| Value::Null),
        (Type::List(_), Some(Value::Array(list))) if list.is_empty() && field.omit_empty => None,
        (Type::Map(_), Some(Value::Object(map))) if map.is_empty() && field.omit_empty => None,
        (Type::Bytes, Some(Value::String(text))) if text.is_empty() && field.omit_empty => None,
        (_, Some(value)) => Some(encode_value(table, &field.of, value)),
        (of, None) => empty().map(|()| zero(of)),
    }
}

/// Nothing in it but structs with nothing in them.
fn is_blank(value: &Value) -> bool {
    value.as_object().is_some_and(|object| object.values().all(is_blank))
}

fn zero(of: &Type) -> Value {
    match of {
        Type::Text => Value::from(""),
        Type::Bool => Value::from(false),
        Type::Int(_) => Value::from(0),
        Type::Float => Value::from(0.0),
        _ => Value::Null,
    }
}

fn encode_value(table: &Table, of: &Type, value: &Value) -> Value {
    match (of.under(), value) {
        (Type::Pointer(inner), _) => encode_value(table, inner, value),
        (Type::Struct(name), Value::Object(object)) => Value::Object(encode(table, name, object)),
        (Type::List(inner), Value::Array(list)) => {
            Value::Array(list.iter().map(|element| encode_value(table, inner, element)).collect())
        }
        (Type::Map(inner), Value::Object(map)) => {
            Value::Object(map.iter().map(|(key, element)| (key.clone(), encode_value(table, inner, element))).collect())
        }
        _ => value.clone(),
    }
}
