//! Findings in the formats of CI servers, for all commands: SARIF, `JUnit` and annotations of GitHub.

pub mod github;
pub mod junit;
mod output;
pub mod sarif;

use std::{ops::Range, sync::Arc};

pub use output::{Format, Output};
use palisade_manifest::{Severity, Source};
use serde_json::Value as Json;

/// The name of a file for servers, which do not accept `./`: without redundant parts.
fn cleaned(name: &str) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." if parts.last().is_some_and(|last| !matches!(*last, "" | "..")) => drop(parts.pop()),
            // An absolute path begins with an empty part.
            "" if !parts.is_empty() => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

/// The results of a command.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The command: `lint`.
    pub command: &'static str,
    /// The rules of the command.
    pub rules: Vec<Rule>,
    /// The findings in order of files and places.
    pub found: Vec<Finding>,
    /// The number of objects.
    pub objects: usize,
}

/// A rule of a command.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its id.
    pub id: String,
    /// One line of text.
    pub title: String,
    /// The reason, in Markdown.
    pub why: String,
    /// The address of its page, if it has one.
    pub page: Option<String>,
    /// The severity of its findings.
    pub severity: Severity,
    /// Its category, if it has one.
    pub category: Option<&'static str>,
}

/// Something found in a file.
#[derive(Clone, Debug)]
pub struct Finding {
    /// The id of the rule.
    pub rule: String,
    /// Its severity.
    pub severity: Severity,
    /// The problem, with the advice.
    pub message: String,
    /// The object, as `Pod/web`.
    pub object: String,
    /// The path in the object.
    pub path: String,
    /// The file.
    pub source: Arc<Source>,
    /// The bytes in the file.
    pub place: Range<usize>,
    /// Further data for programs; null for none.
    pub properties: Json,
}

/// A place in a file, lines and columns from 1; the end is after the last character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// Its first line.
    pub line: usize,
    /// Its first column.
    pub column: usize,
    /// Its last line.
    pub end_line: usize,
    /// The column after it.
    pub end_column: usize,
}

/// The place of some bytes of a file.
pub fn region(source: &Source, place: &Range<usize>) -> Region {
    let (line, column) = source.position(place.start);
    let (end_line, end_column) = source.position(place.end.max(place.start));
    Region { line, column, end_line, end_column }
}

/// The name of a severity.
pub fn severity(of: Severity) -> &'static str {
    match of {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "info",
    }
}

impl Finding {
    fn region(&self) -> Region {
        region(&self.source, &self.place)
    }
}
