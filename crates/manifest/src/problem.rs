//! Problems to report to the user.

use std::{fmt, ops::Range, sync::Arc};

use crate::{Source, one_line};

/// How bad a problem is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Good to know.
    Info,
    /// Something to look at.
    Warning,
    /// Wrong.
    Error,
}

/// A problem to report, with its place.
#[derive(Clone, Debug)]
pub struct Problem {
    message: String,
    help: Option<String>,
    place: Option<(Arc<Source>, Range<usize>)>,
    severity: Severity,
}

impl Problem {
    /// A problem without a place.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: one_line(&message.into()), help: None, place: None, severity: Severity::Error }
    }

    /// Something to look at, although the result is good.
    pub fn warning(message: impl Into<String>) -> Self {
        Self::new(message).severe(Severity::Warning)
    }

    /// Sets how bad it is.
    #[must_use]
    pub fn severe(mut self, severity: Severity) -> Self {
        self.severity = severity;
        self
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(one_line(&help.into()));
        self
    }

    /// Adds its place.
    #[must_use]
    pub fn at(mut self, source: &Arc<Source>, place: Range<usize>) -> Self {
        self.place = Some((Arc::clone(source), place));
        self
    }

    /// The error message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The advice.
    pub fn advice(&self) -> Option<&str> {
        self.help.as_deref()
    }

    /// Its place, in bytes.
    pub fn place(&self) -> Option<(&Arc<Source>, Range<usize>)> {
        self.place.as_ref().map(|(source, place)| (source, place.clone()))
    }

    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// The problem in a form that can be shown: it points at something on one line, or names its place in the message.
    #[must_use]
    pub fn settled(&self) -> Self {
        let Self { message, help, place, severity } = self;
        let (message, help, severity) = (message.clone(), help.clone(), *severity);
        let Some((source, place)) = place else { return Self { message, help, place: None, severity } };
        let text = source.text();
        // The end of a file is after its last line, with nothing to point at.
        let start = text.floor_char_boundary(place.start.min(text.trim_end().len()));
        let line = text[start..].find('\n').map_or(text.len(), |at| start + at);
        let end = text.floor_char_boundary(place.end.clamp(start, line));
        if source.can_show(start) && !text.is_empty() {
            return Self { message, help, place: Some((Arc::clone(source), start..end)), severity };
        }
        let (line, column) = source.position(start);
        Self { message: format!("{}:{line}:{column}: {message}", source.name()), help, place: None, severity }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Problem {}
