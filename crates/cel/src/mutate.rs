//! Mutants of an expression: copies with one small error each, to find out whether tests would notice it.
//!
//! They are edits of the text, so that reports can show an author the error. Some do not compile, as
//! [`Environment::compile`](crate::Environment::compile) shows; some mean the same as the original, which no program
//! can decide.

use std::ops::Range;

use crate::{
    Position,
    parse::lexer::{self, Kind, Token},
};

/// One edit of an expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// Where it begins.
    pub position: Position,
    /// The bytes that are replaced.
    pub range: Range<usize>,
    /// The replacement for these bytes.
    pub replacement: String,
    /// The edit in words.
    pub description: String,
}

impl Mutant {
    /// The expression with the edit.
    ///
    /// # Panics
    /// If `source` is not the expression that the mutant was made of.
    pub fn apply(&self, source: &str) -> String {
        [&source[..self.range.start], &self.replacement, &source[self.range.end..]].concat()
    }
}

/// All mutants of an expression, by position. An expression that is not well-formed may have some that make no sense.
pub fn mutants(source: &str) -> Vec<Mutant> {
    let (mut tokens, _) = lexer::tokens(source, true);
    tokens.pop();
    let mut maker = Maker { source, closes: closes(&tokens), tokens, found: Vec::new() };
    for index in 0..maker.tokens.len() {
        maker.token(index);
    }
    maker.expression(0..maker.tokens.len(), true);
    let mut found = maker.found;
    found.sort_by_key(|mutant| (mutant.range.start, mutant.range.end));
    found.dedup();
    found
}

/// Operators, and what is written in their stead.
const OPERATORS: &[(&str, &str)] =
    &[("<", "<="), ("<=", "<"), (">", ">="), (">=", ">"), ("==", "!="), ("!=", "=="), ("&&", "||"), ("||", "&&")];

/// Functions of a receiver, and what is called in their stead.
const METHODS: &[(&str, &str)] = &[
    ("all", "exists"),
    ("exists", "all"),
    ("exists_one", "exists"),
    ("existsOne", "exists"),
    ("startsWith", "endsWith"),
    ("endsWith", "startsWith"),
];

/// Macros whose last argument is asked of each element.
const PREDICATES: &[&str] = &["all", "exists", "exists_one", "existsOne", "filter"];

struct Maker<'a> {
    source: &'a str,
    tokens: Vec<Token<'a>>,
    /// For each opening bracket the token that closes it, or the end.
    closes: Vec<usize>,
    found: Vec<Mutant>,
}

