//! Words that are no identifiers, and names of fields as identifiers (apiserver `pkg/cel/escaping.go`).

use std::borrow::Cow;

/// Words that are no variables, but may be fields (apiserver `pkg/cel/escaping.go`; without the first four, which are
/// tokens of their own, cel-go `parser.reservedIds`).
pub const RESERVED: &[&str] = &[
    "true",
    "false",
    "null",
    "in",
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The escape sequences for text that is not allowed in an identifier.
const ESCAPES: &[(&str, &str)] = &[("__", "__underscores__"), (".", "__dot__"), ("-", "__dash__"), ("/", "__slash__")];

/// The identifier for a field's name, if it can have one: letters, digits, `_`, `.`, `-` and `/`, no digit first.
pub fn escape(name: &str) -> Option<Cow<'_, str>> {
    let valid = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/');
    if name.is_empty() || name.as_bytes()[0].is_ascii_digit() || !name.bytes().all(valid) {
        return None;
    }
    if RESERVED.contains(&name) {
        return Some(format!("__{name}__").into());
    }
    if !name.contains("__") && !name.contains(['.', '-', '/']) {
        return Some(name.into());
    }
    let mut out = String::with_capacity(name.len() + 8);
    let mut rest = name;
    while let Some(first) = rest.chars().next() {
        if let Some((plain, escaped)) = ESCAPES.iter().find(|(plain, _)| rest.starts_with(plain)) {
            out.push_str(escaped);
            rest = &rest[plain.len()..];
        } else {
            out.push(first);
            rest = &rest[1..];
        }
    }
    Some(out.into())
}

/// The field's name for an identifier, if it is one that [`escape`] could have made.
pub fn unescape(identifier: &str) -> Option<Cow<'_, str>> {
    let mut out = String::new();
    let mut rest = identifier;
    while let Some(at) = rest.find("__") {
        let inner = &rest[at + 2..];
        // Two underscores, others between them that are none, two underscores.
        let length = inner.find('_').unwrap_or(inner.len());
        if length == 0 || !inner[length..].starts_with("__") {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        }
        let word = &inner[..length];
        out.push_str(&rest[..at]);
        match ESCAPES.iter().find(|(_, escaped)| escaped[2..].strip_suffix("__") == Some(word)) {
            Some((plain, _)) => out.push_str(plain),
            // Reserved words are escaped as a whole only.
            None if RESERVED.contains(&word) && length + 4 == identifier.len() => out.push_str(word),
            None => return None,
        }
        rest = &inner[length + 2..];
    }
    if out.is_empty() && rest.len() == identifier.len() {
        return Some(identifier.into());
    }
    out.push_str(rest);
    Some(out.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn property_names_are_escaped_and_unescaped() {
        // Of apiserver `pkg/cel/escaping_test.go`.
        for (name, identifier) in [
            ("a", "a"),
            ("namespace", "__namespace__"),
            ("int", "int"),
            ("a__b", "a__underscores__b"),
            ("a.b-c/d", "a__dot__b__dash__c__slash__d"),
            ("_a", "_a"),
            ("___", "__underscores___"),
            ("__dot__", "__underscores__dot__underscores__"),
        ] {
            assert_eq!(escape(name).as_deref(), Some(identifier), "{name}");
            assert_eq!(unescape(identifier).as_deref(), Some(name), "{identifier}");
        }
        for name in ["", "1a", "a b", "é", "a$"] {
            assert_eq!(escape(name), None, "{name}");
        }
        for identifier in ["__illegal__", "a__in__b"] {
            assert_eq!(unescape(identifier), None, "{identifier}");
        }
    }
}
