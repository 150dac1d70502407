//! A text and its lines.

use std::{fmt, sync::OnceLock};

/// Messages quote the file, and a name in a file may be as long as the file.
const MAX_TEXT: usize = 2000;
/// Excerpts of longer lines would hide their point.
const MAX_LINE: usize = 1000;

/// The text of a file, as kubectl reads it (`cli-runtime/pkg/resource/visitor.go`): UTF-8, or UTF-16 with a byte order
/// mark. The mark is not a part of it.
///
/// # Errors
/// The first byte that is not of the encoding. kubectl would read another character in its place.
pub fn decode(bytes: Vec<u8>) -> Result<String, usize> {
    let unit: fn([u8; 2]) -> u16 = match bytes.get(..2) {
        Some([0xFF, 0xFE]) => u16::from_le_bytes,
        Some([0xFE, 0xFF]) => u16::from_be_bytes,
        _ => {
            let mut text = String::from_utf8(bytes).map_err(|error| error.utf8_error().valid_up_to())?;
            if text.starts_with('\u{feff}') {
                text.drain(..'\u{feff}'.len_utf8());
            }
            return Ok(text);
        }
    };
    let (pairs, rest) = bytes[2..].as_chunks::<2>();
    if !rest.is_empty() {
        return Err(bytes.len() - 1);
    }
    let mut text = String::with_capacity(pairs.len());
    let mut at = 2;
    for c in char::decode_utf16(pairs.iter().map(|pair| unit(*pair))) {
        let c = c.map_err(|_| at)?;
        at += 2 * c.len_utf16();
        text.push(c);
    }
    Ok(text)
}

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

    /// True if the lines around a byte are short enough to be shown.
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
    fn files_are_utf_8_or_utf_16_with_a_mark() {
        let utf_16 = |mark: [u8; 2], text: &str, bytes: fn(u16) -> [u8; 2]| {
            mark.into_iter().chain(text.encode_utf16().flat_map(bytes)).collect::<Vec<u8>>()
        };
        let text = "a: 'ü😀'\r\n---\n";
        for bytes in [
            text.as_bytes().to_vec(),
            format!("\u{feff}{text}").into_bytes(),
            utf_16([0xFF, 0xFE], text, u16::to_le_bytes),
            utf_16([0xFE, 0xFF], text, u16::to_be_bytes),
        ] {
            assert_eq!(decode(bytes).as_deref(), Ok(text));
        }
        assert_eq!(decode(b"a\xff".to_vec()), Err(1));
        assert_eq!(decode(b"\xff\xfea\0b".to_vec()), Err(4));
        assert_eq!(decode(b"\xff\xfea\0\x00\xd8b\0".to_vec()), Err(4));
    }

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
