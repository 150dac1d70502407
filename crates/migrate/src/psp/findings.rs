//! The notes and errors of the conversion of a policy.

use palisade_api::{Diagnostic, Location};

use crate::note::{FieldDefault, Kind, Note};

/// Notes for users, and the errors that prevent a result.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) notes: Vec<Note>,
    pub(super) mistakes: Vec<Diagnostic>,
}

impl Findings {
    pub(super) fn note(&mut self, kind: Kind, path: impl Into<String>, message: impl Into<String>) {
        self.notes.push(Note::new(kind, path, message));
    }

    /// A value that pods got as a default, and now must set.
    pub(super) fn defaulted(
        &mut self,
        kind: Kind,
        path: &str,
        message: impl Into<String>,
        field_default: FieldDefault,
    ) {
        self.notes.push(Note::new(kind, path, message).with_default(field_default));
    }

    pub(super) fn mistake(&mut self, path: impl Into<Location>, message: impl Into<String>, help: &str) {
        self.mistakes.push(Diagnostic::new(path, message).help(help));
    }
}
