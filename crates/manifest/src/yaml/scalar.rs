//! The meaning of a scalar to kubectl and the API server: the rules of `go.yaml.in/yaml/v2` (`resolve.go`), which are
//! those of YAML 1.1, and of `sigs.k8s.io/yaml` and Go's `encoding/json` for the resulting JSON.

use std::borrow::Cow;

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, GeneralPurposeConfig},
};
use serde_json::Number;

/// The beginning of the tags of YAML itself: `!!int` is short for `tag:yaml.org,2002:int`.
pub(super) const CORE: &str = "tag:yaml.org,2002:";

/// The value of a scalar.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scalar<'a> {
    Null,
    Bool(bool),
    Int(i64),
    /// A whole number beyond the range of `Int`.
    UInt(u64),
    Float(f64),
    Text(Cow<'a, str>),
}

/// The value of a JSON scalar with this spelling.
pub(super) fn json(text: &str) -> Scalar<'_> {
    match text {
        "null" => Scalar::Null,
        "true" => Scalar::Bool(true),
        "false" => Scalar::Bool(false),
        _ => match (text.parse::<i64>(), text.parse::<f64>()) {
            (Ok(number), _) => Scalar::Int(number),
            (_, Ok(number)) => Scalar::Float(number),
            _ => Scalar::Text(text.into()),
        },
    }
}

/// The value of a YAML scalar with this spelling, or why it has none. `plain` means without quotes.
pub(super) fn yaml<'a>(text: &'a str, tag: Option<&str>, plain: bool) -> Result<Scalar<'a>, String> {
    let Some(tag) = tag else {
        return Ok(if plain { untagged(text) } else { Scalar::Text(text.into()) });
    };
    let found = match tag.strip_prefix(CORE) {
        Some("timestamp") if is_date(text) => return Ok(Scalar::Text(text.into())),
        Some("binary") => return binary(text).map(|text| Scalar::Text(text.into())),
        Some("bool" | "int" | "float" | "null" | "timestamp") => untagged(text),
        // Texts, and unknown tags of applications, and tags of lists and maps.
        _ => return Ok(Scalar::Text(text.into())),
    };
    let wanted = &tag[CORE.len()..];
    match (wanted, found) {
        ("float", Scalar::Int(number)) => {
            #[expect(clippy::cast_precision_loss, reason = "as Go converts it")]
            let number = number as f64;
            Ok(Scalar::Float(number))
        }
        ("bool", found @ Scalar::Bool(_))
        | ("int", found @ (Scalar::Int(_) | Scalar::UInt(_)))
        | ("float", found @ Scalar::Float(_))
        | ("null", found @ Scalar::Null) => Ok(found),
        (wanted, found) => Err(format!("cannot decode !!{} `{text}` as a !!{wanted}", found.tag())),
    }
}

/// True if a text begins as all dates do (`parseTimestamp`). The rest does not matter.
fn is_date(text: &str) -> bool {
    text.split_once('-').is_some_and(|(year, _)| year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Go ignores bits behind the last byte.
const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true));

/// A text in base64 (`encoding/base64`, which skips line breaks), of which only what is UTF-8 remains as it is.
fn binary(text: &str) -> Result<String, String> {
    let digits: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    let bytes = BASE64.decode(digits).map_err(|_| "!!binary value contains invalid base64 data".to_owned())?;
    let mut decoded = String::new();
    for chunk in bytes.utf8_chunks() {
        decoded.push_str(chunk.valid());
        decoded.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    Ok(decoded)
}

fn untagged(text: &str) -> Scalar<'_> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Scalar::Null,
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => return Scalar::Bool(true),
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Scalar::Bool(false);
        }
        ".nan" | ".NaN" | ".NAN" => return Scalar::Float(f64::NAN),
        ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" => return Scalar::Float(f64::INFINITY),
        "-.inf" | "-.Inf" | "-.INF" => return Scalar::Float(f64::NEG_INFINITY),
        _ => {}
    }
    let number = match text.as_bytes().first() {
        Some(b'0'..=b'9' | b'+' | b'-') => number(&text.replace('_', "")),
        Some(b'.') => float(text),
        _ => None,
    };
    number.unwrap_or(Scalar::Text(text.into()))
}

fn number(text: &str) -> Option<Scalar<'static>> {
    let negative = text.starts_with('-');
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    // As `strconv.ParseInt` and `ParseUint` do with base 0.
    let (base, of_base) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    if of_base.bytes().all(|byte| byte.is_ascii_hexdigit())
        && let Ok(value) = u64::from_str_radix(of_base, base)
    {
        match (i64::try_from(value), negative) {
            (Ok(value), false) => return Some(Scalar::Int(value)),
            (Ok(value), true) => return Some(Scalar::Int(-value)),
            (Err(_), true) if value == i64::MIN.unsigned_abs() => return Some(Scalar::Int(i64::MIN)),
            (Err(_), false) if digits == text => return Some(Scalar::UInt(value)),
            (Err(_), _) => {}
        }
    }
    float(text)
}

