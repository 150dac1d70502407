//! Small helpers that write CEL.

use std::fmt::Write as _;

use serde_json::Value as Json;

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

/// A CEL literal of the value. The elements of one list or map must be of one type (`HomogeneousAggregateLiterals` in
/// apiserver `pkg/cel/environment/base.go`), so elements of different types become dynamic.
pub fn literal(value: &Json) -> String {
    /// Equal only for values that certainly have one type.
    fn kind(value: &Json) -> Option<u8> {
        match value {
            Json::Bool(_) => Some(0),
            Json::String(_) => Some(1),
            Json::Number(number) if number.is_i64() => Some(2),
            Json::Number(_) | Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }
    fn elements<'a>(of: impl Iterator<Item = &'a Json> + Clone) -> impl Iterator<Item = String> {
        let mut kinds = of.clone().map(kind);
        let first = kinds.next().flatten();
        let one_type = first.is_some() && kinds.all(|kind| kind == first);
        of.map(move |one| if one_type { literal(one) } else { format!("dyn({})", literal(one)) })
    }
    match value {
        Json::String(text) => quote(text),
        Json::Number(number) if number.is_u64() && !number.is_i64() => format!("{number}u"),
        Json::Array(items) => format!("[{}]", elements(items.iter()).collect::<Vec<_>>().join(", ")),
        Json::Object(fields) => {
            let values = elements(fields.values());
            let fields: Vec<_> = fields.keys().zip(values).map(|(key, of)| format!("{}: {of}", quote(key))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Json::Null | Json::Bool(_) | Json::Number(_) => value.to_string(),
    }
}

/// The terms joined by `||`, in parentheses; `false` without terms.
pub fn any(terms: &[String]) -> String {
    match terms {
        [] => "false".to_owned(),
        [one] => one.clone(),
        many => format!("({})", many.join(" || ")),
    }
}

/// A sum of CEL strings with neighbouring literals merged: the pieces one after another.
pub fn concat(parts: &[String]) -> String {
    parts.iter().filter(|part| *part != "''").map(String::as_str).collect::<Vec<_>>().join(" + ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn string_literals_are_escaped_for_cel() {
        assert_eq!(quote("it's a \\ \n"), r"'it\'s a \\ \u000a'");
        assert_eq!(list(["a", "b"]), "['a', 'b']");
        assert_eq!(any(&[]), "false");
    }

    #[test]
    fn mixed_type_literals_are_wrapped_in_dyn() {
        use serde_json::json;
        for (value, expected) in [
            (json!("it's"), r"'it\'s'"),
            (json!([1, 2]), "[1, 2]"),
            (json!([1, 2.5, -3]), "[dyn(1), dyn(2.5), dyn(-3)]"),
            (json!({"a": "x", "b": "y"}), "{'a': 'x', 'b': 'y'}"),
            (json!({"a": true, "b": [{"c": null}]}), "{'a': dyn(true), 'b': dyn([dyn({'c': dyn(null)})])}"),
            (json!(u64::MAX), "18446744073709551615u"),
        ] {
            assert_eq!(literal(&value), expected);
        }
    }
}
