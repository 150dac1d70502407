//! Escapes, ranges and counts of RE2's syntax.

use regex_syntax::hir::ClassUnicodeRange;

/// An error in the words of Go.
pub(super) fn fail<T>(code: &str, expression: &str) -> Result<T, String> {
    Err(format!("error parsing regexp: {code}: `{expression}`"))
}

/// A character or a range of them within brackets, of which `whole` is the text. Nothing if all are surrogates.
pub(super) fn bracket_range<'p>(text: &'p str, whole: &str) -> Result<(Option<ClassUnicodeRange>, &'p str), String> {
    let (low, mut rest) = bracket_character(text, whole)?;
    let mut high = low;
    if rest.len() >= 2 && rest.starts_with('-') && rest.as_bytes()[1] != b']' {
        (high, rest) = bracket_character(&rest[1..], whole)?;
        if high < low {
            return fail("invalid character class range", &text[..text.len() - rest.len()]);
        }
    }
    // The surrogates are no characters.
    let low = char::from_u32(low).unwrap_or('\u{e000}');
    let high = char::from_u32(high).unwrap_or('\u{d7ff}');
    Ok(((low <= high).then(|| ClassUnicodeRange::new(low, high)), rest))
}

fn bracket_character<'p>(text: &'p str, whole: &str) -> Result<(u32, &'p str), String> {
    match text.chars().next() {
        None => fail("missing closing ]", whole),
        Some('\\') => character_escape(text),
        Some(c) => Ok((c.into(), &text[c.len_utf8()..])),
    }
}

/// Parses an escape sequence for one character, at the beginning of `text`.
pub(super) fn character_escape(text: &str) -> Result<(u32, &str), String> {
    let Some(c) = text[1..].chars().next() else { return fail("trailing backslash at end of expression", "") };
    let mut rest = &text[1 + c.len_utf8()..];
    let octal = |text: &str| text.starts_with(|c: char| ('0'..='7').contains(&c));
    let value = match c {
        '0'..='7' if c == '0' || octal(rest) => {
            let more = rest.bytes().take(2).take_while(|b| (b'0'..=b'7').contains(b)).count();
            let digits = &text[1..2 + more];
            rest = &rest[more..];
            u32::from_str_radix(digits, 8).ok()
        }
        'x' if rest.starts_with('{') => {
            let mut value = Some(0_u32);
            let mut count = 0;
            rest = &rest[1..];
            loop {
                let Some(c) = rest.chars().next() else { break value = None };
                rest = &rest[c.len_utf8()..];
                if c == '}' {
                    break;
                }
                value = value.zip(c.to_digit(16)).map(|(value, digit)| value * 16 + digit).filter(|&v| v <= 0x10_ffff);
                count += 1;
                if value.is_none() {
                    break;
                }
            }
            value.filter(|_| count > 0)
        }
        'x' => {
            let mut digit = || {
                let c = rest.chars().next()?;
                rest = &rest[c.len_utf8()..];
                Some(c.to_digit(16))
            };
            let (high, low) = (digit().flatten(), digit().flatten());
            high.zip(low).map(|(high, low)| high * 16 + low)
        }
        'a' => Some(0x07),
        'f' => Some(0x0c),
        'n' => Some(0x0a),
        'r' => Some(0x0d),
        't' => Some(0x09),
        'v' => Some(0x0b),
        c if c.is_ascii() && !c.is_ascii_alphanumeric() => Some(c.into()),
        _ => None,
    };
    match value {
        Some(value) => Ok((value, rest)),
        None => fail("invalid escape sequence", &text[..text.len() - rest.len()]),
    }
}

/// `{min}`, `{min,}` or `{min,max}` at the beginning of `text`, and the rest. Numbers that are too large become 100
/// million, which is still too large.
pub(super) fn counts(text: &str) -> Option<(u32, Option<u32>, &str)> {
    let (min, rest) = integer(text.strip_prefix('{')?)?;
    let (max, rest) = match rest.strip_prefix(',') {
        None => (Some(min), rest),
        Some(rest) if rest.starts_with('}') => (None, rest),
        Some(rest) => {
            let (max, rest) = integer(rest)?;
            (Some(max), rest)
        }
    };
    Some((min, max, rest.strip_prefix('}')?))
}

fn integer(text: &str) -> Option<(u32, &str)> {
    let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let valid = !digits.is_empty() && (digits.len() == 1 || !digits.starts_with('0'));
    valid.then(|| (digits.parse().unwrap_or(u32::MAX).min(100_000_000), rest))
}
