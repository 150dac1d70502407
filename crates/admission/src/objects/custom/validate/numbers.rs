//! Numbers, with Go's arithmetic (kube-openapi `pkg/validation/validate/values.go`, and go-openapi `swag`).

use palisade_cel::{Minor, float_text};
use serde_json::{Number as JsonNumber, Value};

use super::{Found, Given, Validator};
use crate::{objects::custom::schema::is, validation::ErrorType};

/// A number as Go decodes it: an integer if it is written as one and fits.
#[derive(Clone, Copy, Debug)]
pub(super) enum Number {
    Int(i64),
    Float(f64),
}

impl Number {
    pub(super) fn of(number: &JsonNumber) -> Self {
        number.as_i64().map_or_else(|| Self::Float(number.as_f64().unwrap_or(f64::NAN)), Self::Int)
    }

    #[expect(clippy::cast_precision_loss, reason = "as in Go")]
    pub(super) fn to_float(self) -> f64 {
        match self {
            Self::Int(number) => number as f64,
            Self::Float(number) => number,
        }
    }

    /// Go's conversion, which has one value for all that do not fit.
    #[expect(clippy::cast_possible_truncation, reason = "what does not fit is handled")]
    pub(super) fn to_int(self) -> i64 {
        match self {
            Self::Int(number) => number,
            Self::Float(number) if fits(number.trunc()) => number as i64,
            Self::Float(_) => i64::MIN,
        }
    }
}

/// Whether a whole double is an integer of 64 bits.
fn fits(number: f64) -> bool {
    (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&number)
}

/// `swag.IsFloat64AJSONInteger`: whole, or so near to it that the difference is taken for an error of arithmetic.
#[expect(clippy::float_cmp, reason = "as in Go")]
pub(super) fn is_integer(minor: Minor, number: f64) -> bool {
    const MAX_SAFE_INTEGER: f64 = 9_007_199_254_740_991.0;
    const EPSILON: f64 = 1e-9;
    if number.is_nan() || number.abs() > MAX_SAFE_INTEGER {
        return false;
    }
    if minor >= Minor::V1_37 {
        let rounded = number.round();
        return number == rounded || (rounded != 0.0 && (number - rounded).abs() < EPSILON * rounded.abs());
    }
    let whole = number.trunc();
    if number == whole {
        return true;
    }
    // What is cut off counts, so only what is a little above is near; below zero nothing is.
    number > 0.0 && whole != 0.0 && (number - whole) / (number + whole) < EPSILON
}

/// The range of an integer or of a float of a format, and the constraints.
pub(super) fn check(
    validator: Validator,
    (schema, types, format): (&Value, &[&str], &str),
    number: &JsonNumber,
    given: Given<'_>,
) -> Found {
    let mut found = Found::default();
    let number = Number::of(number);
    // Since 1.36, and only with one type.
    let of = if validator.minor >= Minor::V1_36 && types.len() == 1 { types[0] } else { "" };
    let is_known = match of {
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    };
    let range = Range { of, format: if is_known { format } else { "" } };
    range.check("Checked", number, given.path, &mut found);
    let limit = |key: &str| schema.get(key).and_then(Value::as_f64);
    if let Some(factor) = limit("multipleOf") {
        let mut wrong = Found::default();
        let compatible = range.check("MultipleOf", Number::Float(factor), given.path, &mut wrong);
        multiple(validator, (number, factor, compatible), given, &mut wrong);
        found.merge(wrong);
    }
    for (key, exclusive, name) in
        [("minimum", "exclusiveMinimum", "Minimum boundary"), ("maximum", "exclusiveMaximum", "Maximum boundary")]
    {
        if let Some(bound) = limit(key) {
            let mut wrong = Found::default();
            let compatible = range.check(name, Number::Float(bound), given.path, &mut wrong);
            let bound = Bound { least: key == "minimum", exclusive: is(schema, exclusive), number: bound };
            bound.check(validator, (number, compatible), given, &mut wrong);
            found.merge(wrong);
        }
    }
    found.matches += 1;
    found
}

