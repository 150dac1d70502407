//! Texts: in a block, in quotes, and plain.

use std::borrow::Cow;

use super::{Kind, Scanned, Scanner};
use crate::yaml::Fault;

/// Ends of lines and white space between words of a text, which are not known to be a part of it yet.
#[derive(Default)]
struct Gap {
    /// Whether a line has ended.
    folds: bool,
    first: String,
    more: String,
    blanks: String,
}

impl Gap {
    /// Adds it to a text: one end of a line is a space.
    fn join(&mut self, text: &mut String) {
        if self.folds {
            if self.first == "\n" {
                text.push_str(if self.more.is_empty() { " " } else { &self.more });
            } else {
                text.push_str(&self.first);
                text.push_str(&self.more);
            }
            self.first.clear();
            self.more.clear();
            self.folds = false;
        } else {
            text.push_str(&self.blanks);
            self.blanks.clear();
        }
    }
}

impl<'a> Scanner<'a> {
    /// The text itself, if it is spelt like that.
    fn borrowed(&self, text: String, from: usize, to: usize) -> Cow<'a, str> {
        match self.cursor.text.get(from..to) {
            Some(spelt) if spelt == text => Cow::Borrowed(spelt),
            _ => Cow::Owned(text),
        }
    }

    pub(super) fn block_scalar(&mut self, literal: bool) -> Scanned {
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        let start = self.cursor.mark.at;
        self.cursor.skip();
        let (keep, increment) = self.block_header()?;
        let mut indent = match increment {
            0 => 0,
            increment => usize::try_from(self.indent).unwrap_or_default() + increment,
        };
        let (mut text, mut first, mut more) = (String::new(), String::new(), String::new());
        let mut end = self.block_breaks(&mut indent, &mut more, start)?;
        let mut after_blank = false;
        while self.cursor.column() == indent && !self.cursor.at_end() {
            let blank = self.cursor.is_blank(0);
            if !literal && !after_blank && !blank && first.starts_with('\n') {
                if more.is_empty() {
                    text.push(' ');
                }
            } else {
                text.push_str(&first);
            }
            first.clear();
            text.push_str(&more);
            more.clear();
            after_blank = blank;
            while !self.cursor.is_breakz(0) {
                self.cursor.read(&mut text);
            }
            if self.cursor.at_end() {
                // kubectl reads lines, and ends each.
                first.push('\n');
            }
            self.cursor.read_line(&mut first);
            end = self.block_breaks(&mut indent, &mut more, start)?;
        }
        if keep != Some(false) {
            text.push_str(&first);
        }
        if keep == Some(true) {
            text.push_str(&more);
        }
        self.push(Kind::Scalar { value: Cow::Owned(text), plain: false }, start);
        if let Some(token) = self.tokens.back_mut() {
            token.end = end;
        }
        Ok(())
    }

    /// Whether ends of lines at the end are kept (`+`) or dropped (`-`), and by how much the text is indented.
    fn block_header(&mut self) -> Scanned<(Option<bool>, usize)> {
        let (mut keep, mut increment) = (None, 0);
        for _ in 0..2 {
            match self.cursor.byte(0) {
                sign @ (b'+' | b'-') if keep.is_none() => keep = Some(sign == b'+'),
                b'0' if increment == 0 => {
                    return self.fail("found an indentation indicator equal to 0 while scanning a block scalar");
                }
                digit @ b'1'..=b'9' if increment == 0 => increment = usize::from(digit - b'0'),
                _ => break,
            }
            self.cursor.skip();
        }
        while self.cursor.is_blank(0) {
            self.cursor.skip();
        }
        if self.cursor.byte(0) == b'#' {
            while !self.cursor.is_breakz(0) {
                self.cursor.skip();
            }
        }
        if !self.cursor.is_breakz(0) {
            return self.fail("did not find expected comment or line break while scanning a block scalar");
        }
        if self.cursor.is_break(0) {
            self.cursor.skip_line();
        }
        Ok((keep, increment))
    }

    /// Skips indentation and lines without text, and finds out the indentation if it is 0. Returns the end of the text.
    fn block_breaks(&mut self, indent: &mut usize, breaks: &mut String, start: usize) -> Scanned<usize> {
        let mut end = self.cursor.mark.at;
        let mut deepest = 0;
        loop {
            while (*indent == 0 || self.cursor.column() < *indent) && self.cursor.byte(0) == b' ' {
                self.cursor.skip();
            }
            deepest = deepest.max(self.cursor.column());
            if (*indent == 0 || self.cursor.column() < *indent) && self.cursor.byte(0) == b'\t' {
                let message = "found a tab character where an indentation space is expected".to_owned();
                return Err(Fault { message, offset: self.cursor.mark.at.max(start) });
            }
            if !self.cursor.is_break(0) {
                break;
            }
            self.cursor.read_line(breaks);
            end = self.cursor.mark.at;
        }
        if *indent == 0 {
            *indent = deepest.max(usize::try_from(self.indent + 1).unwrap_or_default()).max(1);
        }
        Ok(end)
    }

    pub(super) fn quoted(&mut self, single: bool) -> Scanned {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark.at;
        self.cursor.skip();
        let quote = if single { b'\'' } else { b'"' };
        let (mut text, mut gap) = (String::new(), Gap::default());
        loop {
            if self.cursor.is_document_mark(b'-') || self.cursor.is_document_mark(b'.') {
                return self.fail("found unexpected document indicator while scanning a quoted scalar");
            }
            if self.cursor.at_end() {
                let message = "found unexpected end of stream while scanning a quoted scalar".to_owned();
                return Err(Fault { message, offset: start });
            }
            while !self.cursor.is_blankz(0) {
                match self.cursor.byte(0) {
                    b'\'' if single && self.cursor.byte(1) == b'\'' => {
                        text.push('\'');
                        self.cursor.skip();
                        self.cursor.skip();
                    }
                    byte if byte == quote => break,
                    b'\\' if !single && self.cursor.is_break(1) => {
                        self.cursor.skip();
                        self.cursor.skip_line();
                        gap.folds = true;
                        break;
                    }
                    b'\\' if !single => text.push(self.escape()?),
                    _ => self.cursor.read(&mut text),
                }
            }
            if self.cursor.byte(0) == quote {
                break;
            }
            self.gap(&mut gap);
            gap.join(&mut text);
        }
        let end = self.cursor.mark.at;
        self.cursor.skip();
        let value = self.borrowed(text, start + 1, end);
        self.push(Kind::Scalar { value, plain: false }, start);
        Ok(())
    }

    /// White space and ends of lines.
    fn gap(&mut self, gap: &mut Gap) {
        while self.cursor.is_blank(0) || self.cursor.is_break(0) {
            self.gap_one(gap);
        }
    }

    fn gap_one(&mut self, gap: &mut Gap) {
        if self.cursor.is_blank(0) {
            if gap.folds {
                self.cursor.skip();
            } else {
                self.cursor.read(&mut gap.blanks);
            }
        } else if gap.folds {
            self.cursor.read_line(&mut gap.more);
        } else {
            gap.blanks.clear();
            self.cursor.read_line(&mut gap.first);
            gap.folds = true;
        }
    }

    fn escape(&mut self) -> Scanned<char> {
        let digits = match self.cursor.byte(1) {
            b'x' => 2,
            b'u' => 4,
            b'U' => 8,
            other => {
                let found = match other {
                    b'0' => '\0',
                    b'a' => '\x07',
                    b'b' => '\x08',
                    b't' | b'\t' => '\t',
                    b'n' => '\n',
                    b'v' => '\x0B',
                    b'f' => '\x0C',
                    b'r' => '\r',
                    b'e' => '\x1B',
                    b' ' => ' ',
                    b'"' => '"',
                    b'\'' => '\'',
                    b'\\' => '\\',
                    b'N' => '\u{85}',
                    b'_' => '\u{A0}',
                    b'L' => '\u{2028}',
                    b'P' => '\u{2029}',
                    _ => return self.fail("found unknown escape character while parsing a quoted scalar"),
                };
                self.cursor.skip();
                self.cursor.skip();
                return Ok(found);
            }
        };
        let mut value = 0_u32;
        for ahead in 2..2 + digits {
            let Some(digit) = char::from(self.cursor.byte(ahead)).to_digit(16) else {
                return self.fail("did not find expected hexdecimal number while parsing a quoted scalar");
            };
            value = value << 4 | digit;
        }
        let Some(found) = char::from_u32(value) else {
            return self
                .fail("found invalid Unicode character escape code: kubectl knows halves of characters in JSON only");
        };
        (0..digits + 2).for_each(|_| self.cursor.skip());
        Ok(found)
    }

    pub(super) fn plain(&mut self) -> Scanned {
        self.save_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark.at;
        let mut end = start;
        let least = usize::try_from(self.indent + 1).unwrap_or_default();
        let (mut text, mut gap) = (String::new(), Gap::default());
        loop {
            if self.cursor.is_document_mark(b'-') || self.cursor.is_document_mark(b'.') || self.cursor.byte(0) == b'#' {
                break;
            }
            while !self.cursor.is_blankz(0) && !self.ends_plain() {
                if gap.folds || !gap.blanks.is_empty() {
                    gap.join(&mut text);
                }
                self.cursor.read(&mut text);
                end = self.cursor.mark.at;
            }
            if !(self.cursor.is_blank(0) || self.cursor.is_break(0)) {
                break;
            }
            while self.cursor.is_blank(0) || self.cursor.is_break(0) {
                if gap.folds && self.cursor.column() < least && self.cursor.byte(0) == b'\t' {
                    return self.fail("found a tab character that violates indentation while scanning a plain scalar");
                }
                self.gap_one(&mut gap);
            }
            if self.flow_level == 0 && self.cursor.column() < least {
                break;
            }
        }
        let value = self.borrowed(text, start, end);
        self.push(Kind::Scalar { value, plain: true }, start);
        if let Some(token) = self.tokens.back_mut() {
            token.end = end;
        }
        if gap.folds {
            self.simple_key_allowed = true;
        }
        Ok(())
    }

    /// Whether a mark is here that ends a text without quotes. Within a flow, a colon ends it only before white space,
    /// as outside.
    fn ends_plain(&self) -> bool {
        match self.cursor.byte(0) {
            b':' => self.cursor.is_blankz(1),
            b',' | b'?' | b'[' | b']' | b'{' | b'}' => self.flow_level > 0,
            _ => false,
        }
    }
}
