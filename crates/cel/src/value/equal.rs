//! Equality and order (cel-go `common/types`: `Equal` and `Compare` of each type, `compare.go`).

use std::{cmp::Ordering, collections::BTreeMap, sync::Arc};

use serde_json::{Map as Fields, Value as Json};

use super::{Error, List, Map, Str, Struct, Value, schema};

/// `types.Equal`: null equals null alone, before any type has a say.
pub(super) fn equal(a: &Value<'_>, b: &Value<'_>) -> Result<bool, Error> {
    Ok(match (a, b) {
        (Value::Null, _) | (_, Value::Null) => matches!((a, b), (Value::Null, Value::Null)),
        (Value::Bool(a), Value::Bool(b)) => a == b,
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
            numbers(a, b) == Some(Ordering::Equal)
        }
        (Value::String(a), Value::String(b)) | (Value::Type(a), Value::Type(b)) => **a == **b,
        (Value::Bytes(a), Value::Bytes(b)) => a == b,
        (Value::Timestamp(a), Value::Timestamp(b)) => a == b,
        (Value::Duration(a), Value::Duration(b)) => a == b,
        (Value::List(List::Associative(items, of)), Value::List(b)) => return associative_lists(items, of, b),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| not_unequal(&a, &b))
        }
        (Value::Map(Map::Variables(_)), Value::Map(Map::Variables(_))) => true,
        (Value::Map(Map::Variables(_)), _) => return Err(Error::no_such_overload()),
        (Value::Map(Map::Typed(fields, of)), Value::Map(b)) => return typed_maps(fields, of, b),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.entries().all(|(key, value)| b.get(&key).is_some_and(|other| not_unequal(&value, &other)))
        }
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return inner(a, b),
            (a, b) => a.is_none() == b.is_none(),
        },
        (Value::Opaque(a), b) => return a.equals(b),
        (Value::Struct(a), Value::Struct(b)) => return structs(a, b),
        _ => false,
    })
}

/// In a list or map, what refuses to be compared counts as equal (`baseList.Equal`).
fn not_unequal(a: &Value<'_>, b: &Value<'_>) -> bool {
    equal(a, b) != Ok(false)
}

/// Inside of an optional the type of the left value decides, of null as well.
fn inner(a: &Value<'_>, b: &Value<'_>) -> Result<bool, Error> {
    match (a, b) {
        (Value::Opaque(a), b) => a.equals(b),
        _ => equal(a, b),
    }
}

