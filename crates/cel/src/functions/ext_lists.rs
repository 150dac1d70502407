//! Lists, as cel-go extends them (`ext/lists.go`, version 3).

use std::cmp::Ordering;

use super::{EvalResult, int, list, operators};
use super::{Function, T, cost, estimate, function, member};
use crate::types::Decl::{Bool, Bytes, Double, Duration, Dyn, Int, List, String, Timestamp, Uint};
use crate::{
    stack::with_stack,
    value::{self, Error, Value, compare},
};

/// The functions.
pub const FUNCTIONS: &[Function] = &[
    Function::new(
        "slice",
        &[member("list_slice", &[List(&T), Int, Int], List(&T)).since(34).eval(slice).cost(cost::NEW_LIST)],
    )
    .estimate(estimate::SLICE),
    Function::new(
        "flatten",
        &[
            member("list_flatten", &[List(&List(&T))], List(&T)).since(34).cost(cost::FLATTEN),
            member("list_flatten_int", &[List(&Dyn), Int], List(&Dyn)).since(34).until(36).cost(cost::FLATTEN),
            member("list_flatten_int", &[List(&Dyn), Int], List(&Dyn)).since(34).from(37).cost(cost::FLATTEN_POSITIVE),
        ],
    )
    .dynamic(flatten)
    .estimate(estimate::FLATTENING),
    Function::new(
        "sort",
        &[
            member("list_int_sort", &[List(&Int)], List(&Int)).since(34).cost(cost::DISTINCT),
            member("list_uint_sort", &[List(&Uint)], List(&Uint)).since(34).cost(cost::DISTINCT),
            member("list_double_sort", &[List(&Double)], List(&Double)).since(34).cost(cost::DISTINCT),
            member("list_bool_sort", &[List(&Bool)], List(&Bool)).since(34).cost(cost::DISTINCT),
            member("list_google.protobuf.Duration_sort", &[List(&Duration)], List(&Duration))
                .since(34)
                .cost(cost::DISTINCT),
            member("list_google.protobuf.Timestamp_sort", &[List(&Timestamp)], List(&Timestamp))
                .since(34)
                .cost(cost::DISTINCT),
            member("list_string_sort", &[List(&String)], List(&String)).since(34).cost(cost::DISTINCT),
            member("list_bytes_sort", &[List(&Bytes)], List(&Bytes)).since(34).cost(cost::DISTINCT),
        ],
    )
    .dynamic(sort)
    .estimate(estimate::SORTING),
    Function::new(
        "@sortByAssociatedKeys",
        &[
            member("list_int_sortByAssociatedKeys", &[List(&T), List(&Int)], List(&T)).since(34).cost(cost::SORT_BY),
            member("list_uint_sortByAssociatedKeys", &[List(&T), List(&Uint)], List(&T)).since(34).cost(cost::SORT_BY),
            member("list_double_sortByAssociatedKeys", &[List(&T), List(&Double)], List(&T))
                .since(34)
                .cost(cost::SORT_BY),
            member("list_bool_sortByAssociatedKeys", &[List(&T), List(&Bool)], List(&T)).since(34).cost(cost::SORT_BY),
            member("list_google.protobuf.Duration_sortByAssociatedKeys", &[List(&T), List(&Duration)], List(&T))
                .since(34)
                .cost(cost::SORT_BY),
            member("list_google.protobuf.Timestamp_sortByAssociatedKeys", &[List(&T), List(&Timestamp)], List(&T))
                .since(34)
                .cost(cost::SORT_BY),
            member("list_string_sortByAssociatedKeys", &[List(&T), List(&String)], List(&T))
                .since(34)
                .cost(cost::SORT_BY),
            member("list_bytes_sortByAssociatedKeys", &[List(&T), List(&Bytes)], List(&T))
                .since(34)
                .cost(cost::SORT_BY),
        ],
    )
    .dynamic(sort_by_keys)
    .estimate(estimate::SORTING_BY_KEYS),
    Function::new(
        "lists.range",
        &[
            function("lists_range", &[Int], List(&Int)).since(34).until(36).eval(range).cost(cost::NEW_LIST),
            function("lists_range", &[Int], List(&Int)).since(34).from(37).eval(bounded_range).cost(cost::NEW_LIST),
        ],
    )
    .estimate(estimate::RANGE),
    Function::new(
        "reverse",
        &[member("list_reverse", &[List(&T)], List(&T)).since(34).eval(reverse).cost(cost::NEW_LIST)],
    )
    .estimate(estimate::REVERSAL),
    Function::new(
        "distinct",
        &[member("list_distinct", &[List(&T)], List(&T)).since(34).eval(distinct).cost(cost::DISTINCT)],
    )
    .estimate(estimate::DISTINCTION),
];

