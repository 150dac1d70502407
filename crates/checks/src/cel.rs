//! Small helpers that write CEL.

use std::fmt::Write as _;

/// A CEL string literal that means exactly `text`.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('\'');
    for c in text.chars() {
        match c {
            '\'' => out.push_str("\\'"),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('\'');
    out
}

/// A CEL list literal of the strings.
pub fn list<S: AsRef<str>>(texts: impl IntoIterator<Item = S>) -> String {
    let quoted: Vec<_> = texts.into_iter().map(|text| quote(text.as_ref())).collect();
    format!("[{}]", quoted.join(", "))
}

/// The terms joined by `||`, in parentheses; `false` without terms.
pub fn any(terms: &[String]) -> String {
    match terms {
        [] => "false".to_owned(),
        [one] => one.clone(),
        many => format!("({})", many.join(" || ")),
    }
}

/// A sum of CEL strings, neighbouring literals merged: what it reads is the pieces one after another.
pub fn concat(parts: &[String]) -> String {
    parts.iter().filter(|part| *part != "''").map(String::as_str).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_what_cel_would_read_otherwise() {
        assert_eq!(quote("it's a \\ \n"), r"'it\'s a \\ \u000a'");
        assert_eq!(list(["a", "b"]), "['a', 'b']");
        assert_eq!(any(&[]), "false");
    }
}
