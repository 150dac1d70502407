//! Numbers as texts, texts as numbers, and numbers as other numbers: the conversions of cel-go (`common/types`), which
//! are those of Go's `strconv`.

use std::fmt::Write as _;

const INT_OVERFLOW: &str = "integer overflow";
const UINT_OVERFLOW: &str = "unsigned integer overflow";
/// 2^63 and 2^64: the first doubles that are too large.
const TWO_TO_63: f64 = 9_223_372_036_854_775_808.0;
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// The error of a conversion that is not possible, with the types' names in CEL.
pub(crate) fn conversion_error(from: &str, to: &str) -> String {
    format!("type conversion error from '{from}' to '{to}'")
}

/// The shortest digits that identify a finite number, with an exponent: `1.5e0`. If two are equally near, the even one,
/// as in Go; Rust takes the larger one.
pub(super) fn shortest(value: f64) -> String {
    let text = format!("{value:e}");
    let digits = text.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    format!("{value:.*e}", digits - 1)
}

/// `string(double)`, Go's `%g`: the shortest digits that identify the number, with an exponent below 1e-4 and from 1e6
/// on.
pub fn to_string(value: f64) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let scientific = shortest(value);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if (-4..6).contains(&exponent) {
        return to_fixed(value);
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}e{sign}{:02}", exponent.unsigned_abs())
}

fn special(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("+Inf"),
        f64::NEG_INFINITY => Some("-Inf"),
        _ => None,
    }
}

/// Go's `FormatFloat(value, 'f', -1, 64)`: the shortest digits that identify the number, never with an exponent.
pub fn to_fixed(value: f64) -> String {
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let scientific = shortest(value.abs());
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = digits.replace('.', "");
    let sign = if value.is_sign_negative() { "-" } else { "" };
    let (whole, fraction) = match exponent.parse::<isize>().unwrap_or(0) {
        below @ ..0 => ("0".to_owned(), format!("{}{digits}", "0".repeat(below.unsigned_abs() - 1))),
        above => {
            let whole = above.unsigned_abs() + 1;
            let padded = format!("{digits:0<whole$}");
            (padded[..whole].to_owned(), padded[whole..].to_owned())
        }
    };
    if fraction.is_empty() { format!("{sign}{whole}") } else { format!("{sign}{whole}.{fraction}") }
}

/// Go's `%.6f`.
pub(crate) fn to_six_decimals(value: f64) -> String {
    special(value).map_or_else(|| format!("{value:.6}"), str::to_owned)
}

/// `int(double)`: without what is behind the point. The least integer overflows too.
#[expect(clippy::cast_possible_truncation, reason = "the range is checked, and the rest is meant to be cut off")]
pub(crate) fn to_int(value: f64) -> Result<i64, String> {
    if value > -TWO_TO_63 && value < TWO_TO_63 { Ok(value as i64) } else { Err(INT_OVERFLOW.to_owned()) }
}

/// `uint(double)`.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the range is checked")]
pub(crate) fn to_uint(value: f64) -> Result<u64, String> {
    if (0.0..TWO_TO_64).contains(&value) { Ok(value as u64) } else { Err(UINT_OVERFLOW.to_owned()) }
}

/// `int(uint)`.
pub(crate) fn uint_to_int(value: u64) -> Result<i64, String> {
    i64::try_from(value).map_err(|_| INT_OVERFLOW.to_owned())
}

/// `uint(int)`.
pub(crate) fn int_to_uint(value: i64) -> Result<u64, String> {
    u64::try_from(value).map_err(|_| UINT_OVERFLOW.to_owned())
}

/// `int(string)`: decimal, with or without a sign.
pub(crate) fn parse_int(text: &str) -> Result<i64, String> {
    text.parse().map_err(|_| conversion_error("string", "int"))
}

/// `uint(string)`: decimal, without a sign.
pub(crate) fn parse_uint(text: &str) -> Result<u64, String> {
    let signed = text.starts_with('+');
    text.parse().ok().filter(|_| !signed).ok_or_else(|| conversion_error("string", "uint"))
}

/// `bool(string)`.
pub(crate) fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "true" | "TRUE" | "True" => Ok(true),
        "0" | "f" | "F" | "false" | "FALSE" | "False" => Ok(false),
        _ => Err(conversion_error("string", "bool")),
    }
}

/// `string(bytes)`.
pub(crate) fn bytes_to_string(bytes: &[u8]) -> Result<String, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "invalid UTF-8 in bytes, cannot convert to string")?;
    Ok(text.to_owned())
}

