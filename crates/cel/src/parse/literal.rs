//! The values of literals (cel-go `parser/unescape.go` and the visitors of literals).

use std::sync::Arc;

use crate::ast::Literal;

/// `text` with an optional minus sign before it.
pub(super) fn int(negative: bool, text: &str) -> Option<Literal> {
    let (digits, base) = radix(text);
    let sign = if negative { "-" } else { "" };
    i64::from_str_radix(&format!("{sign}{digits}"), base).ok().map(Literal::Int)
}

/// `text` ends in `u`.
pub(super) fn uint(text: &str) -> Option<Literal> {
    let (digits, base) = radix(&text[..text.len() - 1]);
    u64::from_str_radix(digits, base).ok().map(Literal::Uint)
}

fn radix(text: &str) -> (&str, u32) {
    text.strip_prefix("0x").map_or((text, 10), |digits| (digits, 16))
}

/// Too large is not a number; too small is zero.
pub(super) fn double(negative: bool, text: &str) -> Option<Literal> {
    let value: f64 = text.parse().ok()?;
    value.is_finite().then_some(Literal::Double(if negative { -value } else { value }))
}

/// The value of a string with its quotes and an optional `r` before them, or why it is invalid. A surrogate is invalid,
/// or `replaces` replaces it.
pub(super) fn string(text: &str, replaces: bool) -> Result<Literal, &'static str> {
    let surrogate = replaces.then_some(char::REPLACEMENT_CHARACTER);
    let bytes = unescape(text, Of::String { surrogate })?;
    // All escapes of a string are code points.
    String::from_utf8(bytes).map(|text| Literal::String(Arc::from(text))).map_err(|_| "unable to unescape string")
}

/// Bytes with their `b`.
pub(super) fn bytes(text: &str) -> Result<Literal, &'static str> {
    unescape(&text[1..], Of::Bytes).map(|bytes| Literal::Bytes(Arc::from(bytes)))
}

/// The kind of a literal with escape sequences.
#[derive(Clone, Copy, PartialEq)]
enum Of {
    Bytes,
    String {
        /// The replacement of a surrogate; without it, a surrogate is invalid.
        surrogate: Option<char>,
    },
}

fn unescape(text: &str, of: Of) -> Result<Vec<u8>, &'static str> {
    let normal = text.replace("\r\n", "\n").replace('\r', "\n");
    let raw = normal.starts_with(['r', 'R']);
    let quoted = &normal[usize::from(raw)..];
    let quotes = if quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\"")) { 3 } else { 1 };
    let mut rest = &quoted[quotes..quoted.len() - quotes];
    if raw || !rest.contains('\\') {
        return Ok(rest.as_bytes().to_vec());
    }
    let mut out = Vec::with_capacity(rest.len());
    while let Some(at) = rest.find('\\') {
        out.extend_from_slice(&rest.as_bytes()[..at]);
        rest = escape(&rest[at + 1..], of, &mut out)?;
    }
    out.extend_from_slice(rest.as_bytes());
    Ok(out)
}

/// Appends the value of the escape sequence at the start of `text` (without its backslash); returns the rest of `text`.
fn escape<'a>(text: &'a str, of: Of, out: &mut Vec<u8>) -> Result<&'a str, &'static str> {
    const WRONG: &str = "unable to unescape string";
    let letter = *text.as_bytes().first().ok_or(WRONG)?;
    let (digits, base) = match letter {
        b'x' | b'X' => (&text.get(1..3), 16),
        b'u' if of != Of::Bytes => (&text.get(1..5), 16),
        b'U' if of != Of::Bytes => (&text.get(1..9), 16),
        b'0'..=b'3' => (&text.get(..3), 8),
        _ => {
            out.push(match letter {
                b'a' => 0x07,
                b'b' => 0x08,
                b'f' => 0x0c,
                b'n' => b'\n',
                b'r' => b'\r',
                b't' => b'\t',
                b'v' => 0x0b,
                b'\\' | b'\'' | b'"' | b'`' | b'?' => letter,
                _ => return Err(WRONG),
            });
            return Ok(&text[1..]);
        }
    };
    let digits = digits.ok_or(WRONG)?;
    let value = u32::from_str_radix(digits, base).map_err(|_| WRONG)?;
    match of {
        Of::Bytes => out.push(u8::try_from(value).map_err(|_| WRONG)?),
        Of::String { surrogate } => {
            let replacement = surrogate.filter(|_| value <= u32::from(char::MAX));
            let c = char::from_u32(value).or(replacement).ok_or("invalid unicode code point")?;
            out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(&text[digits.len() + usize::from(base == 16)..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_escapes_follow_the_cel_spec() {
        for (source, expected) in [
            (r"'a\n\t\x41\u00e9\U0001F600\303'", "a\n\tA\u{e9}\u{1f600}\u{c3}"),
            (r#""""a "quoted" one""""#, "a \"quoted\" one"),
            (r"r'\d'", r"\d"),
            ("'''a\r\nb'''", "a\nb"),
            (r"'\\\'\`\?'", r"\'`?"),
        ] {
            assert_eq!(string(source, false), Ok(Literal::String(expected.into())), "{source}");
        }
        assert_eq!(string(r"'\ud800'", false), Err("invalid unicode code point"));
        assert_eq!(string(r"'\ud800'", true), Ok(Literal::String("\u{fffd}".into())));
        assert!(string(r"'\U00110000'", true).is_err());
        assert_eq!(bytes(r"b'\xff\377é'"), Ok(Literal::Bytes(Arc::from(&[0xff, 0xff, 0xc3, 0xa9][..]))));
        assert!(bytes(r"b'\u00e9'").is_err());
    }

    #[test]
    fn number_literals_are_limited_to_64_bits() {
        assert_eq!(int(true, "9223372036854775808"), Some(Literal::Int(i64::MIN)));
        assert_eq!(int(false, "9223372036854775808"), None);
        assert_eq!(uint("0xFFFFFFFFFFFFFFFFu"), Some(Literal::Uint(u64::MAX)));
        assert_eq!(double(false, "1e400"), None);
        assert_eq!(double(true, ".5"), Some(Literal::Double(-0.5)));
    }
}