fn closes(tokens: &[Token<'_>]) -> Vec<usize> {
    let mut closes = vec![tokens.len(); tokens.len()];
    let mut open = Vec::new();
    for (index, token) in tokens.iter().enumerate() {
        match token.kind {
            Kind::Fixed("(" | "[" | "{") => open.push(index),
            Kind::Fixed(")" | "]" | "}") => {
                if let Some(opening) = open.pop() {
                    closes[opening] = index;
                }
            }
            _ => {}
        }
    }
    closes
}

fn end(token: &Token<'_>) -> usize {
    token.start + token.text.len()
}

impl Maker<'_> {
    fn add(&mut self, position: Position, range: Range<usize>, replacement: impl Into<String>, description: String) {
        self.found.push(Mutant { position, range, replacement: replacement.into(), description });
    }

    /// Edits of one token.
    fn token(&mut self, index: usize) {
        let token = self.tokens[index];
        let replacement = match token.kind {
            Kind::Fixed("!") => {
                let range = token.start..end(&token);
                return self.add(token.position, range, "", "drop `!`".to_owned());
            }
            Kind::Fixed("[") if self.begins_operand(index) && self.closes[index] > index + 1 => {
                let Some(close) = self.tokens.get(self.closes[index]) else { return };
                let range = token.start..end(close);
                return self.add(token.position, range, "[]", "empty the list".to_owned());
            }
            Kind::Fixed("true") => "false".to_owned(),
            Kind::Fixed("false") => "true".to_owned(),
            Kind::Fixed(operator) => match OPERATORS.iter().find(|(from, _)| *from == operator) {
                Some((_, to)) => (*to).to_owned(),
                None => return,
            },
            Kind::Int | Kind::Uint | Kind::Double => match next_number(token) {
                Some(next) => next,
                None => return,
            },
            Kind::String => {
                if token.text.trim_matches(['r', 'R', '\'', '"']).is_empty() { "'x'" } else { "''" }.to_owned()
            }
            Kind::Ident if self.is_method(index) => match METHODS.iter().find(|(from, _)| *from == token.text) {
                Some((_, to)) => (*to).to_owned(),
                None => return,
            },
            _ => return,
        };
        let description = format!("write `{replacement}` for `{}`", shorten(token.text));
        self.add(token.position, token.start..end(&token), replacement, description);
    }

    fn is_method(&self, index: usize) -> bool {
        let is = |index: Option<usize>, text| {
            index.and_then(|index| self.tokens.get(index)).is_some_and(|token| token.kind == Kind::Fixed(text))
        };
        is(index.checked_sub(1), ".") && is(Some(index + 1), "(")
    }

    /// Whether what begins here is not a continuation of what is before it.
    fn begins_operand(&self, index: usize) -> bool {
        let Some(before) = index.checked_sub(1) else { return true };
        match self.tokens[before].kind {
            Kind::Fixed(text) => !matches!(text, ")" | "]" | "}" | "true" | "false" | "null"),
            _ => false,
        }
    }

    /// Edits of the operands in an expression; `asked` if it is a condition, whose opposite makes sense.
    fn expression(&mut self, range: Range<usize>, asked: bool) {
        let parts = self.split(range, |kind| matches!(kind, "?" | ":"));
        for part in &parts {
            self.operands(part.clone(), asked || parts.len() > 1);
        }
    }

    fn operands(&mut self, range: Range<usize>, asked: bool) {
        let terms = self.split(range, |kind| kind == "||");
        self.removals(&terms);
        for term in &terms {
            let factors = self.split(term.clone(), |kind| kind == "&&");
            self.removals(&factors);
            for factor in &factors {
                if asked || terms.len() > 1 || factors.len() > 1 {
                    self.negation(factor.clone());
                }
                self.brackets(factor.clone());
            }
        }
    }

    /// Mutates the expressions in the brackets of an operand.
    fn brackets(&mut self, range: Range<usize>) {
        let mut index = range.start;
        while index < range.end {
            let close = self.closes[index].min(range.end);
            match self.tokens[index].kind {
                Kind::Fixed("(") => {
                    let before = index.checked_sub(1).map(|before| self.tokens[before]);
                    let call = before.filter(|before| before.kind == Kind::Ident);
                    let parts = self.split(index + 1..close, |kind| kind == ",");
                    for (position, part) in parts.iter().enumerate() {
                        let last = position + 1 == parts.len();
                        let asked = last && call.is_some_and(|call| PREDICATES.contains(&call.text));
                        self.expression(part.clone(), asked);
                    }
                    index = close;
                }
                Kind::Fixed(bracket @ ("[" | "{")) => {
                    if bracket == "{" {
                        let entries = self.split(index + 1..close, |kind| kind == ",");
                        self.fields(&entries);
                    }
                    for part in self.split(index + 1..close, |kind| matches!(kind, "," | ":")) {
                        self.expression(part, false);
                    }
                    index = close;
                }
                _ => {}
            }
            index += 1;
        }
    }

    /// The parts between tokens that are not in brackets, those without content left out.
    fn split(&self, range: Range<usize>, separates: impl Fn(&str) -> bool) -> Vec<Range<usize>> {
        let (mut parts, mut start, mut index) = (Vec::new(), range.start, range.start);
        while index < range.end {
            if let Kind::Fixed(text) = self.tokens[index].kind {
                // A mark of what is optional: `.?`, `[?x]`.
                let marks = text == "?" && (index == range.start || self.tokens[index - 1].kind == Kind::Fixed("."));
                if marks && start == index {
                    start += 1;
                } else if !marks && separates(text) {
                    parts.push(start..index);
                    start = index + 1;
                } else if self.closes[index] < range.end {
                    index = self.closes[index];
                }
            }
            index += 1;
        }
        parts.push(start..range.end);
        parts.retain(|part| !part.is_empty());
        parts
    }

    /// A field, or the entry of a map, may have been forgotten; also the only one.
    fn fields(&mut self, entries: &[Range<usize>]) {
        if let [only] = entries {
            let (first, last) = (self.tokens[only.start], self.tokens[only.end - 1]);
            let range = first.start..end(&last);
            let description = format!("remove `{}`", shorten(&self.source[range.clone()]));
            self.add(first.position, range, "", description);
        }
        self.removals(entries);
    }

    fn removals(&mut self, operands: &[Range<usize>]) {
        if operands.len() < 2 {
            return;
        }
        for (index, operand) in operands.iter().enumerate() {
            let (first, last) = (self.tokens[operand.start], self.tokens[operand.end - 1]);
            let range = match operands.get(index + 1) {
                Some(next) if index == 0 => first.start..self.tokens[next.start].start,
                _ => end(&self.tokens[operands[index - 1].end - 1])..end(&last),
            };
            let description = format!("remove `{}`", shorten(&self.source[first.start..end(&last)]));
            self.add(first.position, range, "", description);
        }
    }

    /// The opposite of a condition, unless another edit says the same.
    fn negation(&mut self, range: Range<usize>) {
        let (first, last) = (self.tokens[range.start], self.tokens[range.end - 1]);
        let said = match first.kind {
            Kind::Fixed("!" | "true" | "false") => true,
            Kind::Fixed("(") => self.closes[range.start] + 1 == range.end,
            _ => self.split(range, |kind| matches!(kind, "==" | "!=")).len() > 1,
        };
        if said {
            return;
        }
        let text = &self.source[first.start..end(&last)];
        let (replacement, description) = (format!("!({text})"), format!("negate `{}`", shorten(text)));
        self.add(first.position, first.start..end(&last), replacement, description);
    }
}

/// The number after a number; nothing for what has none.
fn next_number(token: Token<'_>) -> Option<String> {
    let text = token.text;
    match token.kind {
        Kind::Double => Some(format!("{:?}", text.parse::<f64>().ok()? + 1.0)),
        kind => {
            let (digits, suffix) = if kind == Kind::Uint { text.split_at(text.len() - 1) } else { (text, "") };
            let value = match digits.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).ok()?,
                None => digits.parse().ok()?,
            };
            Some(format!("{}{suffix}", value.checked_add(1)?))
        }
    }
}

/// On one line, and not longer than what a line shows.
fn shorten(text: &str) -> String {
    const MAX_CHARS: usize = 60;
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(MAX_CHARS) {
        Some((end, _)) => format!("{}...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests;
