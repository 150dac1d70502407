//! A text and its lines.

use std::{fmt, sync::OnceLock};

/// Messages quote the file, and a name in a file may be as long as the file.
const MAX_TEXT: usize = 2000;
/// Excerpts of longer lines would hide their point.
const MAX_LINE: usize = 1000;

/// A text that excerpts are taken from.
pub struct Source {
    name: String,
    text: String,
    /// The text without control characters for terminals, each byte in its place.
    shown: String,
    /// The beginnings of lines, computed on first use.
    lines: OnceLock<Vec<usize>>,
}

impl Source {
    /// A text with the name to show for it.
    pub fn new(name: &str, text: String) -> Self {
        let shown = text.chars().map(harmless).collect();
        Self { name: one_line(name), text, shown, lines: OnceLock::new() }
    }

    /// The text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text for display: with other characters for control characters, byte for byte in the same places.
    pub fn shown(&self) -> &str {
        &self.shown
    }

    /// The name of the file.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line and column of a byte, from 1.
    pub fn position(&self, offset: usize) -> (usize, usize) {
        let starts = self.lines.get_or_init(|| {
            let breaks = self.text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
            std::iter::once(0).chain(breaks).collect()
        });
        let offset = self.text.floor_char_boundary(offset);
        let line = starts.partition_point(|start| *start <= offset);
        let start = starts.get(line.saturating_sub(1)).copied().unwrap_or_default();
        (line, self.text[start..offset].chars().count() + 1)
    }

    /// Whether the lines around a byte are short enough to be shown.
    pub fn can_show(&self, offset: usize) -> bool {
        let (before, after) = self.text.as_bytes().split_at(offset);
        let longest = |lines: &mut dyn Iterator<Item = usize>| lines.take(2).max().unwrap_or_default();
        let before = longest(&mut before.rsplit(|&b| b == b'\n').map(<[u8]>::len));
        let after = longest(&mut after.split(|&b| b == b'\n').map(<[u8]>::len));
        before.max(after) <= MAX_LINE
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// One line of bounded length without control characters.
pub fn one_line(text: &str) -> String {
    let end = text.char_indices().nth(MAX_TEXT).map_or(text.len(), |(end, _)| end);
    let mut line: String =
        text[..end].chars().map(|c| if c == '\n' || c == '\t' { ' ' } else { harmless(c) }).collect();
    if end < text.len() {
        line.push_str("...");
    }
    line
}

/// The character, or one of as many bytes if it could control a terminal or mislead a reader.
pub fn harmless(c: char) -> char {
    match c {
        '\n' | '\t' => c,
        '\0'..='\x1f' | '\x7f' => ' ',
        '\u{80}'..='\u{9f}' => '\u{a0}',
        '\u{61c}' => '\u{bf}',
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => '\u{fffd}',
        c => c,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_counted_from_one() {
        let source = Source::new("f", "ab\nü\n\nx".to_owned());
        let positions: Vec<_> = [0, 2, 3, 5, 6, 7, 99].map(|offset| source.position(offset)).to_vec();
        assert_eq!(positions, [(1, 1), (1, 3), (2, 1), (2, 2), (3, 1), (4, 1), (4, 2)]);
    }

    #[test]
    fn replaced_characters_keep_their_byte_length() {
        for c in
            ['\n', '\t', '\r', '\x1b', '\x7f', '\u{9b}', '\u{61c}', '\u{200b}', '\u{202e}', '\u{2069}', '\u{feff}', 'ü']
        {
            assert_eq!(harmless(c).len_utf8(), c.len_utf8(), "{c:?}");
        }
    }
}
