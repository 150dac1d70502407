//! The tokens of a document: a port of the scanner of `go.yaml.in/yaml/v2` (`scannerc.go`), a libyaml.
//!
//! It keeps that scanner's decisions, also where YAML says otherwise: which text kubectl reads depends on them.

mod cursor;
mod flow;
mod key;
mod property;
mod scalar;

use std::{
    borrow::Cow,
    collections::{BTreeMap, VecDeque},
};

use cursor::Cursor;
pub(super) use cursor::Mark;
use key::SimpleKey;

use super::Fault;

/// A token, and its bytes.
#[derive(Clone, Debug)]
pub(super) struct Token<'a> {
    pub kind: Kind<'a>,
    pub start: usize,
    pub end: usize,
}

/// The kind of a token.
#[derive(Clone, Debug)]
pub(super) enum Kind<'a> {
    StreamEnd,
    Version(u8, u8),
    TagDirective { handle: String, prefix: String },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(&'a str),
    Anchor(&'a str),
    Tag { handle: String, suffix: String },
    Scalar { value: Cow<'a, str>, plain: bool },
}

/// Splits a document into tokens, as many as are asked for.
pub(super) struct Scanner<'a> {
    cursor: Cursor<'a>,
    tokens: VecDeque<Token<'a>>,
    /// How many tokens the parser has taken.
    parsed: isize,
    flow_level: usize,
    /// The column of the current block; -1 outside of all.
    indent: isize,
    indents: Vec<isize>,
    simple_key_allowed: bool,
    /// The token that may be a key, for each level of flow.
    simple_keys: Vec<SimpleKey>,
    /// The level by the number of the token that may be a key.
    by_token: BTreeMap<isize, usize>,
}

type Scanned<T = ()> = Result<T, Fault>;

impl<'a> Scanner<'a> {
    pub fn new(text: &'a str) -> Self {
        Self {
            cursor: Cursor::new(text),
            tokens: VecDeque::new(),
            // The token of the beginning.
            parsed: 1,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            simple_key_allowed: true,
            simple_keys: vec![SimpleKey::default()],
            by_token: BTreeMap::new(),
        }
    }

    /// The next token, which stays.
    pub fn peek(&mut self) -> Scanned<&Token<'a>> {
        // A token that may be a key is not known to be one before what follows is read.
        while self.tokens.is_empty() || self.may_become_key()? {
            self.fetch()?;
        }
        Ok(&self.tokens[0])
    }

    /// Takes the token that was peeked at.
    pub fn take(&mut self) -> Scanned<Token<'a>> {
        self.peek()?;
        self.parsed += 1;
        let at = self.cursor.mark.at;
        self.tokens.pop_front().ok_or_else(|| Fault { message: "no token".to_owned(), offset: at })
    }

    fn fail<T>(&self, message: &str) -> Scanned<T> {
        Err(Fault { message: message.to_owned(), offset: self.cursor.mark.at })
    }

    fn fetch(&mut self) -> Scanned {
        self.skip_to_next_token();
        let column = self.cursor.column();
        self.unroll_indent(column);
        if self.cursor.at_end() {
            return self.stream_end();
        }
        let (byte, next) = (self.cursor.byte(0), self.cursor.byte(1));
        let in_flow = self.flow_level > 0;
        let before_blank = self.cursor.is_blankz(1);
        match byte {
            b'%' if column == 0 => self.directive(),
            b'-' if self.cursor.is_document_mark(b'-') => self.document_mark(Kind::DocumentStart),
            b'.' if self.cursor.is_document_mark(b'.') => self.document_mark(Kind::DocumentEnd),
            b'[' => self.flow_start(Kind::FlowSequenceStart),
            b'{' => self.flow_start(Kind::FlowMappingStart),
            b']' => self.flow_end(Kind::FlowSequenceEnd),
            b'}' => self.flow_end(Kind::FlowMappingEnd),
            b',' => self.flow_entry(),
            b'-' if before_blank => self.block_entry(),
            b'?' if in_flow || before_blank => self.key(),
            b':' if in_flow || before_blank => self.value(),
            b'*' => self.anchor(true),
            b'&' => self.anchor(false),
            b'!' => self.tag(),
            b'|' if !in_flow => self.block_scalar(true),
            b'>' if !in_flow => self.block_scalar(false),
            b'\'' => self.quoted(true),
            b'"' => self.quoted(false),
            b'-' if !matches!(next, b' ' | b'\t') => self.plain(),
            b'?' | b':' if !in_flow => self.plain(),
            b'\t' => self.fail("found character that cannot start any token: kubectl takes no tab for indentation"),
            b'-' | b'?' | b':' | b'#' | b'|' | b'>' | b'%' | b'@' | b'`' => {
                self.fail("found character that cannot start any token")
            }
            _ => self.plain(),
        }
    }

    /// Skips white space and comments.
    fn skip_to_next_token(&mut self) {
        loop {
            while self.cursor.byte(0) == b' '
                || (self.cursor.byte(0) == b'\t' && (self.flow_level > 0 || !self.simple_key_allowed))
            {
                self.cursor.skip();
            }
            if self.cursor.byte(0) == b'#' {
                while !self.cursor.is_breakz(0) {
                    self.cursor.skip();
                }
            }
            if !self.cursor.is_break(0) {
                return;
            }
            self.cursor.skip_line();
            if self.flow_level == 0 {
                self.simple_key_allowed = true;
            }
        }
    }

    fn push(&mut self, kind: Kind<'a>, start: usize) {
        let end = self.cursor.mark.at;
        self.tokens.push_back(Token { kind, start, end });
    }

    /// Puts a token of no width at a place in the queue; at its end if the place is gone.
    fn insert(&mut self, place: Option<isize>, kind: Kind<'a>, at: usize) {
        let token = Token { kind, start: at, end: at };
        match place.and_then(|place| usize::try_from(place).ok()).filter(|place| *place <= self.tokens.len()) {
            Some(place) => self.tokens.insert(place, token),
            None => self.tokens.push_back(token),
        }
    }

    /// Begins a block if the column is deeper; `number` is that of the token that it begins with, if it is read already.
    fn roll_indent(&mut self, column: usize, number: Option<isize>, kind: Kind<'a>, at: usize) {
        let column = column.cast_signed();
        if self.flow_level > 0 || self.indent >= column {
            return;
        }
        self.indents.push(self.indent);
        self.indent = column;
        let place = number.map(|number| number - self.parsed);
        self.insert(place, kind, at);
    }

    fn unroll_indent(&mut self, column: usize) {
        self.unroll_to(column.cast_signed());
    }

    fn unroll_to(&mut self, column: isize) {
        while self.flow_level == 0 && self.indent > column {
            let at = self.cursor.mark.at;
            self.insert(None, Kind::BlockEnd, at);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    fn stream_end(&mut self) -> Scanned {
        self.cursor.force_line();
        self.unroll_to(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        self.push(Kind::StreamEnd, self.cursor.mark.at);
        Ok(())
    }

    fn document_mark(&mut self, kind: Kind<'a>) -> Scanned {
        self.unroll_to(-1);
        self.remove_simple_key()?;
        self.simple_key_allowed = false;
        let start = self.cursor.mark.at;
        (0..3).for_each(|_| self.cursor.skip());
        self.push(kind, start);
        Ok(())
    }

    fn block_entry(&mut self) -> Scanned {
        // Within a flow, the parser refuses it.
        if self.flow_level == 0 {
            if !self.simple_key_allowed {
                return self.fail("block sequence entries are not allowed in this context");
            }
            self.roll_indent(self.cursor.column(), None, Kind::BlockSequenceStart, self.cursor.mark.at);
        }
        self.remove_simple_key()?;
        self.simple_key_allowed = true;
        self.one(Kind::BlockEntry);
        Ok(())
    }

    /// A token of one character.
    fn one(&mut self, kind: Kind<'a>) {
        let start = self.cursor.mark.at;
        self.cursor.skip();
        self.push(kind, start);
    }
}
