//! Mistakes in a profile, and their places.

use std::fmt;

/// A mistake in a profile: its place, what is wrong, and what to do about it.
///
/// Mistakes are collected: one pass over a profile reports all of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The field, as `kubectl explain` names it: `spec.users.runAsUser.ranges[0].min`.
    pub path: String,
    /// What is wrong, with the offending value.
    pub message: String,
    /// What to do about it, if there is advice.
    pub help: Option<String>,
}

impl Diagnostic {
    /// A diagnostic without help.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), message: message.into(), help: None }
    }

    /// Adds what to do about it.
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
