//! Estimated costs of calls, before anything is evaluated (apiserver `pkg/cel/library/cost.go`, `EstimateCallCost`;
//! cel-go `checker/cost.go` and `ext`). A function without an estimate here costs 1.

mod call;
mod path;
mod range;

pub(crate) use call::{Arg, is_scalar};
pub use call::{Call, CallEstimate, Sizes, UnknownSizes};
pub(crate) use path::Path;
pub use range::Range;

use crate::{
    Minor,
    ast::{Expr, Literal},
    types::{Decl, Type},
};

/// Estimates the cost of a call without its arguments; `None` means a cost of 1 and a result of unknown size.
pub type Estimate = fn(&Call<'_>) -> Option<CallEstimate>;

/// A pass over a text, per character.
const TRAVERSAL: f64 = 0.1;
/// A regular expression, per character.
const REGEX: f64 = 0.25;
const ONE: Range = Range::fixed(1);

/// A question to an authorizer.
pub(super) const AUTHORIZATION: Estimate = |_| Some(Range::fixed(350_000).into());
/// Reading a selector, and making its requirements.
pub(super) const SELECTOR: Estimate = |call| {
    let length = call.size(call.args.first()?);
    Some(Range::fixed(10).plus(length.scaled(TRAVERSAL)).plus(length.scaled(0.5).scaled(50.0)).into())
};
/// Looking at each element of the receiver, or at each character.
pub(super) const SEARCH: Estimate = |call| {
    let size = call.size(call.target?);
    Some(each_element(call).unwrap_or_else(|| size.scaled(TRAVERSAL)).into())
};
/// As [`SEARCH`], but that what is not a list may be one.
pub(super) const INCLUSION: Estimate = |call| {
    let size = call.size(call.target?);
    Some(each_element(call).unwrap_or(size).into())
};
/// One pass over the argument, which the result is as large as.
pub(super) const COPY_OF_ARGUMENT: Estimate = |call| {
    let size = call.size(call.args.first()?);
    Some(CallEstimate::sized(size.scaled(TRAVERSAL), size))
};
/// One pass over the receiver, which the result is as large as.
pub(super) const COPY_OF_RECEIVER: Estimate = |call| {
    let size = call.size(call.target?);
    Some(CallEstimate::sized(size.scaled(TRAVERSAL), size))
};
/// Reading a text, which is the first argument.
pub(super) const READING: Estimate = |call| Some(call.size(call.args.first()?).scaled(TRAVERSAL).into());
/// Reading a text and writing it again.
pub(super) const READING_TWICE: Estimate = |call| Some(call.size(call.args.first()?).scaled(2.0 * TRAVERSAL).into());
/// Parts of the receiver are replaced.
pub(super) const REPLACEMENT: Estimate = |call| {
    let size = call.size(call.target?);
    let [replaced, by, ..] = call.args else { return None };
    let result = replaced_size(size, call.size(replaced), call.size(by));
    Some(CallEstimate::sized(size.scaled(2.0 * TRAVERSAL), result))
};
/// The receiver in parts: at worst its characters, unless a constant says how many parts there are at most.
pub(super) const SPLIT: Estimate = |call| {
    let size = call.size(call.target?);
    let limit = call.args.get(1).and_then(integer);
    #[expect(clippy::cast_sign_loss, reason = "as cel-go does: a negative limit is none")]
    let most = limit.map_or(size.max, |limit| limit as u64);
    Some(CallEstimate::sized(size.scaled(2.0 * TRAVERSAL), Range { min: 0, max: most }))
};
/// The elements of the receiver, with the argument between them.
pub(super) const JOIN: Estimate = |call| {
    let list = call.target?;
    let count = call.size(list);
    let mut size = list.element().map_or(Range::default(), |element| count.times(call.size(&element)));
    if let Some(separator) = call.args.first() {
        let separators = Range { min: count.min.saturating_sub(1), max: count.max.saturating_sub(1) };
        size = size.plus(call.size(separator).times(separators));
    }
    Some(CallEstimate::sized(size.scaled(TRAVERSAL), size))
};
/// All that a regular expression, which is the argument, finds in the receiver.
pub(super) const FINDING: Estimate = |call| {
    let size = call.size(call.target?);
    let pattern = call.size(call.args.first()?);
    Some(CallEstimate::sized(matching(size, pattern), Range { min: 0, max: size.max }))
};
/// Whether a regular expression matches. In the form of a function it costs 1 before cel-go 0.29.
pub(super) const MATCHING: Estimate = |call| match (call.target, call.args) {
    (Some(text), [pattern]) => Some(matching(call.known(text), call.known(pattern)).into()),
    (None, [text, pattern]) if call.minor >= Minor::V1_37 => {
        Some(matching(call.known(text), call.known(pattern)).into())
    }
    _ => None,
};
/// An address, read from a text or taken out of a range.
pub(super) const ADDRESS: Estimate = |call| if call.overload.id == "cidr_ip" { None } else { READING(call) };
/// Whether an address, perhaps as a text, is in a range.
pub(super) const CONTAINS_IP: Estimate = |call| {
    let read = if call.overload.id == "cidr_contains_ip_string" { READING(call)?.cost } else { Range::default() };
    Some(BYTES.plus(BYTES).scaled(TRAVERSAL).plus(read).into())
};
/// Whether a range, perhaps as a text, is in another.
pub(super) const CONTAINS_CIDR: Estimate = |call| {
    let read = if call.overload.id == "cidr_contains_cidr_string" { READING(call)?.cost } else { Range::default() };
    Some(BYTES.plus(BYTES).scaled(TRAVERSAL).plus(BYTES.scaled(TRAVERSAL)).plus(ONE).plus(read).into())
};
/// Whether a text is of a format: at worst by a regular expression of 128 characters.
pub(super) const VALIDATION: Estimate =
    |call| Some(call.size(call.args.first()?).scaled(TRAVERSAL).scaled(128.0 * REGEX).into());
/// A text with its arguments in place.
pub(super) const FORMAT: Estimate = |call| Some(call.known(call.target?).scaled(TRAVERSAL).into());
/// A text as bytes: at most four for a character. All else is for 1.
pub(super) const TO_BYTES: Estimate = |call| {
    let size = converted(call, Decl::String)?;
    Some(CallEstimate::sized(size.scaled(TRAVERSAL), Range { min: size.min, max: size.max.wrapping_mul(4) }))
};
/// Bytes as a text: at least a fourth as many characters. All else is for 1.
pub(super) const TO_TEXT: Estimate = |call| {
    let size = converted(call, Decl::Bytes)?;
    Some(CallEstimate::sized(size.scaled(TRAVERSAL), Range { min: size.min / 4, max: size.max }))
};
/// A text in quotes, with a backslash before each character at worst.
pub(super) const QUOTE: Estimate = |call| {
    let size = call.known(call.args.first()?);
    let most = size.max.wrapping_mul(2).wrapping_add(2);
    Some(CallEstimate::sized(size.scaled(TRAVERSAL), Range { min: size.min.wrapping_add(2), max: most }))
};
/// One pass over the argument.
pub(super) const AFFIX: Estimate = |call| Some(call.known(call.args.first()?).scaled(TRAVERSAL).into());
/// Each part of one text with each of the other.
pub(super) const CONTAINS: Estimate = |call| {
    let (text, part) = (call.known(call.target?), call.known(call.args.first()?));
    Some(text.scaled(TRAVERSAL).times(part.scaled(TRAVERSAL)).into())
};
/// Each element of a list.
pub(super) const MEMBERSHIP: Estimate = |call| match call.args {
    [_, list] if call.overload.id == "in_list" => Some(call.known(list).scaled(1.0).into()),
    _ => None,
};
/// `==`: one pass over the smaller operand; for some types always the same.
pub(super) const EQUALITY: Estimate = |call| {
    let [left, right] = call.args else { return None };
    let name = match left.of {
        Type::Opaque(name) => name,
        Type::Object(name) => &**name,
        _ => return comparison(call),
    };
    match name {
        _ if left.of != right.of => comparison(call),
        "net.IP" | "net.CIDR" | "kubernetes.Quantity" | "kubernetes.Semver" => Some(ONE.into()),
        "kubernetes.NamedFormat" => Some(Range { min: 1, max: 64 }.scaled(TRAVERSAL).into()),
        // The API server looks at the right side alone.
        "kubernetes.URL" => Some(Range { min: 1, max: right.size.map_or(1, |size| size.max) }.scaled(TRAVERSAL).into()),
        name if name.starts_with("kubernetes.authorization.") => Some(ONE.into()),
        _ => comparison(call),
    }
};
/// `!=`: one pass over the smaller operand.
pub(super) const INEQUALITY: Estimate = comparison;
/// `<` and its like: for texts and bytes one pass over the shorter operand.
pub(super) const ORDER: Estimate =
    |call| if matches!(call.overload.args, [Decl::String | Decl::Bytes, _]) { comparison(call) } else { None };
/// Each element with each other.
pub(super) const PRODUCT: Estimate = |call| Some(product(call)?.plus(ONE).into());
/// Each element with each other, both ways.
pub(super) const DOUBLE_PRODUCT: Estimate = |call| Some(product(call)?.scaled(2.0).plus(ONE).into());
/// A part of the receiver.
pub(super) const SLICE: Estimate = |call| {
    let size = call.size(call.target?);
    let [start, end] = call.args else { return None };
    let length = natural(end).unwrap_or(size.max).wrapping_sub(natural(start).unwrap_or(0));
    Some(new_list(1.0, Range::fixed(length)))
};
/// As many numbers as the argument.
pub(super) const RANGE: Estimate =
    |call| Some(new_list(1.0, Range::fixed(natural(call.args.first()?).unwrap_or(u64::MAX))));
/// The receiver again.
pub(super) const REVERSAL: Estimate = |call| Some(new_list(1.0, call.size(call.target?)));
/// The receiver without the lists in it, to a depth.
pub(super) const FLATTENING: Estimate = |call| {
    let depth = call.args.first().map_or(1, |depth| natural(depth).unwrap_or(u64::MAX));
    #[expect(clippy::cast_precision_loss, reason = "as cel-go does")]
    Some(new_list(depth as f64, call.size(call.target?)))
};
/// Each element of the receiver with each other.
pub(super) const DISTINCTION: Estimate = |call| Some(self_comparison(2.0, call.size(call.target?)));
/// Each element of the receiver with each other; texts are longer.
pub(super) const SORTING: Estimate =
    |call| Some(self_comparison(sorting_factor(call.overload.args.first()), call.size(call.target?)));
/// Compares each key, which are a list in the argument, with each other key.
pub(super) const SORTING_BY_KEYS: Estimate =
    |call| Some(self_comparison(sorting_factor(call.overload.args.get(1)), call.size(call.args.first()?)));

/// The bytes of an address.
const BYTES: Range = Range { min: 4, max: 16 };

/// Comparing with each element of the receiver; none if it has none.
fn each_element(call: &Call<'_>) -> Option<Range> {
    let list = call.target?;
    let element = list.element()?;
    let texts = matches!(element.of, Type::String | Type::Bytes);
    let each = if texts { ONE.plus(call.size(&element).scaled(TRAVERSAL)) } else { ONE };
    Some(call.size(list).times(each))
}

/// How long a text may be after a replacement.
fn replaced_size(size: Range, replaced: Range, by: Range) -> Range {
    let (mut count, mut retained) = (Range::default(), Range::default());
    if replaced.min == 0 {
        // Between all characters.
        count.max = size.max.saturating_add(1);
        retained.max = size.max;
    } else if by.max <= replaced.min {
        retained.max = size.max;
    } else {
        count.max = quotient(size.max, replaced.min);
    }
    if replaced.max == 0 {
        count.min = size.min.saturating_add(1);
        retained.min = size.min;
    } else if replaced.max <= by.min {
        retained.min = size.min;
    } else {
        count.min = quotient(size.min, replaced.max);
    }
    count.times(by).plus(retained)
}

/// Rounded up, and as Go on amd64 converts it where no unsigned integer can hold it.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "as the API server does"
)]
fn quotient(size: u64, by: u64) -> u64 {
    let quotient = (size as f64 / by as f64).ceil();
    if quotient >= 18_446_744_073_709_551_616.0 { 1 << 63 } else { quotient as u64 }
}

