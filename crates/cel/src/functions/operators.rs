//! Operators, and the functions of the standard library that look at types themselves.
//!
//! cel-go's traits decide which error a wrong type gives: a type without the operator's trait is rejected with the
//! operator's name, unless it is one of those that answer method calls.

use std::cmp::Ordering;

use super::{EvalResult, take};
use crate::{
    library::re2::Regex,
    value::{Error, Map, Str, Value, compare},
};

/// The error of an operator if its first operand does not have it.
pub(super) fn untyped(name: &str, operand: &Value<'_>) -> Error {
    match operand {
        // These answer methods, but not this one.
        Value::String(_) | Value::Timestamp(_) | Value::Duration(_) => Error::no_such_overload(),
        _ => Error::new(format!("no such overload: {name}")),
    }
}

fn overflow() -> Error {
    Error::new("integer overflow")
}

fn uint_overflow() -> Error {
    Error::new("unsigned integer overflow")
}

/// Whether values of the type have an order.
pub(super) fn is_comparable(value: &Value<'_>) -> bool {
    matches!(value, Value::Bool(_) | Value::Bytes(_)) || (is_summand(value) && !matches!(value, Value::List(_)))
}

/// Whether values of the type can be added.
pub(super) fn is_summand(value: &Value<'_>) -> bool {
    matches!(
        value,
        Value::Bytes(_)
            | Value::Double(_)
            | Value::Duration(_)
            | Value::Int(_)
            | Value::List(_)
            | Value::String(_)
            | Value::Timestamp(_)
            | Value::Uint(_)
    )
}

pub(super) fn not<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    args[0].as_bool().map(|value| Value::Bool(!value)).ok_or_else(Error::no_such_overload)
}

pub(super) fn add<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match (take(args, 0), take(args, 1)) {
        (Value::Int(a), Value::Int(b)) => a.checked_add(b).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(a), Value::Uint(b)) => a.checked_add(b).map(Value::Uint).ok_or_else(uint_overflow),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a + b)),
        (Value::String(a), Value::String(b)) => {
            let mut text = std::string::String::with_capacity(a.len() + b.len());
            text.push_str(&a);
            text.push_str(&b);
            Ok(text.into())
        }
        (Value::Bytes(a), Value::Bytes(b)) => Ok(Value::Bytes([&*a, &*b].concat().into())),
        (Value::List(a), Value::List(b)) => Ok(Value::List(a.plus(b))),
        (Value::Duration(a), Value::Duration(b)) => Ok(Value::Duration(a.add(b)?)),
        (Value::Duration(a), Value::Timestamp(b)) | (Value::Timestamp(b), Value::Duration(a)) => {
            Ok(Value::Timestamp(b.add(a)?))
        }
        (a, _) if is_summand(&a) => Err(Error::no_such_overload()),
        (a, _) => Err(untyped("_+_", &a)),
    }
}

pub(super) fn subtract<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => a.checked_sub(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(a), Value::Uint(b)) => a.checked_sub(*b).map(Value::Uint).ok_or_else(uint_overflow),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a - b)),
        (Value::Duration(a), Value::Duration(b)) => Ok(Value::Duration(a.sub(*b)?)),
        (Value::Timestamp(a), Value::Duration(b)) => Ok(Value::Timestamp(a.sub(*b)?)),
        (Value::Timestamp(a), Value::Timestamp(b)) => Ok(Value::Duration(a.since(*b)?)),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => Err(Error::no_such_overload()),
        (a, _) => Err(untyped("_-_", a)),
    }
}

pub(super) fn multiply<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(a), Value::Int(b)) => a.checked_mul(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(a), Value::Uint(b)) => a.checked_mul(*b).map(Value::Uint).ok_or_else(uint_overflow),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a * b)),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => Err(Error::no_such_overload()),
        (a, _) => Err(untyped("_*_", a)),
    }
}

pub(super) fn divide<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(Error::new("division by zero")),
        (Value::Int(a), Value::Int(b)) => a.checked_div(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(a / b)),
        (Value::Double(a), Value::Double(b)) => Ok(Value::Double(a / b)),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_), _) => Err(Error::no_such_overload()),
        (a, _) => Err(untyped("_/_", a)),
    }
}

pub(super) fn modulo<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match (&args[0], &args[1]) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(Error::new("modulus by zero")),
        (Value::Int(a), Value::Int(b)) => a.checked_rem(*b).map(Value::Int).ok_or_else(overflow),
        (Value::Uint(a), Value::Uint(b)) => Ok(Value::Uint(a % b)),
        (Value::Int(_) | Value::Uint(_), _) => Err(Error::no_such_overload()),
        (a, _) => Err(untyped("_%_", a)),
    }
}

pub(super) fn negate<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[0] {
        Value::Int(value) => value.checked_neg().map(Value::Int).ok_or_else(overflow),
        Value::Double(value) => Ok(Value::Double(-value)),
        Value::Duration(value) => Ok(Value::Duration(crate::value::Duration(0).sub(*value)?)),
        Value::Bool(_) => Err(Error::no_such_overload()),
        other => Err(untyped("-_", other)),
    }
}

fn ordered<'a>(args: &[Value<'a>], name: &str, holds: fn(Ordering) -> bool) -> EvalResult<'a> {
    if !is_comparable(&args[0]) {
        return Err(untyped(name, &args[0]));
    }
    compare(&args[0], &args[1]).map(|order| Value::Bool(holds(order)))
}

pub(super) fn less<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    ordered(args, "_<_", Ordering::is_lt)
}

pub(super) fn less_equals<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    ordered(args, "_<=_", Ordering::is_le)
}

pub(super) fn greater<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    ordered(args, "_>_", Ordering::is_gt)
}

pub(super) fn greater_equals<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    ordered(args, "_>=_", Ordering::is_ge)
}

pub(super) fn contained<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[1] {
        Value::List(list) => Ok(Value::Bool(list.contains(&args[0]))),
        Value::Map(Map::Variables(_)) => Err(Error::no_such_overload()),
        Value::Map(map) => Ok(Value::Bool(map.get(&args[0]).is_some())),
        _ => Err(Error::no_such_overload()),
    }
}

pub(super) fn size<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[0] {
        value @ (Value::String(_) | Value::Bytes(_) | Value::List(_) | Value::Map(_)) => {
            Ok(Value::Int(value.size().and_then(|size| i64::try_from(size).ok()).unwrap_or(i64::MAX)))
        }
        other => Err(untyped("size", other)),
    }
}

fn text<'v>(args: &'v [Value<'_>], index: usize) -> Result<&'v Str<'v>, Error> {
    match &args[index] {
        Value::String(text) => Ok(text),
        _ => Err(Error::no_such_overload()),
    }
}

pub(super) fn contains<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(text(args, 0)?.contains(&**text(args, 1)?).into())
}

pub(super) fn starts_with<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(text(args, 0)?.starts_with(&**text(args, 1)?).into())
}

pub(super) fn ends_with<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(text(args, 0)?.ends_with(&**text(args, 1)?).into())
}

pub(super) fn matches<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let Value::String(text) = &args[0] else { return Err(untyped("matches", &args[0])) };
    Ok(Regex::new(self::text(args, 1)?)?.is_match(text).into())
}
