//! The form of expressions in policies: simplified, over several lines, and each variable with a comment that names its
//! check and page.

use palisade_cel::{
    ast::Node,
    format::{Printed, Verbatim, WIDTH, print},
    parse::{MAX_CODE_POINTS, Syntax, parse_unexpanded},
};

use crate::fold::fold;

/// How expressions are written. They mean the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExpressionStyle {
    /// For people.
    #[default]
    Readable,
    /// As the rules of the checks make them, on one line, to compare with.
    AsLowered,
}

/// The syntax that the oldest API servers accept.
pub(crate) const SYNTAX: Syntax =
    Syntax { two_variables: true, sort_by: false, escaped_names: false, before_1_33: false };

impl ExpressionStyle {
    /// Writes an expression. `about` becomes a comment before it, if it is not empty.
    pub(crate) fn expression(self, about: &str, lowered: String) -> String {
        match self.written(about, &lowered, &[]) {
            Some(printed) => printed.text,
            None => lowered,
        }
    }

    /// Writes an expression in which names stand for texts that an admin wrote.
    pub(crate) fn around(self, about: &str, lowered: &str, verbatim: &[Verbatim<'_>]) -> Printed {
        self.written(about, lowered, verbatim).unwrap_or_else(|| {
            let mut text = lowered.to_owned();
            for one in verbatim {
                text = text.replace(one.name, &format!("(\n{}\n)", one.text));
            }
            let mut lines = Vec::new();
            for one in verbatim {
                // Its line is that of its name, plus the lines of the texts before it.
                let before = lowered.split(one.name).next().unwrap_or_default();
                let others = verbatim.iter().filter(|other| before.contains(other.name));
                let added: usize = others.map(|other| other.text.matches('\n').count() + 2).sum();
                lines.push(if before.len() == lowered.len() { 0 } else { added + 2 });
            }
            Printed { text, lines }
        })
    }

    /// Writes a tree that was not parsed from text; `None` if it cannot be written.
    pub(crate) fn tree(self, about: &str, tree: &Node) -> Option<String> {
        match self {
            Self::Readable => commented(about, tree, &[]).map(|printed| printed.text),
            Self::AsLowered => print(tree, usize::MAX, &[]).map(|printed| printed.text),
        }
    }

    /// `None` if the expression stays as it was lowered, or does not parse: its check reports the reason.
    fn written(self, about: &str, lowered: &str, verbatim: &[Verbatim<'_>]) -> Option<Printed> {
        if self == Self::AsLowered {
            return None;
        }
        commented(about, &fold(parse_unexpanded(lowered, SYNTAX).ok()?.root), verbatim)
    }
}

/// A tree over several lines, with a comment before it, if that says something.
fn commented(about: &str, tree: &Node, verbatim: &[Verbatim<'_>]) -> Option<Printed> {
    let comment = if about.is_empty() { String::new() } else { format!("// {about}\n") };
    // White space must not make an expression too long.
    [WIDTH, usize::MAX].into_iter().find_map(|width| {
        let mut printed = print(tree, width, verbatim)?;
        printed.text.insert_str(0, &comment);
        let lines = printed.lines.iter_mut().filter(|line| **line > 0);
        lines.for_each(|line| *line += comment.matches('\n').count());
        let fits = printed.text.chars().count() <= MAX_CODE_POINTS;
        (fits || width == usize::MAX).then_some(printed)
    })
}
