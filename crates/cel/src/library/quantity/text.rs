//! Reading and writing quantities (`quantity.go`, `suffix.go`).

use std::fmt;

use num_bigint::{BigInt, Sign};

use super::{
    Amount, Notation, Quantity,
    amount::{Dec, Int},
};

const WRONG_FORMAT: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";
const WRONG_NUMBER: &str = "unable to parse numeric part of quantity";
const WRONG_SUFFIX: &str = "unable to parse quantity's suffix";
const DECIMAL: [(&str, i32); 10] =
    [("n", -9), ("u", -6), ("m", -3), ("", 0), ("k", 3), ("M", 6), ("G", 9), ("T", 12), ("P", 15), ("E", 18)];
const BINARY: [(&str, i32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
/// The smallest part of a quantity is 10^-9.
const NANO: i32 = 9;

/// The parts of a quantity. Zeros before the number are not part of `whole`.
struct Parts<'t> {
    negative: bool,
    /// The number with its sign.
    number: &'t str,
    whole: &'t str,
    fraction: &'t str,
    suffix: &'t str,
}

/// Splits at the first character that is not of this kind.
fn take(text: &str, of_kind: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !of_kind(c)).unwrap_or(text.len()))
}

fn split(text: &str) -> Option<Parts<'_>> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (_, significant) = take(unsigned, |c| c == '0');
    let (digits, mut rest) = take(significant, |c| c.is_ascii_digit());
    let mut fraction = "";
    if let Some(after) = rest.strip_prefix('.') {
        (fraction, rest) = take(after, |c| c.is_ascii_digit());
    }
    let (_, behind) = take(rest, |c| "eEinumkKMGTP".contains(c));
    let behind = behind.strip_prefix(['+', '-']).unwrap_or(behind);
    // Nothing else may follow, except that Go does not look behind a number that ends the text.
    behind.bytes().all(|b| b.is_ascii_digit()).then_some(Parts {
        negative: text.starts_with('-'),
        // Only zeros, or nothing, are a zero without its sign.
        number: if significant.is_empty() { "0" } else { &text[..text.len() - rest.len()] },
        whole: if digits.is_empty() { "0" } else { digits },
        fraction,
        suffix: rest,
    })
}

fn interpret(suffix: &str) -> Option<(i32, Notation)> {
    let find = |table: &[(&str, i32)]| table.iter().find(|(name, _)| *name == suffix).map(|(_, exponent)| *exponent);
    if let Some(exponent) = find(&DECIMAL) {
        return Some((exponent, Notation::DecimalSi));
    }
    if let Some(exponent) = find(&BINARY) {
        return Some((exponent, Notation::BinarySi));
    }
    let exponent: i64 = suffix.strip_prefix(['e', 'E']).filter(|digits| !digits.is_empty())?.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "as Go cuts it off")]
    Some((exponent as i32, Notation::DecimalExponent))
}

pub(super) fn parse(text: &str) -> Result<Quantity, String> {
    if text.is_empty() {
        return Err(WRONG_FORMAT.to_owned());
    }
    let parts = split(text).ok_or(WRONG_FORMAT)?;
    let (exponent, notation) = interpret(parts.suffix).ok_or(WRONG_SUFFIX)?;
    let (whole, fraction) = (length(parts.whole), length(parts.fraction));
    let (mut scale, room, factor) = match notation {
        Notation::DecimalExponent | Notation::DecimalSi => (exponent, 18_i32.wrapping_sub(whole + fraction), 1),
        Notation::BinarySi if fraction == 0 => (0, 15 - whole - exponent * 3 / 10 - 1, 1 << exponent),
        Notation::BinarySi => (0, -1, 1),
    };
    if room >= 0 {
        scale = scale.wrapping_sub(fraction);
        if scale >= -NANO {
            let digits = format!("{}{}", parts.whole, parts.fraction);
            let value: i64 = digits.parse().map_err(|_| WRONG_NUMBER)?;
            if let Some(value) = value.checked_mul(factor) {
                let value = if parts.negative { -value } else { value };
                return Ok(Quantity { amount: Amount::Int(Int { value, scale }), notation });
            }
        }
    }
    large(&parts, exponent, notation)
}

fn length(text: &str) -> i32 {
    i32::try_from(text.len()).unwrap_or(i32::MAX / 4)
}

/// A quantity that is not an `Int`.
fn large(parts: &Parts<'_>, exponent: i32, notation: Notation) -> Result<Quantity, String> {
    let number = parts.number.strip_prefix(['+', '-']).unwrap_or(parts.number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let unscaled = format!("{whole}{fraction}").parse::<BigInt>().map_err(|_| WRONG_NUMBER)?;
    let mut amount = Dec { unscaled, scale: length(fraction) };
    match notation {
        Notation::BinarySi => amount.unscaled <<= exponent,
        _ => amount.scale = amount.scale.wrapping_sub(exponent),
    }
    let mut notation = notation;
    if amount.sign() != 0 {
        amount = amount.round_up(NANO).ok_or(WRONG_NUMBER)?;
    }
    let most = Dec { unscaled: i64::MAX.into(), scale: 0 };
    if notation == Notation::BinarySi && amount.compare(&most).is_gt() {
        amount = most;
    }
    let one = Dec { unscaled: 1.into(), scale: 0 };
    if notation == Notation::BinarySi && amount.sign() > 0 && amount.compare(&one).is_lt() {
        notation = Notation::DecimalSi;
    }
    let amount = if parts.negative { amount.negate() } else { amount };
    Ok(Quantity { amount: Amount::Dec(amount), notation })
}

/// Divides by the factor while nothing is left, and tells how often.
fn remove_factors(mut number: BigInt, factor: u32) -> (BigInt, i32) {
    let mut times = 0;
    while number.sign() != Sign::NoSign && (&number % factor).sign() == Sign::NoSign {
        number /= factor;
        times += 1;
    }
    (number, times)
}

/// Go's `CanonicalizeBytes`.
pub(super) fn write(quantity: &Quantity, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    if quantity.sign() == 0 {
        return f.write_str("0");
    }
    let amount = quantity.dec();
    let mut notation = quantity.notation;
    if notation == Notation::BinarySi {
        let positive = if amount.sign() < 0 { amount.clone().negate() } else { amount.clone() };
        let small = positive.compare(&Dec { unscaled: 1024.into(), scale: 0 }).is_lt();
        let rounded = amount.clone().round_up(0).filter(|rounded| rounded.compare(&amount).is_eq());
        match rounded {
            Some(rounded) if !small => {
                let (number, times) = remove_factors(rounded.unscaled, 1024);
                let suffix = BINARY.iter().find(|(_, exponent)| *exponent == times * 10).map_or("", |(name, _)| name);
                return write!(f, "{number}{suffix}");
            }
            _ => notation = Notation::DecimalSi,
        }
    }
    let (mut number, times) = remove_factors(amount.unscaled, 10);
    let mut exponent = times.wrapping_sub(amount.scale);
    while exponent % 3 != 0 {
        number *= 10;
        exponent = exponent.wrapping_sub(1);
    }
    match notation {
        Notation::DecimalExponent if exponent != 0 => write!(f, "{number}e{exponent}"),
        Notation::DecimalExponent => write!(f, "{number}"),
        _ => {
            let suffix = DECIMAL.iter().find(|(_, known)| *known == exponent).map_or("", |(name, _)| name);
            write!(f, "{number}{suffix}")
        }
    }
}
