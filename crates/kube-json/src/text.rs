//! Strings for messages: on one line, and of limited length.

/// The first `most` characters.
pub fn truncated(text: &str, most: usize) -> &str {
    text.char_indices().nth(most).map_or(text, |(end, _)| &text[..end])
}

/// The first `most` characters, with an ellipsis if there are more.
pub fn shortened(text: &str, most: usize) -> String {
    let start = truncated(text, most);
    let ellipsis = if start.len() < text.len() { "..." } else { "" };
    format!("{start}{ellipsis}")
}

/// The words of a text on one line: line breaks and indentation become single spaces.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// FNV-1a (<http://www.isthe.com/chongo/tech/comp/fnv>), which no update of a library changes.
pub fn fnv1a(bytes: &[u8]) -> u64 {
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_cut_after_characters_and_not_bytes() {
        for (most, expected, with_ellipsis) in
            [(0, "", "..."), (2, "aü", "aü..."), (3, "aüb", "aüb"), (9, "aüb", "aüb")]
        {
            assert_eq!(truncated("aüb", most), expected);
            assert_eq!(shortened("aüb", most), with_ellipsis);
        }
        assert_eq!(one_line("  a &&\n\t  b\r\n"), "a && b");
    }
}
