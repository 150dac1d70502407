//! Equality and order (cel-go `common/types`: `Equal` and `Compare` of each type, `compare.go`).

use std::cmp::Ordering;

use super::{List, Map, Value, structs, typed};
use crate::eval::Error;

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
        (Value::List(List::Associative(items, schema)), Value::List(b)) => return typed::equal_list(items, schema, b),
        (Value::List(a), Value::List(b)) => {
            a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| not_unequal(&a, &b))
        }
        (Value::Map(Map::Variables(_)), Value::Map(Map::Variables(_))) => true,
        (Value::Map(Map::Variables(_)), _) => return Err(Error::no_such_overload()),
        (Value::Map(Map::Typed(fields, schema)), Value::Map(b)) => return typed::equal_map(fields, schema, b),
        (Value::Map(a), Value::Map(b)) => {
            a.len() == b.len()
                && a.entries().all(|(key, value)| b.get(&key).is_some_and(|other| not_unequal(&value, &other)))
        }
        (Value::Optional(a), Value::Optional(b)) => match (a, b) {
            (Some(a), Some(b)) => return inner(a, b),
            (a, b) => a.is_none() == b.is_none(),
        },
        (Value::Opaque(a), b) => return a.equals(b),
        (Value::Struct(a), Value::Struct(b)) => return structs::equals(a, b),
        _ => false,
    })
}

/// In a list or map, what refuses to be compared counts as equal (`baseList.Equal`).
fn not_unequal(a: &Value<'_>, b: &Value<'_>) -> bool {
    equal(a, b) != Ok(false)
}

/// Inside of an optional the type of the left value decides, of null as well.
pub(super) fn inner(a: &Value<'_>, b: &Value<'_>) -> Result<bool, Error> {
    match (a, b) {
        (Value::Opaque(a), b) => a.equals(b),
        _ => equal(a, b),
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
