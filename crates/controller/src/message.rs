//! Counts and lists in messages: on one line, and bounded.

use std::fmt::Write as _;

use palisade_api::Diagnostic;

/// How many diagnostics or names a message has.
const MAX_ITEMS: usize = 5;
/// The longest diagnostic in a message, in characters.
const MAX_DIAGNOSTIC_CHARS: usize = 1000;

/// The first diagnostics on one line, and how many more there are.
pub fn diagnostics(all: &[Diagnostic]) -> String {
    let mut message = String::new();
    for (index, diagnostic) in all.iter().take(MAX_ITEMS).enumerate() {
        let separator = if index == 0 { "" } else { "; " };
        let text: String = diagnostic.to_string().chars().take(MAX_DIAGNOSTIC_CHARS).collect();
        let _ = write!(message, "{separator}{text}");
    }
    if all.len() > MAX_ITEMS {
        let _ = write!(message, "; and {} more", all.len() - MAX_ITEMS);
    }
    message
}

/// Some names, and how many more there are.
pub fn few<S: AsRef<str>>(all: &[S]) -> String {
    let mut text = all.iter().take(MAX_ITEMS).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    if all.len() > MAX_ITEMS {
        let _ = write!(text, " and {} more", all.len() - MAX_ITEMS);
    }
    text
}

/// A number of things: `1 check`, `2 checks`.
pub fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_lists_only_the_first_five_items() {
        let all: Vec<_> = (0..7).map(|n| Diagnostic::new(format!("spec.x[{n}]"), "is wrong")).collect();
        let message = diagnostics(&all);
        assert!(message.starts_with("spec.x[0]: is wrong; spec.x[1]: is wrong; "), "{message}");
        assert!(message.ends_with("spec.x[4]: is wrong; and 2 more"), "{message}");
        assert_eq!(few(&["a", "b", "c", "d", "e", "f"]), "a, b, c, d, e and 1 more");
    }
}
