//! Parsing, within the limits of kube-apiserver.

use std::fmt;

use thiserror::Error;

use crate::References;

/// The deepest nesting of brackets that the parser below accepts. cel-go accepts 250.
const MAX_NESTING: usize = 96;
/// The longest source that cel-go parses, in code points (`parser.Options.expressionSizeCodePointLimit`).
const MAX_CODE_POINTS: usize = 100_000;
/// The most operators or selections in a row. cel-go stops at 250; the parser below would overflow its stack
/// at a few thousand.
const MAX_CHAIN: usize = 250;

/// A place in a source, both counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The line.
    pub line: usize,
    /// The column, in characters.
    pub column: usize,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.line, self.column)
    }
}

/// A source that is no CEL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{position}: {message}")]
pub struct SyntaxError {
    /// Where.
    pub position: Position,
    /// What is wrong.
    pub message: String,
}

/// A parsed expression.
#[derive(Debug)]
pub struct Expression {
    pub(crate) program: cel::Program,
}

impl Expression {
    /// Parses `source`, expanding macros.
    ///
    /// # Errors
    /// The first syntax error, or the limit that is exceeded.
    pub fn parse(source: &str) -> Result<Self, SyntaxError> {
        limits(source)?;
        let program = crate::environment::parser().compile(source).map_err(|errors| {
            let first = errors.errors.into_iter().next();
            let (line, column) = first.as_ref().map_or((1, 1), |error| error.pos);
            SyntaxError {
                position: Position {
                    line: usize::try_from(line).unwrap_or(1),
                    column: usize::try_from(column).unwrap_or(1),
                },
                message: first.map_or_else(|| "Syntax error".to_owned(), |error| error.msg),
            }
        })?;
        Ok(Self { program })
    }

    /// The names that the expression uses.
    pub fn references(&self) -> References<'_> {
        References::of(self.program.expression())
    }

    /// Where the expression with this id begins.
    pub fn position(&self, id: u64) -> Option<Position> {
        let info = self.program.source_info();
        let (start, _) = info.offset_for(id)?;
        let before: Vec<char> = info.source.chars().take(start as usize).collect();
        let line = before.iter().filter(|&&c| c == '\n').count() + 1;
        let column = before.iter().rev().take_while(|&&c| c != '\n').count() + 1;
        Some(Position { line, column })
    }
}

/// Refuses what cel-go refuses for its size, and what would be too deep for the parser.
fn limits(source: &str) -> Result<(), SyntaxError> {
    let start = Position { line: 1, column: 1 };
    let size = source.chars().count();
    if size > MAX_CODE_POINTS {
        let message = format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}");
        return Err(SyntaxError { position: start, message });
    }
    let (chain, nesting) = depth(source);
    if chain > MAX_CHAIN || nesting > MAX_NESTING {
        let message = format!("max recursion depth exceeded: {MAX_CHAIN} operators or {MAX_NESTING} brackets");
        return Err(SyntaxError { position: start, message });
    }
    Ok(())
}

/// The most arithmetic operators, or selections, that follow each other outside of strings. What is nested in
/// a call, list or index is a chain of its own. Also the deepest nesting of brackets.
fn depth(source: &str) -> (usize, usize) {
    // The operators and the selections so far, for each open bracket.
    let mut chains = vec![(0usize, 0usize)];
    let (mut longest, mut deepest) = (0, 0);
    let mut quote = None;
    let mut previous = ' ';
    for c in source.chars() {
        let before = std::mem::replace(&mut previous, c);
        if let Some(end) = quote {
            if before == '\\' {
                // What a backslash escapes ends nothing, another backslash included.
                previous = ' ';
            } else if c == end {
                quote = None;
            }
            continue;
        }
        if matches!(c, ')' | ']' | '}') {
            if chains.len() > 1 {
                chains.pop();
            }
            continue;
        }
        let Some((operators, selections)) = chains.last_mut() else { break };
        match c {
            '\'' | '"' => quote = Some(c),
            '+' | '-' | '*' | '/' | '%' => (*operators, *selections) = (*operators + 1, 0),
            '.' => *selections += 1,
            ',' => (*operators, *selections) = (0, 0),
            '&' | '|' | ':' | '<' | '>' | '=' => *selections = 0,
            // Not in `.?field`.
            '?' if before != '.' => *selections = 0,
            '(' | '[' | '{' => {
                *selections += usize::from(c == '[');
                longest = longest.max(*selections);
                chains.push((0, 0));
                deepest = deepest.max(chains.len() - 1);
                continue;
            }
            _ => {}
        }
        longest = longest.max(*operators).max(*selections);
    }
    (longest, deepest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn says_where_a_syntax_error_is() {
        let error = Expression::parse("a &&\n  )").unwrap_err();
        assert_eq!(error.position.line, 2, "{error}");
    }

    #[test]
    fn refuses_what_would_overflow_the_stack() {
        for source in [vec!["1"; 5000].join("+"), format!("a{}", ".a".repeat(20_000)), "(".repeat(5000)] {
            assert!(Expression::parse(&source).is_err());
        }
        assert!(Expression::parse(&" ".repeat(MAX_CODE_POINTS + 1)).is_err());
    }

    #[test]
    fn finds_positions() {
        let expression = Expression::parse("a +\n bcd").unwrap();
        let References { variables, .. } = expression.references();
        let place = |name: &str| variables.iter().find(|(found, _)| *found == name).map(|(_, id)| *id);
        let position = expression.position(place("bcd").unwrap()).unwrap();
        assert_eq!(position.to_string(), "2:2");
    }
}
