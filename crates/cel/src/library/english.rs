//! Numbers as `golang.org/x/text/message` prints them for `en_US`; `%f` and `%e` of `format` use it.
//!
//! It keeps its limits in narrow integers, and this module reproduces its odd results for large ones.

use super::double::shortest;

const SUPERSCRIPT: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
/// The output if the number in the format has more digits than x/text reads.
const NO_VERB: &str = "%!(NOVERB)";

/// Whether x/text gives up on a width or precision: it stops at a digit after one million.
fn too_large(number: i64) -> bool {
    number / 10 > 1_000_000
}

/// The digits of a number, without zeros at either end, and the place of the point from their beginning.
struct Digits {
    digits: Vec<u8>,
    exponent: i32,
}

impl Digits {
    /// Of the text of a number that is not negative, with or without an exponent.
    fn of(text: &str) -> Self {
        let (mantissa, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let all = format!("{whole}{fraction}");
        let significant = all.trim_start_matches('0');
        let leading = i32::try_from(all.len() - significant.len()).unwrap_or(0);
        let digits = significant.trim_end_matches('0').as_bytes().to_vec();
        let whole = i32::try_from(whole.len()).unwrap_or(0);
        let exponent = if digits.is_empty() { 0 } else { whole - leading + exponent.parse().unwrap_or(0) };
        Self { digits, exponent }
    }

    /// The digit at a place counted from the point: 0 is the first behind it.
    fn at(&self, place: i32) -> char {
        let digit = usize::try_from(place + self.exponent).ok().and_then(|index| self.digits.get(index));
        digit.map_or('0', |&digit| char::from(digit))
    }
}

/// The output for values without digits.
fn special(value: f64) -> Option<&'static str> {
    match value {
        value if value.is_nan() => Some("NaN"),
        f64::INFINITY => Some("∞"),
        f64::NEG_INFINITY => Some("-∞"),
        _ => None,
    }
}

/// `%.<decimals>f`, with a comma between thousands.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as x/text cuts them off")]
pub(super) fn fixed(value: f64, decimals: i64) -> String {
    if too_large(decimals) {
        return NO_VERB.to_owned();
    }
    if let Some(text) = special(value) {
        return text.to_owned();
    }
    let (least, most) = (i32::from(decimals as u8), decimals as i16);
    let digits = Digits::of(&match usize::try_from(most) {
        Ok(most) => format!("{:.most$}", value.abs()),
        Err(_) => shortest(value.abs()),
    });
    let mut out = String::from(if value < 0.0 { "-" } else { "" });
    let whole = digits.exponent.max(1);
    for place in -whole..0 {
        out.push(digits.at(place));
        let behind = -1 - place;
        if behind > 0 && behind % 3 == 0 {
            out.push(',');
        }
    }
    let count = i32::try_from(digits.digits.len()).unwrap_or(0);
    let end = (count - digits.exponent).max(least);
    if end > 0 {
        out.push('.');
    }
    out.extend((0..end).map(|place| digits.at(place)));
    out
}

/// How `%e` writes the product.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// `1.5×10⁰³`.
    Close,
    /// With narrow spaces around the sign, as before Kubernetes 1.33.
    Spaced,
}

/// `%<width>e`: six decimals, times a power of ten in superscript, with spaces before it.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "as x/text cuts it off")]
pub(super) fn scientific(value: f64, width: i64, style: Style) -> String {
    if too_large(width) {
        return NO_VERB.to_owned();
    }
    let text = special(value).map_or_else(
        || {
            let scientific = format!("{:.6e}", value.abs());
            let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
            let exponent: i32 = exponent.parse().unwrap_or(0);
            let power = format!("{:02}", exponent.unsigned_abs());
            let power: String = power.bytes().map(|digit| SUPERSCRIPT[usize::from(digit - b'0')]).collect();
            let sign = if value < 0.0 { "-" } else { "" };
            let times = match style {
                Style::Close => "×",
                Style::Spaced => "\u{202f}×\u{202f}",
            };
            format!("{sign}{digits}{times}10{}{power}", if exponent < 0 { "\u{207b}" } else { "" })
        },
        str::to_owned,
    );
    let width = usize::from(width as u16);
    format!("{text:>width$}")
}
