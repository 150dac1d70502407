//! Errors in a profile, with their fields.

use std::fmt;

/// An error in a profile: its field, a message, and advice.
///
/// Errors are collected: one pass over a profile reports all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The field, as `kubectl explain` names it: `spec.users.runAsUser.ranges[0].min`.
    pub path: String,
    /// The message, with the invalid value.
    pub message: String,
    /// Advice, if there is any.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without advice.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), help: None }
    }

    /// Adds advice.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.message)?;
        match &self.help {
            Some(help) => write!(f, " ({help})"),
            None => Ok(()),
        }
    }
}
