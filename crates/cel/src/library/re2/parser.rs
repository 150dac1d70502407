//! A parser of RE2's syntax, a port of Go's `regexp/syntax/parse.go` with the flags of `regexp.Compile`. It produces
//! the HIR of `regex-syntax`. Groups do not capture, because CEL has no submatches.

use regex_syntax::hir::{Class, ClassUnicode, Hir, Look, Repetition};

use super::{
    class,
    lexer::{bracket_range, character_escape, counts, fail},
    tree::{Flags, Group, Node},
};

/// The most copies of one thing that nested repetitions may make.
const MAX_COPIES: u64 = 1000;
/// `maxHeight`: the deepest tree.
const MAX_HEIGHT: u32 = 1000;
/// `maxSize`: the most instructions, 128 MiB of 40 bytes each.
const MAX_SIZE: u64 = (128 << 20) / 40;
/// `maxRunes`: the most ends of ranges of characters, 128 MiB of 4 bytes each.
const MAX_RUNES: usize = (128 << 20) / 4;

struct Parser<'p> {
    whole: &'p str,
    flags: Flags,
    groups: Vec<Group>,
    runes: usize,
}

/// Parses a regular expression.
///
/// # Errors
/// Those of Go's `regexp.Compile`, word by word.
pub(super) fn parse(pattern: &str) -> Result<Hir, String> {
    let mut parser = Parser { whole: pattern, flags: Flags::default(), groups: vec![Group::default()], runes: 0 };
    let (mut rest, mut repeated) = (pattern, None);
    while let Some(c) = rest.chars().next() {
        let before = rest;
        (rest, repeated) = match c {
            '*' | '+' | '?' | '{' => match parser.repetition(before, repeated)? {
                Some(after) => (after, Some(before)),
                None => (parser.literal(c, before)?, None),
            },
            _ => (parser.item(c, before)?, None),
        };
    }
    match parser.groups.pop() {
        Some(group) if parser.groups.is_empty() => {
            let node = parser.limited(group.close())?;
            Ok(node.hir)
        }
        _ => fail("missing closing )", pattern),
    }
}

impl<'p> Parser<'p> {
    fn group(&mut self) -> &mut Group {
        if self.groups.is_empty() {
            self.groups.push(Group::default());
        }
        let last = self.groups.len() - 1;
        &mut self.groups[last]
    }

    fn limited(&self, node: Node) -> Result<Node, String> {
        if self.runes > MAX_RUNES || node.size > MAX_SIZE {
            return fail("expression too large", self.whole);
        }
        if node.height > MAX_HEIGHT {
            return fail("expression nests too deeply", self.whole);
        }
        Ok(node)
    }

    fn push(&mut self, node: Node) -> Result<(), String> {
        let node = self.limited(node)?;
        self.group().sequence.push(node);
        Ok(())
    }

    fn class(&mut self, class: ClassUnicode) -> Result<(), String> {
        self.runes += class.ranges().len() * 2;
        self.push(Node::leaf(Hir::class(Class::Unicode(class))))
    }