/// The range of numbers of a type and a format (`IsValueValidAgainstRange`).
#[derive(Clone, Copy)]
struct Range<'s> {
    of: &'s str,
    format: &'s str,
}

impl Range<'_> {
    fn check(self, what: &str, number: Number, path: &str, found: &mut Found) -> bool {
        let is_within = match (self.of, self.format, number) {
            ("integer", "int32", number) => i32::try_from(number.to_int()).is_ok() && is_whole(number),
            ("integer", _, number) => is_whole(number),
            #[expect(clippy::cast_possible_truncation, reason = "to see whether it becomes infinite")]
            ("number", "float", Number::Float(number)) => (number as f32).is_finite(),
            _ => true,
        };
        if !is_within {
            let of = self.of;
            found.add_plain(&if self.format.is_empty() {
                format!("{what} value must be of type {of} (default format) in {path}")
            } else {
                format!("{what} value must be of type {of} with format {} in {path}", self.format)
            });
        }
        is_within
    }
}

fn is_whole(number: Number) -> bool {
    match number {
        Number::Int(_) => true,
        Number::Float(number) => number.fract() == 0.0 && fits(number),
    }
}

fn multiple(
    validator: Validator,
    (number, factor, compatible): (Number, f64, bool),
    given: Given<'_>,
    found: &mut Found,
) {
    // Integers are divided as such, if the factor is of their type.
    let (is_multiple, factor) = match number {
        Number::Int(number) if compatible => {
            let factor = Number::Float(factor).to_int();
            (if factor > 0 { Some(number % factor == 0) } else { None }, Value::from(factor))
        }
        number => {
            let number = number.to_float();
            let quotient = if factor < 1.0 { 1.0 / factor * number } else { number / factor };
            ((factor > 0.0).then(|| is_integer(validator.minor, quotient)), Value::from(factor))
        }
    };
    let shown = text(&factor);
    match is_multiple {
        Some(true) => {}
        Some(false) => {
            validator.invalid(given, &native(number, compatible), &format!("should be a multiple of {shown}"), found);
        }
        None => {
            let message = format!("factor MultipleOf declared for {} must be positive: {shown}", given.path);
            validator.wrong(ErrorType::Invalid, given.path, &factor, &message, found);
        }
    }
}

/// A number as it is reported: as a double, if it is compared with one that does not have its type.
fn native(number: Number, compatible: bool) -> Value {
    match number {
        Number::Int(number) if compatible => Value::from(number),
        number => Value::from(number.to_float()),
    }
}

/// A number as Go prints one whose type it does not know.
fn text(number: &Value) -> String {
    match number.as_i64() {
        Some(number) => number.to_string(),
        None => number.as_f64().map_or_else(String::new, float_text),
    }
}

/// `minimum` or `maximum`.
#[derive(Clone, Copy)]
struct Bound {
    least: bool,
    exclusive: bool,
    number: f64,
}

impl Bound {
    fn check(self, validator: Validator, (number, compatible): (Number, bool), given: Given<'_>, found: &mut Found) {
        let (order, shown) = match number {
            Number::Int(number) if compatible => {
                let bound = Number::Float(self.number).to_int();
                (Some(number.cmp(&bound)), bound.to_string())
            }
            number => (number.to_float().partial_cmp(&self.number), float_text(self.number)),
        };
        let Some(order) = order else { return };
        let beyond = if self.least { order.is_lt() } else { order.is_gt() };
        if beyond || (self.exclusive && order.is_eq()) {
            let than = match (self.least, self.exclusive) {
                (true, true) => "greater than",
                (true, false) => "greater than or equal to",
                (false, true) => "less than",
                (false, false) => "less than or equal to",
            };
            validator.invalid(given, &native(number, compatible), &format!("should be {than} {shown}"), found);
        }
    }
}
