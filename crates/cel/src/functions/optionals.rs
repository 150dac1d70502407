//! Optional values (cel-go `cel/library.go`, `OptionalTypes`).

use std::sync::Arc;

use super::{EvalResult, list, take};
use super::{Function, K, V, function, member};
use crate::types::Decl::{Bool, Dyn, Int, List, Map, Optional, String};
use crate::value::{Error, Value};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new("optional.of", &[function("optional_of", &[V], Optional(&V)).since(28).eval(of)]),
    Function::new(
        "optional.ofNonZeroValue",
        &[function("optional_ofNonZeroValue", &[V], Optional(&V)).since(28).eval(of_non_zero)],
    ),
    Function::new("optional.none", &[function("optional_none", &[], Optional(&V)).since(28).eval(none)]),
    Function::new("value", &[member("optional_value", &[Optional(&V)], V).since(28).eval(value)]),
    Function::new("hasValue", &[member("optional_hasValue", &[Optional(&V)], Bool).since(28).eval(has_value)]),
    Function::new("or", &[member("optional_or_optional", &[Optional(&V), Optional(&V)], Optional(&V)).since(28)]),
    Function::new("orValue", &[member("optional_orValue_value", &[Optional(&V), V], V).since(28)]),
    Function::new("_?._", &[function("select_optional_field", &[Dyn, String], Optional(&V)).since(28)]),
    Function::new(
        "_[?_]",
        &[
            function("list_optindex_optional_int", &[List(&V), Int], Optional(&V)).since(28),
            function("optional_list_optindex_optional_int", &[Optional(&List(&V)), Int], Optional(&V)).since(28),
            function("map_optindex_optional_value", &[Map(&K, &V), K], Optional(&V)).since(28),
            function("optional_map_optindex_optional_value", &[Optional(&Map(&K, &V)), K], Optional(&V)).since(28),
        ],
    ),
    Function::new(
        "_[_]",
        &[
            function("optional_list_index_int", &[Optional(&List(&V)), Int], Optional(&V)).since(28),
            function("optional_map_index_value", &[Optional(&Map(&K, &V)), K], Optional(&V)).since(28),
        ],
    ),
    Function::new("last", &[member("list_last", &[List(&V)], Optional(&V)).since(28).from(33).eval(last)]),
    Function::new("first", &[member("list_first", &[List(&V)], Optional(&V)).since(28).from(33).eval(first)]),
    Function::new(
        "optional.unwrap",
        &[function("optional_unwrap", &[List(&Optional(&V))], List(&V)).since(28).from(33).eval(unwrap)],
    ),
    Function::new(
        "unwrapOpt",
        &[member("optional_unwrapOpt", &[List(&Optional(&V))], List(&V)).since(28).from(33).eval(unwrap)],
    ),
];

// Evaluation.

fn of<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::some(take(args, 0)))
}

fn of_non_zero<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let value = take(args, 0);
    Ok(if value.is_zero() { Value::Optional(None) } else { Value::some(value) })
}

fn none<'a>(_: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Optional(None))
}

fn value<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match &args[0] {
        Value::Optional(Some(value)) => Value::unwrapped(value),
        Value::Optional(None) => Err(Error::new("optional.none() dereference")),
        _ => Err(Error::no_such_overload()),
    }
}

fn has_value<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Bool(matches!(args[0], Value::Optional(Some(_)))))
}

fn last<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let list = list(args, 0)?;
    Ok(Value::Optional(list.len().checked_sub(1).and_then(|index| list.get(index)).map(Arc::new)))
}

fn first<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(Value::Optional(list(args, 0)?.get(0).map(Arc::new)))
}

fn unwrap<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let mut values = Vec::new();
    for value in list(args, 0)?.iter() {
        match value {
            Value::Optional(Some(value)) => values.push(Value::unwrapped(&value)?),
            Value::Optional(None) => {}
            value => return Err(Error::new(format!("value {value} is not optional"))),
        }
    }
    Ok(values.into())
}
