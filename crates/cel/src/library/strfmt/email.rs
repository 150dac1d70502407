//! Addresses of mail as Go reads them (`net/mail`, `ParseAddress`).

use super::{base64::decode_base64, network::is_ip};

/// Why a text is no address; which does not matter.
struct Malformed;

/// Whether a text is one address: `a@b`, `Name <a@b>`, or a group of one, each with comments.
pub(super) fn is_email(text: &str) -> bool {
    let mut parser = Parser(text);
    parser.address(true).is_ok_and(|count| count == 1) && parser.skip_comments().is_ok() && parser.0.is_empty()
}

struct Parser<'t>(&'t str);

fn is_visible(c: char) -> bool {
    ('!'..='~').contains(&c) || !c.is_ascii()
}

fn is_atom(c: char) -> bool {
    is_visible(c) && !"()<>[]:;@\\,\"".contains(c)
}

/// An encoded word, which is to be decoded: Go knows few character sets.
fn encoded(word: &str) -> Result<bool, Malformed> {
    let inner = word.strip_prefix("=?").and_then(|word| word.strip_suffix("?="));
    let Some(inner) = inner.filter(|_| word.len() >= 8 && word.matches('?').count() == 4) else { return Ok(false) };
    let Some((charset, rest)) = inner.split_once('?') else { return Ok(false) };
    let Some((encoding, text)) = rest.split_once('?') else { return Ok(false) };
    let decodes = match encoding {
        "B" | "b" => decode_base64(text).is_ok(),
        "Q" | "q" => is_quoted_printable(text.as_bytes()),
        _ => false,
    };
    if charset.is_empty() || !decodes {
        return Ok(false);
    }
    let known = ["utf-8", "iso-8859-1", "us-ascii"];
    if known.iter().any(|name| name.eq_ignore_ascii_case(&folded(charset))) { Ok(true) } else { Err(Malformed) }
}

/// Go compares regardless of case in the sense of Unicode: two letters beyond ASCII are the same as one of ASCII.
fn folded(text: &str) -> String {
    text.replace('\u{17f}', "s").replace('\u{212a}', "k")
}

fn is_quoted_printable(mut text: &[u8]) -> bool {
    loop {
        text = match text {
            [] => return true,
            [b'=', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => rest,
            [b'=', ..] => return false,
            [b' '..=b'~' | b'\n' | b'\r' | b'\t', rest @ ..] => rest,
            _ => return false,
        };
    }
}

impl Parser<'_> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn consume(&mut self, c: char) -> bool {
        self.0.strip_prefix(c).map(|rest| self.0 = rest).is_some()
    }

    /// White space and comments.
    fn skip_comments(&mut self) -> Result<(), Malformed> {
        self.skip_space();
        while self.consume('(') {
            self.comment()?;
            self.skip_space();
        }
        Ok(())
    }

    /// A comment, behind its parenthesis.
    fn comment(&mut self) -> Result<String, Malformed> {
        let (mut depth, mut text) = (1, String::new());
        let mut chars = self.0.chars();
        while depth > 0 {
            let mut c = chars.next().ok_or(Malformed)?;
            match c {
                '\\' => c = chars.next().unwrap_or(c),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth > 0 {
                text.push(c);
            }
        }
        self.0 = chars.as_str();
        Ok(text)
    }

    /// An address, or a group of some; how many.
    fn address(&mut self, group: bool) -> Result<usize, Malformed> {
        self.skip_space();
        if self.0.is_empty() {
            return Err(Malformed);
        }
        let before = self.0;
        if self.spec().is_ok() {
            self.skip_space();
            if self.consume('(') {
                let comment = self.comment()?;
                for word in comment.split([' ', '\t']) {
                    encoded(word)?;
                }
            }
            return Ok(1);
        }
        self.0 = before;
        if !self.0.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if group && self.consume(':') {
            return self.group();
        }
        if !self.consume('<') {
            return Err(Malformed);
        }
        self.spec()?;
        if self.consume('>') { Ok(1) } else { Err(Malformed) }
    }

    /// The addresses of a group, behind its colon.
    fn group(&mut self) -> Result<usize, Malformed> {
        self.skip_space();
        let mut count = 0;
        if !self.consume(';') {
            loop {
                self.skip_space();
                count += self.address(false)?;
                self.skip_comments()?;
                if self.consume(';') {
                    break;
                }
                if !self.consume(',') {
                    return Err(Malformed);
                }
            }
        }
        self.skip_comments()?;
        Ok(count)
    }

    /// `local@domain`.
    fn spec(&mut self) -> Result<(), Malformed> {
        self.skip_space();
        if self.0.starts_with('"') {
            if self.quoted()? {
                return Err(Malformed);
            }
        } else {
            self.atom(false)?;
        }
        if !self.consume('@') {
            return Err(Malformed);
        }
        self.skip_space();
        if !self.consume('[') {
            return self.atom(false).map(drop);
        }
        let end = self.0.find(|c: char| matches!(c, '[' | ']' | '\\') || !is_visible(c)).ok_or(Malformed)?;
        let (literal, rest) = self.0.split_at(end);
        self.0 = rest;
        if self.consume(']') && is_ip(literal) { Ok(()) } else { Err(Malformed) }
    }

    /// Reads words before an address. It returns no error after the first word: the caller checks the remaining text.
    fn phrase(&mut self) -> Result<(), Malformed> {
        let (mut words, mut pending) = (0, false);
        let result = loop {
            if words > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            if self.0.is_empty() {
                break Ok(());
            }
            let is_encoded =
                if self.0.starts_with('"') { self.quoted().map(|_| false) } else { self.atom(true).and_then(encoded) };
            match is_encoded {
                Err(wrong) => break Err(wrong),
                // Encoded words that follow each other are one.
                Ok(true) => pending = true,
                Ok(false) => {
                    words += 1 + usize::from(pending);
                    pending = false;
                }
            }
        };
        if words > 0 || pending { Ok(()) } else { result }
    }

    /// A text in quotes; whether it is empty.
    fn quoted(&mut self) -> Result<bool, Malformed> {
        let mut chars = self.0.chars();
        chars.next();
        let mut is_empty = true;
        loop {
            match chars.next().ok_or(Malformed)? {
                '"' => break,
                '\\' => {
                    chars.next().filter(|c| is_visible(*c) || matches!(c, ' ' | '\t')).ok_or(Malformed)?;
                }
                c if is_visible(c) || matches!(c, ' ' | '\t') => {}
                _ => return Err(Malformed),
            }
            is_empty = false;
        }
        self.0 = chars.as_str();
        Ok(is_empty)
    }

    /// Letters, digits and dots; in a phrase dots may be anywhere.
    fn atom(&mut self, permissive: bool) -> Result<&str, Malformed> {
        let end = self.0.find(|c| !is_atom(c)).unwrap_or(self.0.len());
        let (atom, rest) = self.0.split_at(end);
        if atom.is_empty() {
            return Err(Malformed);
        }
        self.0 = rest;
        if !permissive && (atom.starts_with('.') || atom.ends_with('.') || atom.contains("..")) {
            return Err(Malformed);
        }
        Ok(atom)
    }
}
