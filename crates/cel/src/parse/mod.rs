//! Source to syntax tree, as cel-go's parser does it (`parser/parser.go` and `parser/gen/CEL.g4`): the same language,
//! limits, macros and positions. The texts of syntax errors may differ, their places do not.
//!
//! A parsed tree is at most [`MAX_DEPTH`] deep in any way, so code that walks it may recurse.

mod atoms;
pub(crate) mod lexer;
mod literal;
mod macros;
mod parser;
mod tokens;

pub(crate) use macros::{OLD_ACCUMULATOR, UNSUPPORTED_ACCUMULATOR};

use crate::{
    ast::{Ast, Position},
    issue::{Issue, IssueKind, arrange},
};

/// The longest source, in code points (`parser.Options.expressionSizeCodePointLimit`).
pub const MAX_CODE_POINTS: usize = 100_000;
/// The deepest nesting (`parser.Options.maxRecursionDepth`), for each rule of the grammar and for the operators,
/// selections and calls on the way from the root to a leaf.
pub const MAX_DEPTH: u32 = 250;
/// The most nodes. cel-go has no such limit, but each `optMap` doubles its target.
pub const MAX_NODES: usize = 1 << 20;

/// The extensions of the language in an environment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Syntax {
    /// Macros with two variables (`all(i, v, ...)`, `transformMap`), of Kubernetes 1.32.
    pub two_variables: bool,
    /// The macro `sortBy`, of Kubernetes 1.34.
    pub sort_by: bool,
    /// Field names in backticks, of Kubernetes 1.37.
    pub escaped_names: bool,
    /// The parser before Kubernetes 1.33: it does not read backticks and replaces surrogates in strings. A macro can have
    /// the variable `__result__`, which this crate does not support.
    pub before_1_33: bool,
}

/// Parses a source and expands its macros.
///
/// # Errors
/// The errors in it, by position.
pub fn parse(source: &str, syntax: Syntax) -> Result<Ast, Vec<Issue>> {
    parser(source, syntax)?.parse().map_err(arrange)
}

/// Parses a source and leaves its macros as the calls in the source, so that they can be written again
/// ([`crate::format`]). Nothing else understands this tree.
///
/// # Errors
/// The errors in it, by position, except arguments that a macro does not accept.
pub fn parse_unexpanded(source: &str, syntax: Syntax) -> Result<Ast, Vec<Issue>> {
    let mut parser = parser(source, syntax)?;
    parser.expands = false;
    parser.parse().map_err(arrange)
}

fn parser(source: &str, syntax: Syntax) -> Result<parser::Parser<'_>, Vec<Issue>> {
    let size = source.chars().count();
    if size > MAX_CODE_POINTS {
        let message = format!("expression code point size exceeds limit: size: {size}, limit {MAX_CODE_POINTS}");
        return Err(vec![Issue::new(IssueKind::Limit, Position::NONE, message)]);
    }
    Ok(parser::Parser::new(source, syntax))
}

#[cfg(test)]
mod tests;
