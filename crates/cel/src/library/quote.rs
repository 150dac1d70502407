//! Go's `strconv.Quote`, which is `%q` of `fmt`: quoted texts within error messages and formatted lists.

use std::{fmt::Write as _, sync::LazyLock};

use regex_syntax::hir::{Class, ClassUnicode, HirKind};

/// The characters that Go prints unescaped, in addition to the space: Unicode 15.0, as in Go 1.26.
const PRINTABLE: &str = r"[[\p{L}\p{M}\p{N}\p{P}\p{S}]&&\p{age:15.0}]";

/// The code points of a class in the syntax of `regex-syntax`.
pub(super) fn class(pattern: &str) -> Option<ClassUnicode> {
    match regex_syntax::parse(pattern).ok()?.into_kind() {
        HirKind::Class(Class::Unicode(class)) => Some(class),
        HirKind::Literal(literal) => {
            let c = std::str::from_utf8(&literal.0).ok()?.chars().next()?;
            Some(ClassUnicode::new([regex_syntax::hir::ClassUnicodeRange::new(c, c)]))
        }
        _ => None,
    }
}

/// Go's `strconv.IsPrint`, which equals `unicode.IsPrint`.
pub fn is_printable(c: char) -> bool {
    static CLASS: LazyLock<ClassUnicode> = LazyLock::new(|| class(PRINTABLE).unwrap_or_else(ClassUnicode::empty));
    if c.is_ascii() {
        return (' '..='~').contains(&c);
    }
    let ranges = CLASS.ranges();
    let after = ranges.partition_point(|range| range.start() <= c);
    after > 0 && c <= ranges[after - 1].end()
}

/// The text as a literal of Go.
pub fn quote(text: &str) -> String {
    quote_bytes(text.as_bytes())
}

/// The text as a literal of Go, where it need not be UTF-8.
pub(crate) fn quote_bytes(text: &[u8]) -> String {
    let mut out = String::from('"');
    for chunk in text.utf8_chunks() {
        for c in chunk.valid().chars() {
            push(&mut out, c);
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "\\x{byte:02x}");
        }
    }
    out + "\""
}

fn push(out: &mut String, c: char) {
    let written = match c {
        '"' | '\\' => write!(out, "\\{c}"),
        c if is_printable(c) => write!(out, "{c}"),
        '\x07' => write!(out, "\\a"),
        '\x08' => write!(out, "\\b"),
        '\x0c' => write!(out, "\\f"),
        '\n' => write!(out, "\\n"),
        '\r' => write!(out, "\\r"),
        '\t' => write!(out, "\\t"),
        '\x0b' => write!(out, "\\v"),
        c if c < ' ' || c == '\x7f' => write!(out, "\\x{:02x}", u32::from(c)),
        c if u32::from(c) < 0x10000 => write!(out, "\\u{:04x}", u32::from(c)),
        c => write!(out, "\\U{:08x}", u32::from(c)),
    };
    debug_assert!(written.is_ok(), "writing to a string cannot fail");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::library::truth::{bytes, check};

    #[test]
    fn quoting_matches_go() {
        check(include_str!("testdata/quote.jsonl"), |call, args| {
            if call == "quote" {
                return Ok(match bytes(&args[0]) {
                    Some(text) => json!(quote_bytes(&text)),
                    None => json!(quote(args[0].as_str().unwrap())),
                });
            }
            let mut ranges: Vec<[u32; 2]> = Vec::new();
            for c in '\0'..=char::MAX {
                match ranges.last_mut() {
                    Some(last) if is_printable(c) && last[1] + 1 == u32::from(c) => last[1] = c.into(),
                    _ if is_printable(c) => ranges.push([c.into(); 2]),
                    _ => {}
                }
            }
            Ok(json!(ranges))
        });
    }
}
