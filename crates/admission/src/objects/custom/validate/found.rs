//! The result of validating a value (kube-openapi `Result`).

use std::collections::BTreeSet;

use crate::validation::FieldError;

/// Errors, and how many checks a value passed or was subject to: of alternatives that all fail, those of the one with the
/// most are reported.
#[derive(Debug, Default)]
pub(super) struct Found {
    errors: Vec<(String, FieldError)>,
    /// The messages of these errors: each is reported once.
    messages: BTreeSet<String>,
    pub(super) matches: usize,
}

impl Found {
    /// No errors, with so many matches.
    pub(super) fn with(matches: usize) -> Self {
        Self { matches, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.errors.is_empty()
    }

    /// Adds an error of a field, unless there is one with this message.
    pub(super) fn add(&mut self, path: &str, message: &str, error: impl FnOnce(&str) -> FieldError) {
        if self.messages.insert(message.to_owned()) {
            self.errors.push((message.to_owned(), error(path.strip_prefix('.').unwrap_or(path))));
        }
    }

    /// Adds an error that is of no field, in the API server's words.
    pub(super) fn add_plain(&mut self, message: &str) {
        self.add("", message, |field| FieldError::invalid(field, "", message));
    }

    pub(super) fn merge(&mut self, other: Self) {
        self.matches += other.matches;
        for (message, error) in other.errors {
            if self.messages.insert(message.clone()) {
                self.errors.push((message, error));
            }
        }
    }

    /// The errors of a value at a path, or of the whole.
    pub(super) fn errors(self, at: Option<&str>) -> Vec<FieldError> {
        let placed = |field: &str| match (at, field) {
            (None, "") => "<nil>".to_owned(),
            (None, field) => field.to_owned(),
            (Some(at), "") => at.to_owned(),
            (Some(at), field) => format!("{at}.{field}"),
        };
        let errors = self.errors.into_iter();
        errors.map(|(_, error)| FieldError { field: placed(&error.field), ..error }).collect()
    }
}