    /// A character that means itself, at the beginning of `text`; returns what is behind it.
    fn literal(&mut self, c: char, text: &'p str) -> Result<&'p str, String> {
        self.one(c)?;
        Ok(&text[c.len_utf8()..])
    }

    fn one(&mut self, c: char) -> Result<(), String> {
        let class = class::of(&[(c, c)]);
        self.class(if self.flags.fold_case { class::fold(&class) } else { class })
    }

    fn look(&mut self, look: Look) -> Result<(), String> {
        self.push(Node::leaf(Hir::look(look)))
    }

    /// Parses an item that begins with `c` and is not a repetition; returns the remaining text.
    fn item(&mut self, c: char, text: &'p str) -> Result<&'p str, String> {
        let rest = &text[c.len_utf8()..];
        match c {
            '(' if rest.starts_with('?') => return self.perl_group(text),
            '(' => self.open(true),
            '|' => self.group().alternative(),
            ')' => {
                if self.groups.len() < 2 {
                    return fail("unexpected )", self.whole);
                }
                let group = self.groups.pop().unwrap_or_default();
                self.flags = group.outside;
                let captures = group.captures;
                let mut node = group.close();
                if captures {
                    (node.size, node.height) = (node.size + 2, node.height + 1);
                }
                self.push(node)?;
            }
            '^' => self.look(if self.flags.multi_line { Look::StartLF } else { Look::Start })?,
            '$' => self.look(if self.flags.multi_line { Look::EndLF } else { Look::End })?,
            '.' => {
                let dot = if self.flags.dot_matches_newline {
                    class::any()
                } else {
                    class::of(&[('\0', '\t'), ('\x0b', char::MAX)])
                };
                self.push(Node::leaf(Hir::class(Class::Unicode(dot))))?;
            }
            '[' => return self.bracket(text),
            '\\' => return self.escape(text),
            c => return self.literal(c, text),
        }
        Ok(rest)
    }

    fn open(&mut self, captures: bool) {
        self.groups.push(Group { outside: self.flags, captures, ..Group::default() });
    }

    /// A repetition at the beginning of `text`; returns what is behind it, and nothing if the brace means itself.
    /// `previous` begins with the repetition that ends here, if one does.
    fn repetition(&mut self, text: &'p str, previous: Option<&'p str>) -> Result<Option<&'p str>, String> {
        let upto = |rest: &str| &text[..text.len() - rest.len()];
        let (min, max, mut rest) = match text.as_bytes()[0] {
            b'*' => (0, None, &text[1..]),
            b'+' => (1, None, &text[1..]),
            b'?' => (0, Some(1), &text[1..]),
            _ => {
                let Some((min, max, rest)) = counts(text) else { return Ok(None) };
                let valid = min <= 1000 && max.is_none_or(|max| (min..=1000).contains(&max));
                if !valid {
                    return fail("invalid repeat count", upto(rest));
                }
                (min, max, rest)
            }
        };
        let mut greedy = !self.flags.swap_greed;
        if let Some(after) = rest.strip_prefix('?') {
            rest = after;
            greedy = !greedy;
        }
        if let Some(previous) = previous {
            return fail("invalid nested repetition operator", &previous[..previous.len() - rest.len()]);
        }
        let Some(node) = self.group().sequence.pop() else {
            return fail("missing argument to repetition operator", upto(rest));
        };
        let counted = text.starts_with('{');
        let size = match (min, max) {
            (0, None) => 2 + node.size,
            // `+`, `?` and `{n,}`.
            (_, Some(1)) if !counted => 1 + node.size,
            (_, None) => 1 + u64::from(min) * node.size,
            (_, Some(max)) => (u64::from(max) * node.size + u64::from(max - min)).max(1),
        };
        let copies = match if counted { max.unwrap_or(min) } else { 1 } {
            0 if max == Some(0) => 1,
            count => node.copies * u64::from(count.max(1)),
        };
        let hir = Hir::repetition(Repetition { min, max, greedy, sub: Box::new(node.hir) });
        self.push(Node { hir, size, height: node.height + 1, copies })?;
        if copies > MAX_COPIES && (min >= 2 || max.is_some_and(|max| max >= 2)) {
            return fail("invalid repeat count", upto(rest));
        }
        Ok(Some(rest))
    }

    /// `(?flags)`, `(?flags:`, `(?P<name>` or `(?<name>` at the beginning of `text`.
    fn perl_group(&mut self, text: &'p str) -> Result<&'p str, String> {
        let name_at = if text.len() > 4 && text.starts_with("(?P<") {
            Some(4)
        } else {
            (text.len() > 3 && text.starts_with("(?<")).then_some(3)
        };
        if let Some(start) = name_at {
            let Some(end) = text.find('>') else { return fail("invalid named capture", text) };
            let name = &text[start..end];
            if name.is_empty() || !name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric()) {
                return fail("invalid named capture", &text[..=end]);
            }
            self.open(true);
            return Ok(&text[end + 1..]);
        }
        let (mut flags, mut on, mut any) = (self.flags, true, false);
        let mut rest = &text[2..];
        while let Some(c) = rest.chars().next() {
            rest = &rest[c.len_utf8()..];
            match c {
                'i' => flags.fold_case = on,
                'm' => flags.multi_line = on,
                's' => flags.dot_matches_newline = on,
                'U' => flags.swap_greed = on,
                '-' if on => on = false,
                ':' | ')' if on || any => {
                    if c == ':' {
                        self.open(false);
                    }
                    self.flags = flags;
                    return Ok(rest);
                }
                _ => break,
            }
            any = c != '-';
        }
        fail("invalid or unsupported Perl syntax", &text[..text.len() - rest.len()])
    }

    /// A backslash and what belongs to it, at the beginning of `text`.
    fn escape(&mut self, text: &'p str) -> Result<&'p str, String> {
        let letter = text[1..].chars().next();
        let look = match letter {
            Some('A') => Look::Start,
            Some('b') => Look::WordAscii,
            Some('B') => Look::WordAsciiNegate,
            Some('z') => Look::End,
            Some('C') => return fail("invalid escape sequence", &text[..2]),
            Some('Q') => {
                let (quoted, rest) = text[2..].split_once("\\E").unwrap_or((&text[2..], ""));
                for c in quoted.chars() {
                    self.one(c)?;
                }
                return Ok(rest);
            }
            _ => {
                if let Some((class, rest)) = self.class_escape(text)? {
                    self.class(class)?;
                    return Ok(rest);
                }
                let (c, rest) = character_escape(text)?;
                self.one_or_nothing(c)?;
                return Ok(rest);
            }
        };
        self.look(look)?;
        Ok(&text[2..])
    }

    /// A code point, which is not a character if it is a surrogate: no text has it.
    fn one_or_nothing(&mut self, c: u32) -> Result<(), String> {
        match char::from_u32(c) {
            Some(c) => self.one(c),
            None => self.push(Node::leaf(Hir::fail())),
        }
    }

    /// `\d`, `\pN`, `\p{Greek}` and the like, at the beginning of `text`.
    fn class_escape(&self, text: &'p str) -> Result<Option<(ClassUnicode, &'p str)>, String> {
        let Some(letter) = text.strip_prefix('\\').and_then(|rest| rest.chars().next()) else { return Ok(None) };
        let negate = |mut class: ClassUnicode, negated: bool| {
            if negated {
                class.negate();
            }
            class
        };
        let fold_case = self.flags.fold_case;
        if let Some(class) = class::perl(letter.to_ascii_lowercase()) {
            let class = if fold_case { class::fold(&class) } else { class };
            return Ok(Some((negate(class, letter.is_ascii_uppercase()), &text[2..])));
        }
        if !matches!(letter, 'p' | 'P') {
            return Ok(None);
        }
        let first = text[2..].chars().next();
        let (sequence, name) = if first == Some('{') {
            let Some(end) = text.find('}') else { return fail("invalid character class range", text) };
            (&text[..=end], &text[3..end])
        } else {
            let end = 2 + first.map_or(0, char::len_utf8);
            (&text[..end], &text[2..end])
        };
        let (name, inner) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
        match class::unicode(name, fold_case) {
            Some(class) => Ok(Some((negate(class, inner != (letter == 'P')), &text[sequence.len()..]))),
            None => fail("invalid character class range", sequence),
        }
    }

    /// `[...]` at the beginning of `text`.
    fn bracket(&mut self, text: &'p str) -> Result<&'p str, String> {
        let mut rest = &text[1..];
        let negated = rest.starts_with('^');
        if negated {
            rest = &rest[1..];
        }
        let mut found = ClassUnicode::empty();
        let mut first = true;
        while first || !rest.starts_with(']') {
            first = false;
            if rest.len() > 2
                && rest.starts_with("[:")
                && let Some(end) = rest[2..].find(":]")
            {
                let name = &rest[2..2 + end];
                let (name, inner) = name.strip_prefix('^').map_or((name, false), |name| (name, true));
                let Some(class) = class::posix(name) else {
                    return fail("invalid character class range", &rest[..end + 4]);
                };
                let mut class = if self.flags.fold_case { class::fold(&class) } else { class };
                if inner {
                    class.negate();
                }
                found.union(&class);
                rest = &rest[end + 4..];
                continue;
            }
            if let Some((class, after)) = self.class_escape(rest)? {
                found.union(&class);
                rest = after;
                continue;
            }
            let (range, after) = bracket_range(rest, text)?;
            if let Some(range) = range {
                let class = ClassUnicode::new([range]);
                found.union(&if self.flags.fold_case { class::fold(&class) } else { class });
            }
            rest = after;
        }
        if negated {
            found.negate();
        }
        self.class(found)?;
        Ok(&rest[1..])
    }
}
