//! What an API server answers to what it refuses.

use std::fmt;

use thiserror::Error;

/// An API server's answer to what it refuses (`metav1.Status`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Error)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// Why, for machines: `Invalid`.
    pub reason: String,
    /// Why, for people.
    pub message: String,
    /// Each single reason.
    pub causes: Vec<Cause>,
}

/// One reason of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cause {
    /// The path of the field, if it is about one.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// What kind of mistake it is: `FieldValueInvalid`.
    pub kind: String,
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
