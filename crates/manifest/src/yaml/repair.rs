//! Repairs of text that kubectl's reader accepts and the parser does not.
//!
//! `go.yaml.in/yaml/v2` is a libyaml, of YAML 1.1: it ignores indentation within quotes. The parser is of YAML 1.2.
//! Where it stops at such a place, and only there, this module spells the text differently, without changing its
//! meaning, and has it read again. It remembers its edits, so that places stay those of the file.

use std::{borrow::Cow, ops::Range};

use granit_parser::{ErrorKind, ScanError};

/// The most bytes to read again because of repairs: far more than files of other tools need, and a second of a
/// processor for hostile files.
const MAX_REREAD: usize = 64 << 20;
/// More indentation than any file has.
const MAX_INDENT: usize = 4096;

/// A text with its repairs.
#[derive(Debug)]
pub(super) struct Repaired<'a> {
    pub text: Cow<'a, str>,
    json: bool,
    /// The edits, in order.
    edits: Vec<Edit>,
    indent: Option<usize>,
    reread: usize,
    /// The end of the repaired part.
    done: usize,
}

/// An edit: its place in the repaired text and in the original, and its length in both.
#[derive(Debug)]
struct Edit {
    at: usize,
    original: usize,
    now: usize,
    before: usize,
}

impl<'a> Repaired<'a> {
    pub fn new(text: &'a str, json: bool) -> Self {
        let mut repaired = Self { text: text.into(), json, edits: Vec::new(), indent: None, reread: 0, done: 0 };
        // kubectl treats it as the end of a line everywhere.
        if !json && text.contains('\u{85}') {
            let mut prepared = String::with_capacity(text.len());
            for (original, c) in text.char_indices() {
                if c == '\u{85}' {
                    repaired.edits.push(Edit { at: prepared.len(), original, now: 1, before: c.len_utf8() });
                    prepared.push('\n');
                } else {
                    prepared.push(c);
                }
            }
            repaired.text = prepared.into();
        }
        repaired
    }

    /// Whether there are no repairs.
    pub fn is_as_it_was(&self) -> bool {
        self.edits.is_empty()
    }

    /// The place in the original text.
    pub fn original(&self, offset: usize) -> usize {
        let last = self.edits.partition_point(|edit| edit.at < offset).checked_sub(1);
        match last.map(|last| &self.edits[last]) {
            None => offset,
            // Within an edit.
            Some(edit) if offset - edit.at < edit.now => edit.original,
            Some(edit) => edit.original + edit.before + (offset - edit.at - edit.now),
        }
    }

    /// Spells the place of an error differently. False if no repair is known.
    pub fn repair(&mut self, error: &ScanError) -> bool {
        self.reread += self.text.len();
        let Some(offset) = error.marker().byte_offset() else { return false };
        if self.reread > MAX_REREAD {
            return false;
        }
        match error.kind() {
            // Indentation within quotes is not a part of the text.
            ErrorKind::InvalidQuotedScalarIndent | ErrorKind::TabInIndentation if !self.ends_document(offset) => {
                let indent = self.indent();
                indent <= MAX_INDENT && self.put(offset..offset, &" ".repeat(indent))
            }
            // Nor is it within a flow. (In a block, tabs are refused later on.)
            ErrorKind::TabInBlockIndentation => {
                let indent = self.indent();
                let line = self.text[..offset].rfind(['\n', '\r']).map_or(0, |end| end + 1);
                indent <= MAX_INDENT && self.put(line..line, &" ".repeat(indent))
            }
            // A comment may follow at once where a text or a mark ends by itself.
            ErrorKind::CommentNotSeparated => self.put(offset..offset, " "),
            // An apostrophe may be escaped although it need not be.
            ErrorKind::UnknownQuotedScalarEscape if !self.json => {
                let found = escapes(&self.text, offset).find(|at| self.text[*at..].starts_with("\\'"));
                found.is_some_and(|at| self.put(at..at + 2, "\\x27"))
            }
            // Go reads half of a surrogate pair as a replacement character.
            ErrorKind::InvalidLowSurrogateHexEscape
            | ErrorKind::InvalidLowSurrogate
            | ErrorKind::MissingLowSurrogate
            | ErrorKind::UnpairedLowSurrogate
                if self.json =>
            {
                let found = lone_surrogate(&self.text, offset);
                found.is_some_and(|at| self.put(at..at + 6, "\\ufffd"))
            }
            // JSON has fewer characters that must be escaped.
            ErrorKind::UnexpectedCharacter { character } if self.json && *character >= '\x7f' => {
                let found = self.text[offset..].find(*character).map(|at| offset + at);
                let escaped = format!("\\u{:04x}", u32::from(*character));
                found.is_some_and(|at| self.put(at..at + character.len_utf8(), &escaped))
            }
            _ => false,
        }
    }

    /// Whether a line begins here that ends a document, within quotes too.
    fn ends_document(&self, offset: usize) -> bool {
        let (before, after) = self.text.split_at(offset);
        (before.is_empty() || before.ends_with(['\n', '\r'])) && (after.starts_with("---") || after.starts_with("..."))
    }

    fn put(&mut self, range: Range<usize>, text: &str) -> bool {
        // Repairs go forward. A repair that did not help is not repeated.
        if range.start < self.done || self.text.get(range.clone()).is_none() {
            return false;
        }
        self.done = range.start + text.len();
        let place = self.edits.partition_point(|edit| edit.at < range.start);
        let edit = Edit { at: range.start, original: self.original(range.start), now: text.len(), before: range.len() };
        for later in &mut self.edits[place..] {
            later.at = later.at + text.len() - range.len();
        }
        self.edits.insert(place, edit);
        self.text.to_mut().replace_range(range, text);
        true
    }

    /// More than anything in the text is indented by: what may stand before the first key of a line, and one more.
    fn indent(&mut self) -> usize {
        let text = &self.text;
        *self.indent.get_or_insert_with(|| {
            let lead = |line: &str| line.len() - line.trim_start_matches([' ', '\t', '-', '?', ':']).len();
            text.split(['\n', '\r']).map(lead).max().unwrap_or_default() + 1
        })
    }
}

/// Where the escapes begin in the double-quoted text that begins at a byte.
pub(super) fn escapes(text: &str, start: usize) -> impl Iterator<Item = usize> {
    let mut at = start + usize::from(text[start..].starts_with('"'));
    std::iter::from_fn(move || {
        let found = at + text.get(at..)?.find(['\\', '"'])?;
        if text[found..].starts_with('"') {
            return None;
        }
        at = found + 1 + text[found + 1..].chars().next().map_or(0, char::len_utf8);
        Some(found)
    })
}

/// The first escape in such a text that is half of a surrogate pair, without the other half.
fn lone_surrogate(text: &str, start: usize) -> Option<usize> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    };
    let mut second = None;
    escapes(text, start).find(|&at| {
        let found = unit(at).unwrap_or_default();
        if second == Some(at) || !(0xd800..0xe000).contains(&found) {
            return false;
        }
        let pair = found < 0xdc00 && unit(at + 6).is_some_and(|next| (0xdc00..0xe000).contains(&next));
        if pair {
            second = Some(at + 6);
        }
        !pair
    })
}
