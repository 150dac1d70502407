//! The spelling of literals.

use std::fmt::Write as _;

use crate::ast::Literal;

pub(super) fn literal(value: &Literal) -> String {
    match value {
        Literal::Null => "null".to_owned(),
        Literal::Bool(value) => value.to_string(),
        Literal::Int(value) => value.to_string(),
        Literal::Uint(value) => format!("{value}u"),
        Literal::Double(value) => format!("{value:?}"),
        Literal::String(text) => string(text),
        Literal::Bytes(bytes) => self::bytes(bytes),
    }
}

/// In single quotes, unless double ones save escapes.
fn string(text: &str) -> String {
    let quote = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
    let mut out = String::from(quote);
    for c in text.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\\' => out.push_str("\\\\"),
            c if c == quote => out.extend(['\\', c]),
            c if is_shown(c) => out.push(c),
            c if u32::from(c) > 0xffff => drop(write!(out, "\\U{:08x}", u32::from(c))),
            c => drop(write!(out, "\\u{:04x}", u32::from(c))),
        }
    }
    out.push(quote);
    out
}

/// Whether each writer of YAML takes the character as it is: those in Go escape all beyond the first plane.
fn is_shown(c: char) -> bool {
    matches!(c, ' '..='~' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}')
        && !matches!(c, '\u{2028}' | '\u{2029}' | '\u{feff}')
}

fn bytes(bytes: &[u8]) -> String {
    let mut out = String::from("b'");
    for byte in bytes {
        match byte {
            b'\'' | b'\\' => out.extend(['\\', char::from(*byte)]),
            b' '..=b'~' => out.push(char::from(*byte)),
            _ => drop(write!(out, "\\x{byte:02x}")),
        }
    }
    out.push('\'');
    out
}