// Evaluation.

/// Go would make longer ones; what they cost is more than any expression may.
const MAX_RANGE: i64 = 10_000_000;

fn slice<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let (list, start, end) = (list(args, 0)?, int(args, 1)?, int(args, 2)?);
    let length = list.len();
    let refused = |why: &str| Err(Error::new(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(from), Ok(to)) = (usize::try_from(start), usize::try_from(end)) else {
        return refused("negative indexes not supported");
    };
    if from > to {
        return refused("start index must be less than or equal to end index");
    }
    if length < to {
        return refused(&format!("list is length {length}"));
    }
    Ok(list.iter().skip(from).take(to - from).collect::<Vec<_>>().into())
}

fn flatten<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let depth = if args.len() > 1 { int(args, 1) } else { Ok(1) };
    let (Value::List(list), Ok(depth)) = (&args[0], depth) else {
        let types = |args: &[Value<'_>]| args.iter().map(Value::type_name).collect::<Vec<_>>().join(", ");
        let receiver = if let Value::Map(_) = args[0] { "map(dyn, dyn)" } else { args[0].type_name() };
        return Err(Error::new(format!("no such overload: {receiver}.flatten({})", types(&args[1..]))));
    };
    if depth < 0 {
        return Err(Error::new("level must be non-negative"));
    }
    let mut flat = Vec::new();
    flatten_into(&mut flat, list, depth);
    Ok(flat.into())
}

fn flatten_into<'a>(flat: &mut Vec<Value<'a>>, list: &value::List<'a>, depth: i64) {
    for value in list.iter() {
        match value {
            Value::List(nested) if depth > 0 => with_stack(|| flatten_into(flat, &nested, depth - 1)),
            value => flat.push(value),
        }
    }
}

fn sort<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    sorted("sort", args, 0)
}

fn sort_by_keys<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    sorted("@sortByAssociatedKeys", args, 1)
}

/// The first list in the order of the one at an index.
fn sorted<'a>(function: &str, args: &[Value<'a>], keys: usize) -> EvalResult<'a> {
    let Value::List(list) = &args[0] else { return Err(operators::untyped(function, &args[0])) };
    let keys: Vec<Value<'a>> = self::list(args, keys)?.iter().collect();
    if list.len() != keys.len() {
        return Err(Error::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    let Some(first) = keys.first() else { return Ok(args[0].clone()) };
    if !operators::is_comparable(first) {
        return Err(Error::new("list elements must be comparable"));
    }
    if keys.iter().any(|key| key.type_name() != first.type_name()) {
        return Err(Error::new("list elements must have the same type"));
    }
    let mut elements: Vec<(Value<'a>, Value<'a>)> = keys.into_iter().zip(list.iter()).collect();
    if elements.iter().any(|(key, _)| matches!(key, Value::Double(value) if value.is_nan())) {
        // There is no order to sort by: what Go's insertion sort does with short lists.
        for end in 1..elements.len() {
            let mut place = end;
            while place > 0 && compare(&elements[place].0, &elements[place - 1].0) == Ok(Ordering::Less) {
                elements.swap(place, place - 1);
                place -= 1;
            }
        }
    } else {
        elements.sort_by(|(a, _), (b, _)| compare(a, b).unwrap_or(Ordering::Equal));
    }
    Ok(elements.into_iter().map(|(_, element)| element).collect::<Vec<_>>().into())
}

fn range<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let end = int(args, 0)?;
    if end > MAX_RANGE {
        return Err(Error::cost_limit());
    }
    Ok((0..end).map(Value::Int).collect::<Vec<_>>().into())
}

/// As from cel-go 0.29 on.
fn bounded_range<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    match int(args, 0)? {
        size if size < 0 => Err(Error::new(format!("lists.range: size must be non-negative, got {size}"))),
        size if size > 1_000_000 => {
            Err(Error::new(format!("lists.range: size {size} exceeds maximum allowed (1000000)")))
        }
        _ => range(args),
    }
}

fn reverse<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    Ok(list(args, 0)?.iter().rev().collect::<Vec<_>>().into())
}

fn distinct<'a>(args: &mut [Value<'a>]) -> EvalResult<'a> {
    let mut unique: Vec<Value<'a>> = Vec::new();
    for value in list(args, 0)?.iter() {
        if !unique.iter().any(|other| value.equals(other) == Ok(true)) {
            unique.push(value);
        }
    }
    Ok(unique.into())
}
