//! Denials by policies, in the format of API servers.

/// The object of a request, by its address in the API.
#[derive(Clone, Copy, Debug)]
pub struct Requested<'a> {
    /// Empty for the core group.
    pub group: &'a str,
    /// The plural name of the kind.
    pub resource: &'a str,
    /// Empty if the API server generates the name.
    pub name: &'a str,
}

/// The policy that denied a request, and its message. The API server begins such an answer with the resource, the
/// quoted name of the object, and `is forbidden: ` (`NewForbidden`). The name comes from the request. It is parsed as a
/// quoted string, so that a name that looks like a denial remains part of the name.
pub fn denial<'a>(of: Requested<'_>, code: u16, message: &'a str) -> Option<(&'a str, &'a str)> {
    let rest = Some(message).filter(|_| code >= 400)?.strip_prefix(of.resource)?;
    let rest = if of.group.is_empty() { rest } else { rest.strip_prefix('.')?.strip_prefix(of.group)? };
    let rest = match rest.strip_prefix(' ').filter(|rest| rest.starts_with('"')) {
        Some(quoted) => {
            let (name, rest) = unquoted(quoted)?;
            // If the API server generates the name, the log has no name, and the answer has its prefix.
            Some(rest).filter(|_| of.name.is_empty() || of.name == name)?
        }
        None => rest,
    };
    let (policy, rest) = rest.strip_prefix(" is forbidden: ValidatingAdmissionPolicy '")?.split_once('\'')?;
    Some((policy, rest.split_once("denied request: ").map_or("", |(_, text)| text)))
}

/// The string that Go quoted (`%q`, `strconv.Quote`) at the beginning of a text, and the rest. `None` if the text
/// begins otherwise.
fn unquoted(text: &str) -> Option<(String, &str)> {
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

/// The character for an escape after a backslash.
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
    // It is `\x` for a byte that is not UTF-8, which JSON cannot have either.
    let found = if digits == 2 && number >= 0x80 { char::REPLACEMENT_CHARACTER } else { char::from_u32(number)? };
    let _ = chars.nth(digits - 1);
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DENIED: &str = "ValidatingAdmissionPolicy 'palisade-x-pods' with binding 'b' denied request: no";

    #[test]
    fn only_an_answer_that_begins_as_a_denial_is_one() {
        let of = |name: &str, code: u16, message: &str| {
            let of = Requested { group: "", resource: "pods", name };
            denial(of, code, message).map(|(policy, _)| policy.to_owned())
        };
        for (name, about) in [
            ("a", "pods \"a\" is forbidden: "),
            ("", "pods is forbidden: "),
            ("", "pods \"web-\" is forbidden: "),
            ("", "pods \"Unknown\" is forbidden: "),
            ("a\"b\n\u{7}\u{feff}", "pods \"a\\\"b\\n\\a\\ufeff\" is forbidden: "),
        ] {
            assert_eq!(of(name, 403, &format!("{about}{DENIED}")).as_deref(), Some("palisade-x-pods"), "{about}");
        }
        let quoted = format!("Pod \"a\" is invalid: spec.x: Invalid value: \"is forbidden: {DENIED}\"");
        assert_eq!(of("a", 422, &quoted), None);
        for (name, about) in [
            ("b", "pods \"a\" is forbidden: "),
            ("a", "deployments.apps \"a\" is forbidden: "),
            ("a", "pods \"a is forbidden: "),
            ("a", "pods \"a\" is forbidden:  "),
            ("a", " is forbidden: "),
        ] {
            assert_eq!(of(name, 403, &format!("{about}{DENIED}")), None, "{about}");
        }
        assert_eq!(of("a", 200, &format!("pods \"a\" is forbidden: {DENIED}")), None);
        let of_group = Requested { group: "apps", resource: "deployments", name: "" };
        let message = format!("deployments.apps \"a\" is forbidden: {DENIED}");
        assert!(denial(of_group, 422, &message).is_some());
    }

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
