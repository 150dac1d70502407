//! References to parameters: `$name` or `${name}` inside a setting, `$$` for a dollar sign.

/// The name of a parameter: `[a-z][A-Za-z0-9]*`, at most 63 characters.
pub type ParameterName = String;

/// One piece of a text with references.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Literal text.
    Literal(&'a str),
    /// A reference to the named parameter.
    Reference(&'a str),
}

/// Splits `text` into literal pieces and references.
///
/// # Errors
/// A `$` that begins no reference gives a message that quotes the rest of the text from there on.
pub fn pieces(text: &str) -> Result<Vec<Piece<'_>>, String> {
    let mut out = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('$') {
        if at > 0 {
            out.push(Piece::Literal(&rest[..at]));
        }
        let after = &rest[at + 1..];
        if let Some(tail) = after.strip_prefix('$') {
            out.push(Piece::Literal(&after[..1]));
            rest = tail;
            continue;
        }
        let (name, tail) = match after.strip_prefix('{') {
            Some(braced) => braced.split_once('}').unwrap_or(("", braced)),
            None => after.split_at(after.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(after.len())),
        };
        if !is_name(name) {
            return Err(format!("{:?} is not a reference to a parameter", &rest[at..]));
        }
        out.push(Piece::Reference(name));
        rest = tail;
    }
    if !rest.is_empty() {
        out.push(Piece::Literal(rest));
    }
    Ok(out)
}

/// Whether `name` can name a parameter.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.len() <= 63
        && name.chars().all(|c| c.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::{Piece::*, pieces};

    #[test]
    fn splits_references_from_text() {
        assert_eq!(pieces("/data/$tool/x"), Ok(vec![Literal("/data/"), Reference("tool"), Literal("/x")]));
        assert_eq!(pieces("${tool}s"), Ok(vec![Reference("tool"), Literal("s")]));
        assert_eq!(pieces("a$$b"), Ok(vec![Literal("a"), Literal("$"), Literal("b")]));
        assert_eq!(pieces(""), Ok(vec![]));
    }

    #[test]
    fn dollar_sign_without_a_reference_is_rejected() {
        for text in ["$", "a $ b", "${tool", "${}", "$Tool", "$1", "${a-b}"] {
            assert!(pieces(text).is_err(), "{text}");
        }
    }
}
