//! Percent encoding, which differs from one part of a URL to another.

use super::bad_escape;
use crate::library::quote::quote_bytes;

/// A part of a URL.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Path,
    Host,
    Zone,
    UserPassword,
    Query,
    Fragment,
}

/// Go's `shouldEscape`.
fn must_escape(byte: u8, mode: Mode) -> bool {
    if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
        return false;
    }
    let allowed: &[u8] = match mode {
        Mode::Host | Mode::Zone => b"!$&'()*+,;=:[]<>\"",
        Mode::Path => b"$&+,/:;=@",
        Mode::UserPassword => b"$&+,;=",
        Mode::Query => b"",
        Mode::Fragment => b"$&+,/:;=?@!()*",
    };
    !allowed.contains(&byte)
}

fn unhex(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| digit.try_into().ok())
}

/// Decodes a part of a URL.
pub(super) fn unescape(text: &str, mode: Mode) -> Result<Vec<u8>, String> {
    let (mut rest, mut out) = (text.as_bytes(), Vec::new());
    while let Some(&byte) = rest.first() {
        if byte == b'%' {
            let digits = rest.get(1).and_then(|&high| unhex(high)).zip(rest.get(2).and_then(|&low| unhex(low)));
            let Some((high, low)) = digits else { return bad_escape(rest) };
            let value = high << 4 | low;
            let refused = match mode {
                // Only what is not ASCII may be encoded in a host.
                Mode::Host => high < 8,
                Mode::Zone => value != b' ' && must_escape(value, Mode::Host),
                _ => false,
            };
            if refused && !rest.starts_with(b"%25") {
                return bad_escape(rest);
            }
            out.push(value);
            rest = &rest[3..];
            continue;
        }
        if matches!(mode, Mode::Host | Mode::Zone) && byte.is_ascii() && must_escape(byte, mode) {
            return Err(format!("invalid character {} in host name", quote_bytes(&[byte])));
        }
        out.push(if byte == b'+' && mode == Mode::Query { b' ' } else { byte });
        rest = &rest[1..];
    }
    Ok(out)
}

/// Encodes a part of a URL.
pub(super) fn escape(bytes: &[u8], mode: Mode) -> String {
    let encode =
        |&byte: &u8| if must_escape(byte, mode) { format!("%{byte:02X}") } else { char::from(byte).to_string() };
    bytes.iter().map(encode).collect()
}

/// Whether a part may be written like that.
pub(super) fn is_valid_encoding(text: &str, mode: Mode) -> bool {
    text.bytes().all(|byte| b"!$&'()*+,;=:@[]%".contains(&byte) || !must_escape(byte, mode))
}
