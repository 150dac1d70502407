//! Syntax trees as text for people: over several lines, with indentation, the same for the same tree.
//!
//! Parsing the text gives the same tree. No line is empty or ends with a space, so that YAML shows the text as a block.

mod doc;
mod layout;
mod literal;

use crate::{
    ast::Node,
    issue::Issue,
    parse::{Syntax, parse_unexpanded},
};

/// How long lines are, if they can be broken: on a terminal a policy has room for them, where YAML indents them.
pub const WIDTH: usize = 80;

/// Formats an expression. Comments are lost.
///
/// # Errors
/// The errors in it, by position.
pub fn format(source: &str, syntax: Syntax) -> Result<String, Vec<Issue>> {
    let root = parse_unexpanded(source, syntax)?.root;
    Ok(print(&root, WIDTH, &[]).map_or_else(|| source.to_owned(), |printed| printed.text))
}

/// A text that replaces a name unchanged, on separate lines between parentheses.
#[derive(Clone, Copy, Debug)]
pub struct Verbatim<'a> {
    /// The name.
    pub name: &'a str,
    /// The text.
    pub text: &'a str,
}

/// A printed tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Printed {
    /// The text, without a line break at its end.
    pub text: String,
    /// For each verbatim text the line on which it begins, from 1; 0 if nothing has its name.
    pub lines: Vec<usize>,
}

/// Prints a tree that [`parse_unexpanded`] has read; `None` for one with expanded macros.
///
/// `width` is the length of lines that can be broken.
pub fn print(node: &Node, width: usize, verbatim: &[Verbatim<'_>]) -> Option<Printed> {
    let doc = layout::Layout { verbatim }.of(node)?;
    Some(doc::render(&doc, width, verbatim))
}

#[cfg(test)]
mod tests;