/// Go's `strconv.Atoi`, with its errors.
pub(crate) fn atoi(text: &str) -> Result<i64, String> {
    integer_error("Atoi", text, text.strip_prefix(['+', '-']).unwrap_or(text))
        .map_or_else(|| text.parse().map_err(|_| out_of_range("Atoi", text)), Err)
}

/// Go's `strconv.ParseUint` of decimals, with its errors.
pub(crate) fn parse_unsigned(text: &str) -> Result<u64, String> {
    integer_error("ParseUint", text, text)
        .map_or_else(|| text.parse().map_err(|_| out_of_range("ParseUint", text)), Err)
}

fn integer_error(function: &str, text: &str, digits: &str) -> Option<String> {
    let valid = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    (!valid).then(|| format!("strconv.{function}: parsing {}: invalid syntax", super::quote::quote(text)))
}

fn out_of_range(function: &str, text: &str) -> String {
    format!("strconv.{function}: parsing {}: value out of range", super::quote::quote(text))
}

/// `double(string)`: Go's `strconv.ParseFloat`. Decimal or hexadecimal (`0x1p-2`), with underscores between digits,
/// `inf`, `infinity` and `nan` in any case.
pub(crate) fn parse_double(text: &str) -> Result<f64, String> {
    let parsed = parse_special(text).or_else(|| {
        let (negative, digits) = match text.as_bytes().first()? {
            b'-' => (true, &text[1..]),
            b'+' => (false, &text[1..]),
            _ => (false, text),
        };
        if text.contains('_') && !underscores_separate_digits(digits) {
            return None;
        }
        let digits = digits.replace('_', "");
        let value = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(digits) => parse_hexadecimal(digits)?,
            None => parse_decimal(&digits)?,
        };
        value.is_finite().then_some(if negative { -value } else { value })
    });
    parsed.ok_or_else(|| conversion_error("string", "double"))
}

fn parse_special(text: &str) -> Option<f64> {
    let lower = text.to_ascii_lowercase();
    match lower.as_str() {
        "nan" => Some(f64::NAN),
        "inf" | "+inf" | "infinity" | "+infinity" => Some(f64::INFINITY),
        "-inf" | "-infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    }
}

fn parse_decimal(text: &str) -> Option<f64> {
    // Rust's parser reads the same texts, and some words more.
    let plain = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'.' | b'e' | b'E' | b'+' | b'-'));
    (plain && text.starts_with(|c: char| c.is_ascii_digit() || c == '.')).then(|| text.parse().ok())?
}

/// Go's `underscoreOK`, for a number without its sign: an underscore must be between digits or after `0x`.
fn underscores_separate_digits(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let prefix = ["0b", "0o", "0x"].into_iter().find(|prefix| lower.starts_with(prefix));
    let hexadecimal = prefix == Some("0x");
    let (mut before, rest) = match prefix {
        Some(_) => ('0', &lower[2..]),
        None => ('^', lower.as_str()),
    };
    for c in rest.chars() {
        before = match c {
            c if c.is_ascii_digit() || hexadecimal && c.is_ascii_hexdigit() => '0',
            '_' if before == '0' => '_',
            '_' => return false,
            _ if before == '_' => return false,
            _ => '!',
        };
    }
    before != '_'
}

/// The number behind `0x`: hexadecimal digits, at most one point, and `p` with a decimal exponent of two.
fn parse_hexadecimal(text: &str) -> Option<f64> {
    let (digits, exponent) = text.split_once(['p', 'P'])?;
    let (sign, exponent) = match exponent.as_bytes().first()? {
        b'-' => (-1, &exponent[1..]),
        b'+' => (1, &exponent[1..]),
        _ => (1, exponent),
    };
    if exponent.is_empty() || !exponent.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut exponent = sign * exponent.parse().unwrap_or(i64::MAX).min(1_000_000);
    let (mut mantissa, mut lost, mut any, mut fraction) = (0_u64, false, false, false);
    for c in digits.chars() {
        if c == '.' && !fraction {
            fraction = true;
            continue;
        }
        let digit = c.to_digit(16)?;
        any = true;
        if mantissa >> 60 == 0 {
            mantissa = mantissa << 4 | u64::from(digit);
            exponent -= if fraction { 4 } else { 0 };
        } else {
            lost |= digit != 0;
            exponent += if fraction { 0 } else { 4 };
        }
    }
    any.then(|| round(mantissa, lost, exponent))
}

