//! Lists (apiserver `pkg/cel/library/lists.go`).

use std::cmp::Ordering;

use super::{A, Function, cost, estimate, member};
use super::{EvalResult, list, operators};
use crate::types::Decl::{Bool, Bytes, Double, Duration, Int, List, String, Timestamp, Uint};
use crate::value::{Error, Value, compare};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "isSorted",
        &[
            member("list_int_is_sorted_bool", &[List(&Int)], Bool).eval(is_sorted),
            member("list_uint_is_sorted_bool", &[List(&Uint)], Bool).eval(is_sorted),
            member("list_double_is_sorted_bool", &[List(&Double)], Bool).eval(is_sorted),
            member("list_bool_is_sorted_bool", &[List(&Bool)], Bool).eval(is_sorted),
            member("list_duration_is_sorted_bool", &[List(&Duration)], Bool).eval(is_sorted),
            member("list_timestamp_is_sorted_bool", &[List(&Timestamp)], Bool).eval(is_sorted),
            member("list_string_is_sorted_bool", &[List(&String)], Bool).eval(is_sorted),
            member("list_bytes_is_sorted_bool", &[List(&Bytes)], Bool).eval(is_sorted),
        ],
    )
    .cost(cost::DEEP_TRAVERSAL)
    .estimate(estimate::SEARCH),
    Function::new(
        "sum",
        &[
            member("list_int_sum_int", &[List(&Int)], Int).eval(sum_int),
            member("list_uint_sum_uint", &[List(&Uint)], Uint).eval(sum_uint),
            member("list_double_sum_double", &[List(&Double)], Double).eval(sum_double),
            member("list_duration_sum_duration", &[List(&Duration)], Duration).eval(sum_duration),
        ],
    )
    .cost(cost::DEEP_TRAVERSAL)
    .estimate(estimate::SEARCH),
    Function::new(
        "max",
        &[
            member("list_int_max_int", &[List(&Int)], Int).eval(max),
            member("list_uint_max_uint", &[List(&Uint)], Uint).eval(max),
            member("list_double_max_double", &[List(&Double)], Double).eval(max),
            member("list_bool_max_bool", &[List(&Bool)], Bool).eval(max),
            member("list_duration_max_duration", &[List(&Duration)], Duration).eval(max),
            member("list_timestamp_max_timestamp", &[List(&Timestamp)], Timestamp).eval(max),
            member("list_string_max_string", &[List(&String)], String).eval(max),
            member("list_bytes_max_bytes", &[List(&Bytes)], Bytes).eval(max),
        ],
    )
    .cost(cost::DEEP_TRAVERSAL)
    .estimate(estimate::SEARCH),
    Function::new(
        "min",
        &[
            member("list_int_min_int", &[List(&Int)], Int).eval(min),
            member("list_uint_min_uint", &[List(&Uint)], Uint).eval(min),
            member("list_double_min_double", &[List(&Double)], Double).eval(min),
            member("list_bool_min_bool", &[List(&Bool)], Bool).eval(min),
            member("list_duration_min_duration", &[List(&Duration)], Duration).eval(min),
            member("list_timestamp_min_timestamp", &[List(&Timestamp)], Timestamp).eval(min),
            member("list_string_min_string", &[List(&String)], String).eval(min),
            member("list_bytes_min_bytes", &[List(&Bytes)], Bytes).eval(min),
        ],
    )
    .cost(cost::DEEP_TRAVERSAL)
    .estimate(estimate::SEARCH),
    Function::new("indexOf", &[member("list_a_index_of_int", &[List(&A), A], Int).eval(index_of)])
        .cost(cost::DEEP_TRAVERSAL)
        .estimate(estimate::SEARCH),
    Function::new("lastIndexOf", &[member("list_a_last_index_of_int", &[List(&A), A], Int).eval(last_index_of)])
        .cost(cost::DEEP_TRAVERSAL)
        .estimate(estimate::SEARCH),
];

// Evaluation.

/// The elements, each of which must be of a type that has an order.
fn comparable<'v, 'a>(args: &'v [Value<'a>]) -> Result<impl Iterator<Item = EvalResult<'a>> + 'v, Error> {
    let check = |value| if operators::is_comparable(&value) { Ok(value) } else { Err(Error::no_such_overload()) };
    Ok(list(args, 0)?.iter().map(check))
}

/// Elements that cannot be compared with one another count as sorted.
fn is_sorted<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let mut previous: Option<Value<'a>> = None;
    for value in comparable(args)? {
        let value = value?;
        if previous.is_some_and(|previous| compare(&previous, &value) == Ok(Ordering::Greater)) {
            return Ok(Value::Bool(false));
        }
        previous = Some(value);
    }
    Ok(Value::Bool(true))
}

fn extreme<'a>(args: &[Value<'a>], name: &str, replaced: Ordering) -> EvalResult<'a> {
    let mut best: Option<Value<'a>> = None;
    for value in comparable(args)? {
        let value = value?;
        match &best {
            Some(other) if compare(other, &value) != Ok(replaced) => {}
            _ => best = Some(value),
        }
    }
    best.ok_or_else(|| Error::new(format!("{name} called on empty list")))
}

fn max<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    extreme(args, "max", Ordering::Less)
}

fn min<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    extreme(args, "min", Ordering::Greater)
}

fn sum<'a>(args: &[Value<'a>], zero: Value<'a>) -> EvalResult<'a> {
    let mut elements = list(args, 0)?.iter();
    elements.try_fold(zero, |sum, element| {
        if operators::is_summand(&element) {
            operators::add(&mut [sum, element])
        } else {
            Err(Error::no_such_overload())
        }
    })
}

fn sum_int<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    sum(args, Value::Int(0))
}

fn sum_uint<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    sum(args, Value::Uint(0))
}

fn sum_double<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    sum(args, Value::Double(0.0))
}

fn sum_duration<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    sum(args, Value::Duration(crate::value::Duration(0)))
}

/// An element equals only if it says so itself: null, for one, equals nothing here but null.
fn position(index: Option<usize>) -> Value<'static> {
    Value::Int(index.and_then(|index| i64::try_from(index).ok()).unwrap_or(-1))
}

fn index_of<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(position(list(args, 0)?.iter().position(|element| element.equals(&args[1]) == Ok(true))))
}

fn last_index_of<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(position(list(args, 0)?.iter().rposition(|element| element.equals(&args[1]) == Ok(true))))
}