/// `^[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?$`, and not beyond the range of a float.
fn float(text: &str) -> Option<Scalar<'static>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent.strip_prefix(['+', '-']).unwrap_or(exponent))),
        None => (unsigned, None),
    };
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let written = digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|exponent| !exponent.is_empty() && digits(exponent));
    let value: f64 = text.parse().ok().filter(|_| written)?;
    value.is_finite().then_some(Scalar::Float(value))
}

impl<'a> Scalar<'a> {
    fn tag(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "bool",
            Self::Int(_) | Self::UInt(_) => "int",
            Self::Float(_) => "float",
            Self::Text(_) => "str",
        }
    }

    /// The name of the field, if this is a key (`convertToJSONableObject`), or Go's name of its type if it cannot be
    /// one.
    pub(super) fn key(&self) -> Result<Cow<'a, str>, &'static str> {
        match self {
            Self::Text(text) => Ok(text.clone()),
            Self::Int(number) => Ok(number.to_string().into()),
            Self::Bool(value) => Ok(value.to_string().into()),
            Self::Float(number) => Ok(go_g32(*number).into()),
            Self::UInt(_) => Err("uint64"),
            Self::Null => Err("null"),
        }
    }

    /// A number after its way through JSON: Go writes whole numbers without a fraction, and the API server reads a
    /// number without a fraction as an integer if it is in range, and otherwise as a float.
    pub(super) fn through_json(self) -> Result<Self, String> {
        match self {
            Self::Float(number) if number.is_nan() => Err("json: unsupported value: NaN".to_owned()),
            Self::Float(number) if number.is_infinite() => {
                let sign = if number > 0.0 { '+' } else { '-' };
                Err(format!("json: unsupported value: {sign}Inf"))
            }
            // With as many digits as tell it from other floats, and then zeros.
            Self::Float(number) if number.fract() == 0.0 && number.abs() < 1e21 => {
                Ok(number.to_string().parse().map_or(Self::Float(number), Self::Int))
            }
            #[expect(clippy::cast_precision_loss, reason = "as Go converts it")]
            Self::UInt(number) => Ok(Self::Float(number as f64)),
            other => Ok(other),
        }
    }

    /// As JSON. Null for a number that JSON does not have, which [`Self::through_json`] rejects.
    pub(super) fn into_json(self) -> serde_json::Value {
        match self {
            Self::Null => serde_json::Value::Null,
            Self::Bool(value) => value.into(),
            Self::Int(number) => number.into(),
            Self::UInt(number) => number.into(),
            Self::Float(number) => Number::from_f64(number).map_or(serde_json::Value::Null, serde_json::Value::Number),
            Self::Text(text) => text.into_owned().into(),
        }
    }
}

/// `strconv.FormatFloat(number, 'g', -1, 32)`, with YAML's names for infinities and NaN.
fn go_g32(number: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "as Go converts it")]
    let number = number as f32;
    if number.is_nan() {
        return ".nan".to_owned();
    }
    if number.is_infinite() {
        return if number > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let shortest = format!("{number:e}");
    let (mantissa, exponent) = shortest.split_once('e').unwrap_or((&shortest, "0"));
    let exponent: i32 = exponent.parse().unwrap_or_default();
    if (-4..6).contains(&exponent) {
        return number.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str, tag: Option<&str>) -> String {
        let tag = tag.map(|tag| format!("{CORE}{tag}"));
        match yaml(text, tag.as_deref(), true).and_then(Scalar::through_json) {
            Ok(scalar) => scalar.into_json().to_string(),
            Err(error) => error,
        }
    }

    #[test]
    fn yaml_tags_are_applied() {
        for (text, tag, expected) in [
            ("5", "str", "\"5\""),
            ("5", "float", "5"),
            ("5.5", "float", "5.5"),
            ("x", "int", "cannot decode !!str `x` as a !!int"),
            ("5", "bool", "cannot decode !!int `5` as a !!bool"),
            ("~", "null", "null"),
            ("yes", "bool", "true"),
            ("aGn/", "binary", "\"hi\u{fffd}\""),
            ("aGl=", "binary", "\"hi\""),
            ("%", "binary", "!!binary value contains invalid base64 data"),
        ] {
            assert_eq!(shown(text, Some(tag)), expected, "!!{tag} {text}");
        }
    }
}