fn matching(text: Range, pattern: Range) -> Range {
    // An empty text is not for nothing.
    text.plus(ONE).scaled(TRAVERSAL).times(pattern.scaled(REGEX))
}

/// The size of the argument of a conversion from a type.
fn converted(call: &Call<'_>, from: Decl) -> Option<Range> {
    (call.overload.args == [from]).then_some(())?;
    Some(call.known(call.args.first()?))
}

fn comparison(call: &Call<'_>) -> Option<CallEstimate> {
    let [left, right] = call.args else { return None };
    let most = call.known(left).max.min(call.known(right).max);
    Some(Range { min: u64::from(most > 0), max: most }.scaled(TRAVERSAL).into())
}

fn product(call: &Call<'_>) -> Option<Range> {
    let [left, right] = call.args else { return None };
    Some(call.size(left).times(call.size(right)))
}

fn integer(arg: &Arg<'_>) -> Option<i64> {
    match arg.node?.expr {
        Expr::Literal(Literal::Int(value)) => Some(value),
        _ => None,
    }
}

/// A constant, zero if it is negative.
fn natural(arg: &Arg<'_>) -> Option<u64> {
    integer(arg).map(|value| u64::try_from(value).unwrap_or(0))
}

fn new_list(factor: f64, size: Range) -> CallEstimate {
    CallEstimate::sized(size.scaled(factor).plus(Range::fixed(1 + 10)), size)
}

/// cel-go takes the result to be as long as there are comparisons.
fn self_comparison(factor: f64, size: Range) -> CallEstimate {
    new_list(factor, size.times(size))
}

fn sorting_factor(list: Option<&Decl>) -> f64 {
    if matches!(list, Some(Decl::List(Decl::String | Decl::Bytes))) { 2.1 } else { 2.0 }
}
