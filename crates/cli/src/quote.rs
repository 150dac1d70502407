//! Texts as Go quotes them (`%q`, `strconv.Quote`), and so API servers the names in their answers.

/// A text that begins with a quoted one: what was quoted, and what follows. `None` if it does not.
pub fn unquoted(text: &str) -> Option<(String, &str)> {
    let mut out = String::new();
    let mut chars = text.strip_prefix('"')?.chars();
    loop {
        let c = match chars.next()? {
            '"' => return Some((out, chars.as_str())),
            '\\' => escaped(&mut chars)?,
            c => c,
        };
        out.push(c);
    }
}

/// The character that an escape behind a backslash stands for.
fn escaped(chars: &mut std::str::Chars<'_>) -> Option<char> {
    let digits = match chars.next()? {
        'a' => return Some('\u{7}'),
        'b' => return Some('\u{8}'),
        'f' => return Some('\u{c}'),
        'n' => return Some('\n'),
        'r' => return Some('\r'),
        't' => return Some('\t'),
        'v' => return Some('\u{b}'),
        sign @ ('\\' | '"') => return Some(sign),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => return None,
    };
    let hex = chars.as_str().get(..digits).filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    let number = u32::from_str_radix(hex, 16).ok()?;
    // It is `\x` for a byte that is no text, which is none in JSON either.
    let found = if digits == 2 && number >= 0x80 { char::REPLACEMENT_CHARACTER } else { char::from_u32(number)? };
    let _ = chars.nth(digits - 1);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `strconv.Quote` makes of these.
    #[test]
    fn texts_are_read_as_go_quotes_them() {
        for (quoted, expected) in [
            (r#""" x"#, Some(("", " x"))),
            (r#""a"b""#, Some(("a", "b\""))),
            (r#""a\"b" c"#, Some(("a\"b", " c"))),
            (r#""a\\" b""#, Some(("a\\", " b\""))),
            (r#""\a\b\f\n\r\t\v\x00\x7f""#, Some(("\u{7}\u{8}\u{c}\n\r\t\u{b}\0\u{7f}", ""))),
            (r#""\u200b\U000e0001ü""#, Some(("\u{200b}\u{e0001}ü", ""))),
            (r#""\xff""#, Some(("\u{fffd}", ""))),
            (r#""open"#, None),
            (r#""open\""#, None),
            (r#""\q""#, None),
            (r#""\u12""#, None),
            (r#""\ud800""#, None),
            ("a", None),
            ("", None),
        ] {
            assert_eq!(unquoted(quoted), expected.map(|(text, rest)| (text.to_owned(), rest)), "{quoted}");
        }
    }
}
