//! Source text to tokens, as the lexer rules of cel-go's `parser/gen/CEL.g4`: the longest match wins; text that matches
//! no rule is reported and skipped.

use crate::{
    ast::Position,
    issue::{Issue, IssueKind},
};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An operator or bracket, by its text; also `in`, `true`, `false` and `null`.
    Fixed(&'static str),
    /// A name.
    Ident,
    /// A name in backticks.
    Escaped,
    Int,
    Uint,
    Double,
    String,
    Bytes,
    End,
}

/// A token and where it is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token<'a> {
    pub kind: Kind,
    pub text: &'a str,
    /// Where it begins in the source, in bytes.
    pub start: usize,
    pub position: Position,
}

/// Longer ones first.
const FIXED: &[&str] = &[
    "==", "!=", "<=", ">=", "&&", "||", "<", ">", "[", "]", "{", "}", "(", ")", ".", ",", "-", "!", "?", ":", "+", "*",
    "/", "%",
];
const KEYWORDS: &[&str] = &["in", "true", "false", "null"];

/// All tokens, with an end token, and the issues for text that is not a token. Names in backticks are tokens if `escaped`.
pub(crate) fn tokens(source: &str, escaped: bool) -> (Vec<Token<'_>>, Vec<Issue>) {
    let (mut tokens, mut issues) = (Vec::with_capacity(source.len() / 3 + 1), Vec::new());
    let mut rest = source;
    let mut position = Position { line: 1, column: 1 };
    while !rest.is_empty() {
        let length = match scan(rest, escaped) {
            Scan::Token(kind, length) => {
                tokens.push(Token { kind, text: &rest[..length], start: source.len() - rest.len(), position });
                length
            }
            Scan::Hidden(length) => length,
            Scan::Error(at) => {
                // What was read up to the character that fits nothing, which is lost too.
                let length = at + rest[at..].chars().next().map_or(0, char::len_utf8);
                let message = format!("Syntax error: token recognition error at: '{}'", escape(&rest[..length]));
                issues.push(Issue::new(IssueKind::Syntax, position, message));
                length
            }
        };
        advance(&mut position, &rest[..length]);
        rest = &rest[length..];
    }
    if source.is_empty() {
        // cel-go counts the end of nothing so.
        position.column = 0;
    }
    tokens.push(Token { kind: Kind::End, text: "<EOF>", start: source.len(), position });
    (tokens, issues)
}

/// White space as ANTLR prints it in messages.
pub(crate) fn escape(text: &str) -> String {
    text.replace('\t', "\\t").replace('\n', "\\n").replace('\r', "\\r")
}

fn advance(position: &mut Position, text: &str) {
    for c in text.chars() {
        if c == '\n' {
            *position = Position { line: position.line + 1, column: 1 };
        } else {
            position.column += 1;
        }
    }
}

enum Scan {
    Token(Kind, usize),
    /// White space or a comment.
    Hidden(usize),
    /// The byte at which no rule can go on.
    Error(usize),
}

fn scan(text: &str, escaped: bool) -> Scan {
    let bytes = text.as_bytes();
    let first = bytes[0];
    match first {
        b' ' | b'\t' | b'\r' | b'\n' | 0x0c => {
            Scan::Hidden(run(bytes, 0, |b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | 0x0c)))
        }
        b'/' if bytes.get(1) == Some(&b'/') => Scan::Hidden(run(bytes, 2, |b| b != b'\n')),
        b'"' | b'\'' => match string(bytes, 0, false) {
            Ok(end) => Scan::Token(Kind::String, end),
            Err(at) => Scan::Error(at),
        },
        b'`' if escaped => {
            let end = run(bytes, 1, |b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-' | b'/' | b' '));
            if end > 1 && bytes.get(end) == Some(&b'`') {
                Scan::Token(Kind::Escaped, end + 1)
            } else {
                Scan::Error(end)
            }
        }
        b'0'..=b'9' => number(bytes),
        b'.' if bytes.get(1).is_some_and(u8::is_ascii_digit) => number(bytes),
        b'A'..=b'Z' | b'a'..=b'z' | b'_' => prefixed_string(bytes).unwrap_or_else(|| {
            let end = run(bytes, 0, |b| b.is_ascii_alphanumeric() || b == b'_');
            let keyword = KEYWORDS.iter().find(|keyword| **keyword == &text[..end]);
            Scan::Token(keyword.map_or(Kind::Ident, |keyword| Kind::Fixed(keyword)), end)
        }),
        _ => match FIXED.iter().find(|fixed| text.starts_with(**fixed)) {
            Some(fixed) => Scan::Token(Kind::Fixed(fixed), fixed.len()),
            // These begin an operator of two characters.
            None if matches!(first, b'=' | b'&' | b'|') => Scan::Error(1),
            None => Scan::Error(0),
        },
    }
}

