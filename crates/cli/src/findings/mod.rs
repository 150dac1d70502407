//! Findings in files as CI servers read them, whichever command finds them: SARIF, `JUnit` and annotations of GitHub.

pub mod github;
pub mod junit;
mod output;
pub mod sarif;

use std::{ops::Range, sync::Arc};

pub use output::{Format, Output};
use palisade_manifest::{Severity, Source};
use serde_json::Value as Json;

/// What a command found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The command: `lint`.
    pub command: &'static str,
    /// What it looks for.
    pub rules: Vec<Rule>,
    /// What it found, in order of files and places.
    pub found: Vec<Finding>,
    /// How many objects it looked at.
    pub objects: usize,
}

/// Something that a command looks for.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Its id.
    pub id: String,
    /// One line for people.
    pub title: String,
    /// Why it matters, in Markdown.
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
    /// How bad it is.
    pub severity: Severity,
    /// What is wrong, with the advice.
    pub message: String,
    /// The object, as `Pod/web`.
    pub object: String,
    /// The path in the object.
    pub path: String,
    /// The file.
    pub source: Arc<Source>,
    /// The bytes in the file.
    pub place: Range<usize>,
    /// What else programs may want to know; null for nothing.
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