/// `==` of an associative list: in any order.
fn associative_lists(items: &[Value<'_>], of: &Json, other: &List<'_>) -> Result<bool, Error> {
    if items.len() != other.len() {
        return Ok(false);
    }
    let by_key: BTreeMap<_, _> = items.iter().map(|item| (schema::identity(item, of), item)).collect();
    for theirs in other.iter() {
        match by_key.get(&schema::identity(&theirs, of)) {
            Some(ours) if equal(ours, &theirs)? => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// `==` of a map with a schema. A field without a schema is unequal only if both maps have it and its values differ.
fn typed_maps(fields: &Fields<String, Json>, of: &Json, other: &Map<'_>) -> Result<bool, Error> {
    if fields.len() != other.len() {
        return Ok(false);
    }
    for (key, value) in fields {
        if schema::schema_of(of, key).is_none() {
            let Map::Typed(others, _) = other else { return Err(Error::no_such_overload()) };
            if others.get(key).is_some_and(|other| other != value) {
                return Ok(false);
            }
            continue;
        }
        let theirs = other.get(&Value::String(Str::Borrowed(key)));
        match (schema::get(fields, of, key), theirs) {
            (Some(ours), Some(theirs)) if equal(&ours, &theirs)? => {}
            (None, None) => {}
            _ => return Ok(false),
        }
    }
    Ok(true)
}

/// `==` of two structs. Of `Object` it is Go's `reflect.DeepEqual`, of `JSONPatch` it is CEL's.
fn structs(a: &Arc<Struct<'_>>, b: &Arc<Struct<'_>>) -> Result<bool, Error> {
    if !a.is_json_patch() || !b.is_json_patch() {
        return Ok(same_struct(a, b));
    }
    if ["op", "path", "from"].iter().any(|field| !texts_equal(a.get(field), b.get(field))) {
        return Ok(false);
    }
    match (a.get("value"), b.get("value")) {
        (Some(a), Some(b)) => inner(a, b),
        (a, b) => Ok(a.is_none() && b.is_none()),
    }
}

fn texts_equal(a: Option<&Value<'_>>, b: Option<&Value<'_>>) -> bool {
    a.and_then(Value::as_str) == b.and_then(Value::as_str)
}

fn same_struct(a: &Arc<Struct<'_>>, b: &Arc<Struct<'_>>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
        || (a.name() == b.name()
            && a.fields().len() == b.fields().len()
            && a.fields().zip(b.fields()).all(|((a, left), (b, right))| a == b && same(left, right)))
}

/// Whether Go takes two values for the same, all the way down: of the same type, and no list but the very same one, for a
/// list has functions in it, which equal nothing.
#[expect(clippy::float_cmp, reason = "as Go does")]
fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::List(List::Items(a)), Value::List(List::Items(b))) => std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b)),
        (Value::List(List::Json(a)), Value::List(List::Json(b))) => Arc::ptr_eq(a, b),
        (Value::Map(Map::Json(a)), Value::Map(Map::Json(b))) => a == b,
        (Value::Map(Map::Entries(a)), Value::Map(Map::Entries(b))) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.find_exact(key).is_some_and(|other| same(value, other)))
        }
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => same(a, b),
        (Value::Struct(a), Value::Struct(b)) => same_struct(a, b),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::List(_) | Value::Map(_), _) => false,
        (a, b) => equal(a, b) == Ok(true),
    }
}

/// The order of two numbers, of whatever types; none with NaN.
#[expect(clippy::cast_precision_loss, reason = "as cel-go does")]
fn numbers(a: &Value<'_>, b: &Value<'_>) -> Option<Ordering> {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => Some(a.cmp(b)),
        (Value::Uint(a), Value::Uint(b)) => Some(a.cmp(b)),
        (Value::Int(a), Value::Uint(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Uint(a), Value::Int(b)) => Some(i128::from(*a).cmp(&i128::from(*b))),
        (Value::Double(a), Value::Double(b)) => a.partial_cmp(b),
        (Value::Double(a), Value::Int(b)) => a.partial_cmp(&(*b as f64)),
        (Value::Double(a), Value::Uint(b)) => a.partial_cmp(&(*b as f64)),
        (_, Value::Double(_)) => numbers(b, a).map(Ordering::reverse),
        _ => None,
    }
}

/// The order of two values, as `<` and its kind see it.
///
/// # Errors
/// Of types that have no order among them, and of NaN.
pub(crate) fn compare(a: &Value<'_>, b: &Value<'_>) -> Result<Ordering, Error> {
    match (a, b) {
        (Value::Bool(a), Value::Bool(b)) => Ok(a.cmp(b)),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), Value::Int(_) | Value::Uint(_) | Value::Double(_)) => {
            numbers(a, b).ok_or_else(|| Error::new("NaN values cannot be ordered"))
        }
        (Value::String(a), Value::String(b)) => Ok((**a).cmp(&**b)),
        (Value::Bytes(a), Value::Bytes(b)) => Ok(a.cmp(b)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(a.cmp(b)),
        (Value::Duration(a), Value::Duration(b)) => Ok(a.cmp(b)),
        (Value::Double(a), _) if a.is_nan() => Err(Error::new("NaN values cannot be ordered")),
        _ => Err(Error::no_such_overload()),
    }
}