/// The end of the bytes from `start` on that satisfy `accept`.
fn run(bytes: &[u8], start: usize, accept: impl Fn(u8) -> bool) -> usize {
    bytes[start..].iter().position(|b| !accept(*b)).map_or(bytes.len(), |found| start + found)
}

fn number(bytes: &[u8]) -> Scan {
    if bytes.starts_with(b"0x") && bytes.get(2).is_some_and(u8::is_ascii_hexdigit) {
        return integer(bytes, run(bytes, 2, |b| b.is_ascii_hexdigit()));
    }
    let digits = |from| run(bytes, from, |b: u8| b.is_ascii_digit());
    let whole = digits(0);
    let mut end = whole;
    if bytes.get(end) == Some(&b'.') && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        end = digits(end + 1);
    }
    if matches!(bytes.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        if bytes.get(end + 1 + sign).is_some_and(u8::is_ascii_digit) {
            end = digits(end + 1 + sign);
        }
    }
    if end > whole { Scan::Token(Kind::Double, end) } else { integer(bytes, whole) }
}

fn integer(bytes: &[u8], end: usize) -> Scan {
    if matches!(bytes.get(end), Some(b'u' | b'U')) {
        Scan::Token(Kind::Uint, end + 1)
    } else {
        Scan::Token(Kind::Int, end)
    }
}

/// `r'..'`, `b'..'` and `br'..'`; if it does not end, the prefix is a name.
fn prefixed_string(bytes: &[u8]) -> Option<Scan> {
    let b = usize::from(matches!(bytes[0], b'b' | b'B'));
    let r = usize::from(matches!(bytes.get(b), Some(b'r' | b'R')));
    matches!(bytes.get(b + r), Some(b'"' | b'\'')).then_some(())?;
    let end = string(bytes, b + r, r == 1).ok()?;
    Some(Scan::Token(if b == 1 { Kind::Bytes } else { Kind::String }, end))
}

/// The end of the string whose quote is at `start`, or where it breaks.
fn string(bytes: &[u8], start: usize, raw: bool) -> Result<usize, usize> {
    let quote = bytes[start];
    let triple = [quote; 3];
    if bytes[start..].starts_with(&triple) {
        let mut at = start + 3;
        while at < bytes.len() {
            if bytes[at..].starts_with(&triple) {
                return Ok(at + 3);
            }
            match step(bytes, at, raw) {
                Ok(next) => at = next,
                Err(_) => break,
            }
        }
        // Two of the three quotes are an empty string.
        return Ok(start + 2);
    }
    let mut at = start + 1;
    loop {
        match bytes.get(at) {
            None | Some(b'\n' | b'\r') => return Err(at),
            Some(b) if *b == quote => return Ok(at + 1),
            Some(_) => at = step(bytes, at, raw)?,
        }
    }
}

/// The end of the byte or escape sequence at `at`, or where the sequence breaks.
fn step(bytes: &[u8], at: usize, raw: bool) -> Result<usize, usize> {
    if raw || bytes[at] != b'\\' {
        return Ok(at + 1);
    }
    let sequence = |count: usize, accept: fn(&u8) -> bool| {
        let end = at + 2 + count;
        (at + 2..end).find(|i| !bytes.get(*i).is_some_and(accept)).map_or(Ok(end), Err)
    };
    match bytes.get(at + 1) {
        Some(b'a' | b'b' | b'f' | b'n' | b'r' | b't' | b'v' | b'"' | b'\'' | b'\\' | b'?' | b'`') => Ok(at + 2),
        Some(b'0'..=b'3') => sequence(2, |b| matches!(b, b'0'..=b'7')),
        Some(b'x' | b'X') => sequence(2, u8::is_ascii_hexdigit),
        Some(b'u') => sequence(4, u8::is_ascii_hexdigit),
        Some(b'U') => sequence(8, u8::is_ascii_hexdigit),
        _ => Err(at + 1),
    }
}
