//! The warnings that reach a client (apiserver `pkg/endpoints/filters/warning.go`).

use std::collections::BTreeSet;

use palisade_kube_json::text::truncated;

/// Beyond so many characters in all, each warning is cut.
const TOTAL: usize = 4 * 1024;
/// The length that each is cut to.
const ITEM: usize = 256;

/// Collects warnings as the headers of a response do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Warnings {
    seen: BTreeSet<String>,
    ordered: Vec<String>,
    sent: Vec<String>,
    length: usize,
    cutting: bool,
}

impl Warnings {
    /// Adds one, unless it is there already. One with control characters is not sent.
    pub fn add(&mut self, text: &str) {
        let full = self.cutting && self.length >= TOTAL;
        if text.is_empty() || full || !self.seen.insert(text.to_owned()) {
            return;
        }
        self.ordered.push(text.to_owned());
        let length = if self.cutting { truncated(text, ITEM).chars().count() } else { text.chars().count() };
        if self.cutting || self.length + length <= TOTAL || text.contains(char::is_control) {
            self.send(text);
            return;
        }
        self.cutting = true;
        self.length = 0;
        self.sent.clear();
        for text in std::mem::take(&mut self.ordered) {
            self.send(&text);
            self.ordered.push(text);
        }
    }

    fn send(&mut self, text: &str) {
        let text = if self.cutting { truncated(text, ITEM) } else { text };
        if !text.contains(char::is_control) {
            self.length += text.chars().count();
            self.sent.push(text.to_owned());
        }
    }

    /// The warnings that were sent.
    pub fn into_sent(self) -> Vec<String> {
        self.sent
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(texts: &[&str]) -> Vec<String> {
        let mut warnings = Warnings::default();
        for text in texts {
            warnings.add(text);
        }
        warnings.into_sent()
    }

    #[test]
    fn a_warning_is_sent_once_and_never_with_control_characters() {
        assert_eq!(sent(&["a", "b\nc", "a", "", "b"]), ["a", "b"]);
    }

    #[test]
    fn warnings_are_truncated_when_their_total_is_too_long() {
        let (long, longer) = ("é".repeat(3_000), "b".repeat(2_000));
        assert_eq!(sent(&[&long]), std::slice::from_ref(&long));
        assert_eq!(sent(&[&long, &longer]), ["é".repeat(256), "b".repeat(256)]);
        let many: Vec<String> = (0..30).map(|i| format!("{i:>400}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert_eq!(sent(&many).len(), 16, "4,096 characters of 256 each");
    }
}
