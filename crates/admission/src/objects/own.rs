//! Types with a JSON form of their own (`UnmarshalJSON` and `ToUnstructured` of apimachinery): quantities, times.

use jiff::{Timestamp, fmt::temporal::DateTimePrinter};
use palisade_cel::{Quantity, strfmt::quote_time as quote};
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

/// The form of such a value that policies see.
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

/// A value as Go writes it in JSON: integral numbers have no fraction.
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

/// The number at the beginning, of two digits or, if that may be, one.
fn two_digits(text: &str, is_fixed: bool) -> Option<(u32, &str)> {
    let digits = text.bytes().take(2).take_while(u8::is_ascii_digit).count();
    let taken = if digits == 2 || (digits == 1 && !is_fixed) { digits } else { return None };
    Some((text[..taken].parse().ok()?, &text[taken..]))
}

/// What `time.Parse` of Go says of a text that is not of a layout.
fn go_time(text: &str, layout: &str) -> Option<String> {
    let about = format!("parsing time {}", quote(text));
    let bad = |rest: &str, element: &str| {
        Some(format!("{about} as {}: cannot parse {} as {}", quote(layout), quote(rest), quote(element)))
    };
    let out_of_range = |what: &str| Some(format!("{about}: {what} out of range"));
    let digits = text.get(..4).filter(|year| year.bytes().all(|b| b.is_ascii_digit()));
    let Some(year) = digits.and_then(|year| year.parse::<u32>().ok()) else { return bad(text, "2006") };
    let mut rest = &text[4..];
    let (mut month, mut day) = (1, 1);
    for (before, element, name, most) in [
        ("-", "01", "month", 12),
        ("-", "02", "day", 99),
        ("T", "15", "hour", 23),
        (":", "04", "minute", 59),
        (":", "05", "second", 59),
    ] {
        let Some(number) = rest.strip_prefix(before) else { return bad(rest, before) };
        let Some((value, left)) = two_digits(number, element != "15") else { return bad(number, element) };
        rest = left;
        if value > most || (element == "01" && value == 0) {
            return out_of_range(name);
        }
        match element {
            "01" => month = value,
            "02" => day = value,
            _ => {}
        }
    }
    let fraction = rest.strip_prefix(['.', ',']).map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
    if layout.contains(".000000") {
        if fraction < 6 {
            return bad(rest, ".000000");
        }
        rest = &rest[7..];
    } else if fraction > 0 {
        rest = &rest[1 + fraction..];
    }
    rest = if let Some(left) = rest.strip_prefix('Z') {
        left
    } else {
        let zone =
            rest.get(..6).filter(|zone| zone.is_ascii() && zone.starts_with(['+', '-']) && zone.as_bytes()[3] == b':');
        let parts = zone.and_then(|zone| two_digits(&zone[1..3], true).zip(two_digits(&zone[4..6], true)));
        match parts {
            None => return bad(rest, "Z07:00"),
            Some(((hours, _), _)) if hours > 24 => return out_of_range("time zone offset hour"),
            Some((_, (minutes, _))) if minutes > 60 => return out_of_range("time zone offset minute"),
            Some(_) => &rest[6..],
        }
    };
    if !rest.is_empty() {
        return Some(format!("{about}: extra text: {}", quote(rest)));
    }
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let days = match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    };
    if day == 0 || day > days { out_of_range("day") } else { None }
}

fn time(own: Own, value: &Value) -> Result<Value, Wrong> {
    let text = match value {
        Value::Null => return Ok(Value::Null),
        Value::String(text) => text,
        other => return Err(Wrong::Type(shape(other).to_owned(), "string")),
    };
    let layout = if own == Own::Time { "2006-01-02T15:04:05Z07:00" } else { "2006-01-02T15:04:05.000000Z07:00" };
    if let Some(wrong) = go_time(text, layout) {
        return Err(Wrong::Text(wrong));
    }
    // Stricter than Go, which takes hours of one digit and leap seconds of no day as well.
    let refused = |_| {
        let quoted = quote(text);
        Wrong::Text(format!("parsing time {quoted} as {}: cannot parse {quoted} as \"2006\"", quote(layout)))
    };
    let time: Timestamp = text.parse().map_err(refused)?;
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

#[cfg(test)]
mod tests {
    use super::go_time;

    #[test]
    fn invalid_times_are_rejected_like_go() {
        let layout = "2006-01-02T15:04:05Z07:00";
        let micro = "2006-01-02T15:04:05.000000Z07:00";
        for (text, wanted) in [
            ("2024-02-29T23:59:59Z", ""),
            ("2024-02-29T23:59:59.5+01:00", ""),
            ("yesterday", "cannot parse \"yesterday\" as \"2006\""),
            ("", "cannot parse \"\" as \"2006\""),
            // Package `time` does not quote as `strconv` does.
            ("\u{fc}\t", "cannot parse \"\\xc3\\xbc\\x09\" as \"2006\""),
            ("2024", "cannot parse \"\" as \"-\""),
            ("2024-1-02", "cannot parse \"1-02\" as \"01\""),
            ("2024-01-02", "cannot parse \"\" as \"T\""),
            ("2024-01-02 15:04:05Z", "cannot parse \" 15:04:05Z\" as \"T\""),
            ("2024-01-02T15:04:05", "cannot parse \"\" as \"Z07:00\""),
            ("2024-13-01T00:00:00Z", "month out of range"),
            ("2023-02-29T00:00:00Z", "day out of range"),
            ("2024-01-02T24:00:00Z", "hour out of range"),
            ("2024-01-02T00:00:00Zz", "extra text: \"z\""),
        ] {
            let found = go_time(text, layout);
            assert_eq!(found.is_none(), wanted.is_empty(), "{text}: {found:?}");
            assert!(found.unwrap_or_default().ends_with(wanted), "{text}");
        }
        let found = go_time("2024-01-02T03:04:05Z", micro).unwrap_or_default();
        assert!(found.ends_with("cannot parse \"Z\" as \".000000\""), "{found}");
    }
}
