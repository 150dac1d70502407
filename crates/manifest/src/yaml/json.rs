//! The parts of a JSON document, each with its place. The input is valid JSON: `split` has checked it.

use std::borrow::Cow;

use super::{
    Fault,
    limits::{MAX_DEPTH, MAX_NODES},
};
use crate::node::{Content, Form, Node};

/// The value in a text.
pub(super) fn read<'a>(text: &'a str, left: &mut usize) -> Result<Node<'a>, Fault> {
    Reader { text, at: 0, left, depth: 0 }.value()
}

struct Reader<'a, 'l> {
    text: &'a str,
    at: usize,
    left: &'l mut usize,
    depth: usize,
}

impl<'a> Reader<'a, '_> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, Fault> {
        Err(Fault { message: message.into(), offset: self.at })
    }

    /// The next byte that is not white space; 0 at the end.
    fn next(&mut self) -> u8 {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.text.as_bytes().get(self.at).copied().unwrap_or_default()
    }

    fn value(&mut self) -> Result<Node<'a>, Fault> {
        let first = self.next();
        let start = self.at;
        match self.left.checked_sub(1) {
            Some(left) => *self.left = left,
            None => return self.fail(format!("more than {MAX_NODES} parts in one file")),
        }
        let content = match first {
            b'{' | b'[' => {
                if self.depth >= MAX_DEPTH {
                    return self.fail(format!("nested deeper than {MAX_DEPTH}"));
                }
                self.depth += 1;
                self.at += 1;
                let content = if first == b'{' { self.fields()? } else { self.elements()? };
                self.depth -= 1;
                content
            }
            b'"' => Content::Scalar(self.text()?),
            _ => {
                let rest = &self.text[self.at..];
                let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c))).unwrap_or(rest.len());
                if end == 0 {
                    return self.fail("expected a JSON value");
                }
                self.at += end;
                Content::Scalar(Cow::Borrowed(&rest[..end]))
            }
        };
        let plain = !matches!(first, b'"' | b'{' | b'[');
        Ok(Node { span: start..self.at, block: false, content, form: Form { plain, ..Form::default() } })
    }

    /// Whether the list or mapping ends here, after the comma before the next part.
    fn ends(&mut self, close: u8, first: bool) -> Result<bool, Fault> {
        match self.next() {
            found if found == close => {
                self.at += 1;
                Ok(true)
            }
            b',' if !first => {
                self.at += 1;
                Ok(false)
            }
            _ if first => Ok(false),
            _ => self.fail("expected a comma"),
        }
    }

    fn elements(&mut self) -> Result<Content<'a>, Fault> {
        let mut elements = Vec::new();
        while !self.ends(b']', elements.is_empty())? {
            elements.push(self.value()?);
        }
        Ok(Content::Sequence(elements))
    }

    fn fields(&mut self) -> Result<Content<'a>, Fault> {
        let mut fields = Vec::new();
        while !self.ends(b'}', fields.is_empty())? {
            let key = self.value()?;
            if self.next() != b':' {
                return self.fail("expected a colon");
            }
            self.at += 1;
            fields.push((key, self.value()?));
        }
        Ok(Content::Mapping(fields))
    }

    /// A text in quotes. Half of a surrogate pair is a replacement character, as Go reads it.
    fn text(&mut self) -> Result<Cow<'a, str>, Fault> {
        let start = self.at + 1;
        self.at = start;
        let mut owned: Option<String> = None;
        loop {
            let rest = &self.text[self.at..];
            let Some(length) = rest.find(['"', '\\']) else { return self.fail("unterminated string") };
            if let Some(text) = &mut owned {
                text.push_str(&rest[..length]);
            }
            let from = self.at;
            self.at += length;
            if rest[length..].starts_with('"') {
                let end = self.at;
                self.at += 1;
                return Ok(owned.map_or(Cow::Borrowed(&self.text[start..end]), Cow::Owned));
            }
            let text = owned.get_or_insert_with(|| self.text[start..from + length].to_owned());
            let escaped = self.text.as_bytes().get(self.at + 1).copied().unwrap_or_default();
            self.at += 2;
            text.push(match escaped {
                b'b' => '\x08',
                b'f' => '\x0C',
                b'n' => '\n',
                b'r' => '\r',
                b't' => '\t',
                b'u' => self.unit(),
                other => char::from(other),
            });
        }
    }

    /// The character whose code follows, of four digits, and perhaps its other half.
    fn unit(&mut self) -> char {
        let code = |at: usize| self.text.get(at..at + 4).and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let Some(high) = code(self.at) else { return char::REPLACEMENT_CHARACTER };
        let low = self.text.get(self.at + 4..).filter(|rest| rest.starts_with("\\u")).and_then(|_| code(self.at + 6));
        self.at += 4;
        match (high, low) {
            (0xD800..0xDC00, Some(low @ 0xDC00..0xE000)) => {
                self.at += 6;
                char::from_u32(0x1_0000 + ((high - 0xD800) << 10) + (low - 0xDC00)).unwrap_or_default()
            }
            _ => char::from_u32(high).unwrap_or(char::REPLACEMENT_CHARACTER),
        }
    }
}
