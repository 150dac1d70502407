//! Checks for text that the parser accepts and kubectl's reader rejects, or reads differently.
//!
//! `go.yaml.in/yaml/v2` is a libyaml: it accepts no tab for indentation, knows more ends of lines, and has other rules
//! for a colon within a flow. This module rejects such text, with the reason.

use granit_parser::ErrorKind;

use super::{Fault, repair::escapes};
use crate::node::{Content, Node};

/// Ends of lines to kubectl, but characters to the parser.
const SEPARATORS: [char; 2] = ['\u{2028}', '\u{2029}'];

/// Checks a document of YAML in a text.
pub(super) fn check(text: &str, document: std::ops::Range<usize>, root: &Node<'_>) -> Result<(), Fault> {
    let mut checker = Checker { text, within: Vec::new() };
    checker.part(root, None)?;
    let found = text[document.clone()].match_indices(SEPARATORS).map(|(at, _)| document.start + at);
    for offset in found {
        // Within quotes it stays the same, except for white space around it.
        let before = checker.within.partition_point(|quoted| quoted.start <= offset).checked_sub(1);
        let quoted = before.is_some_and(|before| checker.within[before].contains(&offset));
        let blank =
            text[..offset].ends_with([' ', '\t']) || text[offset..].chars().nth(1).is_some_and(char::is_whitespace);
        if !quoted || blank {
            let message = "kubectl takes U+2028 and U+2029 for the end of a line: write \\L and \\P in double quotes";
            return Err(Fault { message: message.to_owned(), offset });
        }
    }
    Ok(())
}

struct Checker<'t> {
    text: &'t str,
    /// Texts in quotes, in their order.
    within: Vec<std::ops::Range<usize>>,
}

impl Checker<'_> {
    /// Checks a part. `column` is that of the block that it is in, from 0; none within a flow.
    fn part(&mut self, node: &Node<'_>, column: Option<usize>) -> Result<(), Fault> {
        match &node.content {
            Content::Scalar(_) => self.scalar(node, column)?,
            Content::Alias(_) => {}
            Content::Sequence(items) => {
                let own = node.block.then(|| self.column(node.span.start));
                for item in items {
                    if node.block {
                        self.indented_by_spaces(item)?;
                    }
                    self.part(item, own)?;
                }
            }
            Content::Mapping(pairs) => {
                let own = node.block.then(|| self.column(node.span.start));
                for (key, value) in pairs {
                    if node.block {
                        self.indented_by_spaces(key)?;
                        self.indented_by_spaces(value)?;
                    } else {
                        self.colon(key)?;
                    }
                    // A key has one line.
                    let quoted = self.within.len();
                    self.part(key, own)?;
                    self.within.truncate(quoted);
                    self.part(value, own)?;
                }
            }
        }
        Ok(())
    }

    fn scalar(&mut self, node: &Node<'_>, column: Option<usize>) -> Result<(), Fault> {
        let raw = self.text.get(node.span.clone()).unwrap_or_default();
        if node.form.plain {
            return match column {
                Some(column) => self.tab_after(node.span.end, column),
                None => Ok(()),
            };
        }
        if !raw.starts_with(['"', '\'']) {
            return Ok(());
        }
        self.within.push(node.span.clone());
        if raw.starts_with('\'') {
            return Ok(());
        }
        for at in escapes(self.text, node.span.start).take_while(|at| *at < node.span.end) {
            let escape = &self.text[at..];
            let surrogate = escape.strip_prefix("\\u").and_then(|code| u32::from_str_radix(code.get(..4)?, 16).ok());
            if surrogate.is_some_and(|code| (0xd800..0xe000).contains(&code)) {
                let message =
                    "found invalid Unicode character escape code: kubectl knows halves of characters in JSON only";
                return Err(Fault { message: message.to_owned(), offset: at });
            }
            if escape.starts_with("\\/") {
                return Err(Fault { message: ErrorKind::UnknownQuotedScalarEscape.to_string(), offset: at });
            }
        }
        Ok(())
    }

    /// The column of a byte in its line, from 0.
    fn column(&self, offset: usize) -> usize {
        let line = self.text[..offset].rfind(['\n', '\r']).map_or(0, |end| end + 1);
        self.text[line..offset].chars().count()
    }

    /// There is no tab before the first part of a line, or between the mark before it and the part.
    fn indented_by_spaces(&self, node: &Node<'_>) -> Result<(), Fault> {
        let start = node.span.start;
        let line = self.text[..start].rfind(['\n', '\r']).map_or(0, |end| end + 1);
        let lead = &self.text[line..start];
        match lead.find('\t') {
            Some(tab) if !node.span.is_empty() && lead.chars().all(|c| " \t-?:".contains(c)) => Err(Fault {
                message: "found character that cannot start any token: kubectl takes no tab for indentation".to_owned(),
                offset: line + tab,
            }),
            _ => Ok(()),
        }
    }

    /// After a text without quotes, lines without anything in them have no tab where indentation is (`scanner.go`,
    /// `yaml_parser_scan_plain_scalar`).
    fn tab_after(&self, end: usize, column: usize) -> Result<(), Fault> {
        let mut at_line: Option<usize> = None;
        for (at, c) in self.text[end..].char_indices() {
            match (c, at_line) {
                ('\n' | '\r', _) => at_line = Some(0),
                ('\t', Some(of_line)) if of_line <= column => {
                    return Err(Fault {
                        message: "found a tab character that violates indentation".to_owned(),
                        offset: end + at,
                    });
                }
                (' ' | '\t', Some(of_line)) => at_line = Some(of_line + 1),
                (' ' | '\t', None) => {}
                _ => break,
            }
        }
        Ok(())
    }

    /// A colon without a space behind it is part of the text, whatever follows.
    fn colon(&self, key: &Node<'_>) -> Result<(), Fault> {
        let mut after = self.text.get(key.span.end..).unwrap_or_default().chars();
        if key.form.plain && after.next() == Some(':') && after.next().is_some_and(|c| ",[]{}".contains(c)) {
            let message = "kubectl takes a colon without a space behind it for a part of the text";
            return Err(Fault { message: message.to_owned(), offset: key.span.end });
        }
        Ok(())
    }
}