/// `mantissa * 2^exponent`, and a bit more if something was lost, as the nearest double, ties to even.
#[expect(clippy::cast_precision_loss, reason = "what is converted has 53 bits")]
fn round(mantissa: u64, lost: bool, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let bits = 64 - i64::from(mantissa.leading_zeros());
    // A double has 53 bits, fewer when it is tiny: its last bit is worth 2^-1074 at least.
    let drop = (bits - 53).max(-1074 - exponent).max(0);
    let (kept, half, rest) = match drop {
        0 => (mantissa, false, lost),
        1..=63 => {
            let cut = mantissa & ((1 << drop) - 1);
            let half = 1 << (drop - 1);
            (mantissa >> drop, cut & half != 0, cut & (half - 1) != 0 || lost)
        }
        64 => (0, mantissa >> 63 != 0, mantissa << 1 != 0 || lost),
        _ => (0, false, true),
    };
    let kept = kept + u64::from(half && (rest || kept & 1 == 1));
    let (mut value, mut scale) = (kept as f64, exponent + drop);
    // Each step is exact but for overflow to infinity.
    while scale != 0 && value != 0.0 && value.is_finite() {
        let step = scale.clamp(-1000, 1000);
        // A tiny result is reached in one exact step from a number that is an integer.
        value *= 2_f64.powi(i32::try_from(step).unwrap_or(0));
        scale -= step;
    }
    value
}

/// An integer with its digits in another base, as Go's `%b`, `%o` and `%x` write it: a sign and the magnitude.
pub(crate) fn radix(value: i128, clause: char) -> String {
    let mut out = String::from(if value < 0 { "-" } else { "" });
    let magnitude = value.unsigned_abs();
    let written = match clause {
        'b' => write!(out, "{magnitude:b}"),
        'o' => write!(out, "{magnitude:o}"),
        'X' => write!(out, "{magnitude:X}"),
        _ => write!(out, "{magnitude:x}"),
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::library::truth::{bytes, check, double, from_double, string, texts, uint};

    #[test]
    fn results_match_the_api_server() {
        let from_uint = |value: u64| json!({"uint": value});
        check(include_str!("testdata/double.jsonl"), |call, args| {
            let (arg, text) = (&args[0], args[0].as_str());
            Ok(match (call, double(arg), uint(arg), text) {
                ("string(x0)", Some(value), ..) => json!(to_string(value)),
                ("int(x0)", Some(value), ..) => json!(to_int(value)?),
                ("uint(x0)", Some(value), ..) => from_uint(to_uint(value)?),
                ("int(x0)", _, Some(value), _) => json!(uint_to_int(value)?),
                #[expect(clippy::cast_precision_loss, reason = "as Go converts")]
                ("double(x0)", _, Some(value), _) => from_double(value as f64),
                ("int(x0)", .., Some(text)) => json!(parse_int(text)?),
                ("uint(x0)", .., Some(text)) => from_uint(parse_uint(text)?),
                ("double(x0)", .., Some(text)) => from_double(parse_double(text)?),
                ("bool(x0)", .., Some(text)) => json!(parse_bool(text)?),
                ("uint(x0)", None, None, None) => from_uint(int_to_uint(arg.as_i64().unwrap())?),
                #[expect(clippy::cast_precision_loss, reason = "as Go converts")]
                ("double(x0)", None, None, None) => from_double(arg.as_i64().unwrap() as f64),
                ("string(x0)", _, Some(value), _) => json!(value.to_string()),
                ("string(x0)", ..) => json!(arg.as_i64().unwrap().to_string()),
                ("int(x0)" | "uint(x0)" | "double(x0)", ..) => arg.clone(),
                call => panic!("{call:?}"),
            })
        });
    }

    #[test]
    fn bytes_and_strings_convert_like_the_api_server() {
        check(include_str!("testdata/bytes.jsonl"), |call, args| {
            Ok(match (call, bytes(&args[0])) {
                ("string(x0)", Some(bytes)) => json!(bytes_to_string(&bytes)?),
                ("x0.size()", Some(bytes)) => json!(bytes.len()),
                // The table holds the bytes as base64, read back here.
                ("bytes(x0)", None) => return Ok(encoded(string(&args[0]))),
                call => panic!("{call:?}"),
            })
        });
    }

    fn encoded(text: &str) -> Value {
        let table = include_str!("testdata/bytes.jsonl");
        let found = table.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()).find(|line| {
            line["call"] == "bytes(x0)" && bytes(&line["ok"]).is_some_and(|bytes| bytes == text.as_bytes())
        });
        found.map_or(Value::Null, |line| line["ok"].clone())
    }

    #[test]
    fn any_text_parses_as_a_number_or_is_rejected() {
        let pieces =
            ["0x", "1", "9", "_", ".", "e", "p", "+", "-", "f", "0", "inf", "nan", "é", "99999999999999999999"];
        for text in texts(&pieces, 20_000) {
            let _ = (parse_double(&text), parse_int(&text), parse_uint(&text), parse_bool(&text), atoi(&text));
        }
    }
}
