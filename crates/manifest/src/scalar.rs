//! From a place in a scalar's text to a place in the file: expressions are in block scalars, folded ones, or quotes.

use std::ops::Range;

/// The byte in `raw`, the spelling of a scalar, for the character at byte `offset` of its `text`.
///
/// Exact for everything but white space, which is folded, indented and escaped in ways that this does not follow:
/// there, it is the byte after the last character before it. None if the two do not belong together.
pub(crate) fn offset_in(raw: &str, text: &str, offset: usize) -> Option<usize> {
    // The text of a block may begin with a quote, too.
    let plain = Reader { raw, at: 0, style: Style::Plain };
    find(Reader::new(raw), text, offset).or_else(|| find(plain, text, offset))
}

fn find(mut reader: Reader<'_>, text: &str, offset: usize) -> Option<usize> {
    let mut after = reader.at;
    for (at, c) in text.char_indices() {
        if c.is_whitespace() {
            if at >= offset {
                return Some(after);
            }
            continue;
        }
        let (span, found) = reader.next_visible()?;
        if found != c {
            return None;
        }
        if at >= offset {
            return Some(span.start);
        }
        after = span.end;
    }
    Some(after)
}

/// The style of a scalar.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
}

/// The characters of a scalar as it is written.
struct Reader<'a> {
    raw: &'a str,
    at: usize,
    style: Style,
}

impl<'a> Reader<'a> {
    fn new(raw: &'a str) -> Self {
        let (style, at) = match raw.as_bytes().first() {
            Some(b'\'') => (Style::Single, 1),
            Some(b'"') => (Style::Double, 1),
            // The text of a block begins after the line of its mark.
            Some(b'|' | b'>') => (Style::Plain, raw.find('\n').map_or(raw.len(), |end| end + 1)),
            _ => (Style::Plain, 0),
        };
        Self { raw, at, style }
    }

    /// The next character that is not white space, and the bytes of its spelling.
    fn next_visible(&mut self) -> Option<(Range<usize>, char)> {
        loop {
            let start = self.at;
            let c = self.raw.get(start..)?.chars().next()?;
            self.at += c.len_utf8();
            let read = match (self.style, c) {
                (Style::Single, '\'') => {
                    self.at += 1;
                    c
                }
                (Style::Double, '\\') => self.escaped()?,
                _ => c,
            };
            if !read.is_whitespace() {
                return Some((start..self.at, read));
            }
        }
    }

    /// The character that an escape means; a space for every escape that means white space.
    fn escaped(&mut self) -> Option<char> {
        let c = self.raw.get(self.at..)?.chars().next()?;
        self.at += c.len_utf8();
        let digits = match c {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '0' => return Some('\0'),
            'a' => return Some('\x07'),
            'b' => return Some('\x08'),
            'e' => return Some('\x1b'),
            'n' | 't' | 'r' | 'v' | 'f' | 'N' | '_' | 'L' | 'P' | ' ' | '\n' | '\r' | '\t' => return Some(' '),
            c => return Some(c),
        };
        let code = self.digits(digits)?;
        if (0xd800..0xdc00).contains(&code) && self.raw.get(self.at..)?.starts_with("\\u") {
            self.at += 2;
            let low = self.digits(4)?;
            return char::from_u32(0x1_0000 + ((code - 0xd800) << 10) + low.checked_sub(0xdc00)?);
        }
        char::from_u32(code)
    }

    fn digits(&mut self, count: usize) -> Option<u32> {
        let digits = self.raw.get(self.at..self.at + count)?;
        self.at += count;
        u32::from_str_radix(digits, 16).ok()
    }
}
