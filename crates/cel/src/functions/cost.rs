//! Costs of calls (cel-go `interpreter/runtimecost.go` and `ext`, apiserver `pkg/cel/library/cost.go`). Sizes are those
//! of `size()`; a value without a size counts as 1.

use super::Cost;
use crate::value::{Kind, List, Value};

/// One pass over the first argument.
pub(super) const TRAVERSAL: Cost = Cost::Arguments(|args| traversal(first(args)));
/// One pass over the second argument.
pub(super) const SECOND_TRAVERSAL: Cost = Cost::Arguments(|args| traversal(second(args)));
/// Two passes over the first argument.
pub(super) const DOUBLE_TRAVERSAL: Cost = Cost::Arguments(|args| traversal(2.0 * first(args)));
/// Two passes over the result.
pub(super) const DOUBLE_RESULT: Cost = Cost::Result(|result| traversal(2.0 * size(result)));
/// One pass over both arguments.
pub(super) const CONCATENATION: Cost = Cost::Arguments(|args| traversal(first(args) + second(args)));
/// One pass over the shorter argument.
pub(super) const SHORTER: Cost = Cost::Arguments(|args| traversal(first(args).min(second(args))));
/// One per element of the list that is searched.
pub(super) const ELEMENTS: Cost = Cost::Arguments(|args| whole(second(args)));
/// Each part of one text with each of the other.
pub(super) const CONTAINS: Cost = Cost::Arguments(|args| traversal(first(args)) * traversal(second(args)));
/// A text and a regular expression.
pub(super) const REGEX: Cost = Cost::Arguments(|args| regex(first(args), second(args)));
/// A text and the regular expression of a format.
pub(super) const VALIDATION: Cost = Cost::Arguments(|args| match args {
    [Value::Opaque(format), text] => match format.kind() {
        #[expect(clippy::cast_precision_loss, reason = "sizes are small")]
        Kind::Format(format) => regex(size(text), format.regex_size() as f64),
        _ => 1,
    },
    _ => 1,
});
/// One per scalar in the first argument, and of texts the length in bytes.
pub(super) const DEEP_TRAVERSAL: Cost = Cost::Arguments(|args| args.first().map_or(0, deep));
/// Reading a selector, and making its requirements.
pub(super) const SELECTOR: Cost = Cost::Arguments(|args| {
    let length = second(args);
    10 + traversal(length) + whole(((length * 0.5).ceil() * 50.0).ceil())
});
/// Each element with each other.
pub(super) const PRODUCT: Cost = Cost::Arguments(|args| 1 + whole(first(args) * second(args)));
/// Each element with each other, both ways.
pub(super) const DOUBLE_PRODUCT: Cost = Cost::Arguments(|args| 1 + whole(first(args) * second(args) * 2.0));
/// The bytes of a range, with those of an address.
pub(super) const CONTAINS_IP: Cost = Cost::Arguments(|args| traversal(2.0 * first(args)));
/// As [`CONTAINS_IP`], and reading the address.
pub(super) const CONTAINS_IP_TEXT: Cost =
    Cost::Arguments(|args| traversal(2.0 * first(args)) + traversal(second(args)));
/// The bytes of two ranges.
pub(super) const CONTAINS_CIDR: Cost =
    Cost::Arguments(|args| traversal(2.0 * first(args)) + traversal(first(args)) + 1);
/// As [`CONTAINS_CIDR`], and reading the range.
pub(super) const CONTAINS_CIDR_TEXT: Cost =
    Cost::Arguments(|args| traversal(2.0 * first(args)) + traversal(first(args)) + 1 + traversal(second(args)));
/// A list as the result.
pub(super) const NEW_LIST: Cost = Cost::Result(|result| allocation(1.0, size(result)));
/// A list as the result, of lists in the first argument.
pub(super) const FLATTEN: Cost = Cost::Arguments(|args| match args.get(1) {
    #[expect(clippy::cast_precision_loss, reason = "as cel-go does")]
    Some(Value::Int(depth)) => allocation(*depth as f64, first(args)),
    _ => allocation(1.0, first(args)),
});
/// As [`FLATTEN`], but that a negative depth costs as one level.
pub(super) const FLATTEN_POSITIVE: Cost = Cost::Arguments(|args| match args.get(1) {
    Some(Value::Int(..0)) => allocation(1.0, first(args)),
    #[expect(clippy::cast_precision_loss, reason = "as cel-go does")]
    Some(Value::Int(depth)) => allocation(*depth as f64, first(args)),
    _ => allocation(1.0, first(args)),
});
/// Each element with each other.
pub(super) const DISTINCT: Cost = Cost::List(0, self_comparison);
/// Each key with each other.
pub(super) const SORT_BY: Cost = Cost::List(1, self_comparison);

/// The cost of `==` and `!=`.
pub(crate) fn equality(left: &Value<'_>, right: &Value<'_>, negated: bool) -> u64 {
    match left {
        Value::Opaque(_) if !negated => 1,
        _ => traversal(inner_size(left).min(inner_size(right))),
    }
}

/// The size of a value, or of the value of an optional.
fn inner_size(value: &Value<'_>) -> f64 {
    match value {
        Value::Optional(Some(value)) => inner_size(value),
        value => size(value),
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
fn size(value: &Value<'_>) -> f64 {
    value.size().unwrap_or(1) as f64
}

fn first(args: &[Value<'_>]) -> f64 {
    args.first().map_or(1.0, size)
}

fn second(args: &[Value<'_>]) -> f64 {
    args.get(1).map_or(1.0, size)
}

/// A tenth, rounded up.
fn traversal(size: f64) -> u64 {
    whole((size * 0.1).ceil())
}

fn regex(text: f64, pattern: f64) -> u64 {
    // An empty text is not for nothing.
    traversal(1.0 + text) * whole((pattern * 0.25).ceil())
}

fn allocation(factor: f64, size: f64) -> u64 {
    let cost = size * factor;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as cel-go does")]
    let cost = match cost {
        // Where Go converts a negative double to an unsigned integer, it wraps.
        ..0.0 => cost as i64 as u64,
        // And what no unsigned integer can hold becomes this one, on amd64.
        18_446_744_073_709_551_616.0.. => 1 << 63,
        _ => whole(cost),
    };
    cost.wrapping_add(1 + 10)
}

fn self_comparison(list: &List<'_>) -> u64 {
    let factor = if matches!(list.get(0), Some(Value::String(_) | Value::Bytes(_))) { 2.1 } else { 2.0 };
    #[expect(clippy::cast_precision_loss, reason = "sizes are far below 2^52")]
    let size = list.len() as f64;
    allocation(factor, size * size)
}

fn deep(value: &Value<'_>) -> u64 {
    #[expect(clippy::cast_precision_loss, reason = "lengths are far below 2^52")]
    let tenth = |bytes: usize| whole(bytes as f64 * 0.1);
    match value {
        Value::String(text) => tenth(text.len()),
        Value::Bytes(bytes) => tenth(bytes.len()),
        Value::List(list) => list.iter().map(|element| deep(&element)).sum(),
        Value::Map(map) => map.entries().map(|(key, value)| deep(&key) + deep(&value)).sum(),
        _ => 1,
    }
}

/// As Go converts, but that what is too large stays at the end of the range.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "costs are positive")]
fn whole(cost: f64) -> u64 {
    cost as u64
}
