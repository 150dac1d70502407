//! What has a form of its own in JSON (`UnmarshalJSON` and `ToUnstructured` of apimachinery): quantities, times.

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use palisade_cel::Quantity;
use serde_json::{Number, Value};

use super::table::Own;

/// Why a value is not of its form.
pub(super) enum Wrong {
    /// Something of another type: what it is, and which Go type is wanted.
    Type(String, &'static str),
    /// In these words.
    Text(String),
}

impl From<String> for Wrong {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// What policies see of such a value.
pub(super) fn decode(own: Own, value: &Value) -> Result<Value, Wrong> {
    match own {
        Own::Any => Ok(value.clone()),
        Own::Quantity => quantity(value),
        Own::IntOrString => int_or_string(value),
        Own::Time | Own::MicroTime => time(own, value),
        Own::Duration => duration(value),
    }
}

/// Whether a value that is absent is nevertheless shown, and as what.
pub(super) fn zero(own: Own) -> Value {
    match own {
        Own::Quantity => Value::from("0"),
        Own::IntOrString => Value::from(0),
        Own::Duration => Value::from("0s"),
        Own::Time | Own::MicroTime | Own::Any => Value::Null,
    }
}

fn quantity(value: &Value) -> Result<Value, Wrong> {
    let text = match value {
        Value::Null => return Ok(Value::from("0")),
        Value::String(text) => text.trim().to_owned(),
        other => go_number(other),
    };
    let quantity = Quantity::parse(&text)?;
    Ok(Value::from(if is_kept(&text) { text } else { quantity.to_string() }))
}

/// Does Go's parser take a quantity for one in canonical form, and keep its text? It looks at the digits alone: `+3` and
/// `1.500` are kept.
fn is_kept(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let split = |text: &str| text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let significant = unsigned.trim_start_matches('0');
    let (whole, rest) = significant.split_at(split(significant));
    let (fraction, suffix) = match rest.strip_prefix('.') {
        Some(rest) => rest.split_at(split(rest)),
        None => ("", rest),
    };
    let digits = format!("{whole}{fraction}");
    if whole.is_empty() || digits.len() > 18 {
        return false;
    }
    if let Some(power) = ["Ki", "Mi", "Gi", "Ti", "Pi", "Ei"].iter().position(|binary| *binary == suffix) {
        // What is multiplied must not come near the end of 64 bits.
        let room = 15 - i64::try_from(whole.len()).unwrap_or(15) - [3, 6, 9, 12, 15, 18][power] - 1;
        return fraction.is_empty() && room >= 0 && digits.parse::<u64>().is_ok_and(|value| value & 7 != 0);
    }
    let exponent = match ["n", "u", "m", "", "k", "M", "G", "T", "P", "E"].iter().position(|decimal| *decimal == suffix)
    {
        Some(position) => i64::try_from(position).unwrap_or(0) * 3 - 9,
        None => match suffix.strip_prefix(['e', 'E']).and_then(|exponent| exponent.parse::<i64>().ok()) {
            Some(exponent) => exponent,
            None => return false,
        },
    };
    let scale = exponent - i64::try_from(fraction.len()).unwrap_or(0);
    scale >= -9 && scale % 3 == 0 && !digits.ends_with("000")
}

/// A value as it stands in JSON that Go wrote: integral numbers have no fraction.
fn go_number(value: &Value) -> String {
    match value.as_f64() {
        Some(number) if number.fract() == 0.0 && number.abs() < 1e21 && value.as_i64().is_none() => {
            format!("{number:.0}")
        }
        _ => value.to_string(),
    }
}

fn int_or_string(value: &Value) -> Result<Value, Wrong> {
    match value {
        Value::Null => Ok(Value::from(0)),
        Value::String(text) => Ok(Value::from(text.as_str())),
        Value::Number(number) => match number.as_i64().and_then(|number| i32::try_from(number).ok()) {
            Some(number) => Ok(Value::from(number)),
            None => Err(Wrong::Type(format!("number {}", go_number(value)), "int32")),
        },
        other => Err(Wrong::Type(shape(other).to_owned(), "int32")),
    }
}

/// What Go calls a value in such errors.
pub(super) fn shape(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn time(own: Own, value: &Value) -> Result<Value, Wrong> {
    let text = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(text) => text,
        other => return Err(Wrong::Type(shape(other).to_owned(), "string")),
    };
    let layout = if own == Own::Time { "2006-01-02T15:04:05Z07:00" } else { "2006-01-02T15:04:05.000000Z07:00" };
    let refused = || format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\"");
    // None within a character of several bytes, of which no time has any.
    let fraction = text.get(19..).filter(|fraction| !fraction.is_empty() && !fraction.starts_with('.'));
    if let (Own::MicroTime, Some(fraction)) = (own, fraction) {
        return Err(Wrong::Text(format!(
            "parsing time {text:?} as {layout:?}: cannot parse {fraction:?} as \".000000\""
        )));
    }
    // Stricter than the parser, which takes spaces and other separators as well.
    let bytes = text.as_bytes();
    if bytes.len() < 20 || bytes[10] != b'T' || bytes[4] != b'-' {
        return Err(Wrong::Text(refused()));
    }
    let time: Timestamp = text.parse().map_err(|_| refused())?;
    if text.starts_with("0001-01-01T00:00:00") {
        return Ok(Value::Null);
    }
    let precision = if own == Own::Time { 0 } else { 6 };
    Ok(Value::from(DateTimePrinter::new().precision(Some(precision)).timestamp_to_string(&truncate(time, own))))
}

/// Seconds, or microseconds: what is finer is cut off.
fn truncate(time: Timestamp, own: Own) -> Timestamp {
    let unit = if own == Own::Time { 1_000_000_000 } else { 1_000 };
    Timestamp::from_nanosecond(time.as_nanosecond().div_euclid(unit) * unit).unwrap_or(time)
}

fn duration(value: &Value) -> Result<Value, Wrong> {
    match value {
        Value::Null => Ok(Value::from("0s")),
        // The few fields of this type are written as they are read.
        Value::String(text) => Ok(Value::from(text.as_str())),
        other => Err(Wrong::Type(shape(other).to_owned(), "string")),
    }
}

/// The number as an integer of so many bits, or what Go calls it in an error.
pub(super) fn integer(number: &Number, bits: u8) -> Result<i64, String> {
    let refused = || format!("number {}", go_number(&Value::Number(number.clone())));
    #[expect(clippy::cast_possible_truncation, reason = "checked to be integral and small")]
    let value = match (number.as_i64(), number.as_f64()) {
        (Some(value), _) => value,
        (None, Some(value)) if value.fract() == 0.0 && value.abs() < 9e15 => value as i64,
        _ => return Err(refused()),
    };
    if bits == 32 && i32::try_from(value).is_err() {
        return Err(refused());
    }
    Ok(value)
}
