//! Errors of evaluation.

use std::fmt;

use super::Str;

/// Why an expression has no value. The text is that of cel-go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    text: Str<'static>,
    /// Whether it ends the evaluation, so that `||` and its kind cannot absorb it.
    pub(crate) fatal: bool,
}

impl Error {
    /// An error that operators may absorb.
    pub(crate) fn new(text: impl Into<Str<'static>>) -> Self {
        Self { text: text.into(), fatal: false }
    }

    /// An error that ends the evaluation (a panic in cel-go).
    pub(crate) fn fatal(text: impl Into<Str<'static>>) -> Self {
        Self { text: text.into(), fatal: true }
    }

    /// A value of a type that an operation does not know.
    pub(crate) fn no_such_overload() -> Self {
        Self::new("no such overload")
    }

    /// More than one expression may cost.
    pub(crate) fn cost_limit() -> Self {
        Self::fatal("operation cancelled: actual cost limit exceeded")
    }
}

impl From<String> for Error {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}
