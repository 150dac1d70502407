//! State of the reconciliations of one profile. Losing it causes no harm.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

use super::report::ReportState;
use crate::{
    apply::dry_run::DryRunState,
    generations::{compile::CompileState, last_good::SavedRevision, target::Generations},
    mutation::mutate::MutationState,
    removal::remove::Removal,
};

/// State of each stage for a profile.
#[derive(Debug, Default)]
pub struct Progress {
    /// The profile's uid: it distinguishes another profile of the same name.
    pub uid: String,
    /// Stages compile and check.
    pub compile: CompileState,
    pub dry_run: DryRunState,
    pub generations: Generations,
    /// The saved revision of the last good generation.
    pub revision: SavedRevision,
    /// Stage mutate; `None` before it has looked.
    pub mutation: Option<MutationState>,
    pub report: ReportState,
    /// How far the removal of the profile is.
    pub removal: Removal,
    /// How many reconciles have failed in a row.
    pub failures: u32,
}

#[derive(Debug, Default)]
pub struct AllProgress {
    all: Mutex<BTreeMap<String, Progress>>,
}

impl AllProgress {
    /// Takes the progress for a reconcile, which puts it back at the end. A reconcile that panics loses it.
    pub fn take(&self, profile: &str) -> Progress {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).remove(profile).unwrap_or_default()
    }

    /// The end of a reconcile.
    pub fn put(&self, profile: &str, progress: Progress) {
        self.all.lock().unwrap_or_else(PoisonError::into_inner).insert(profile.to_owned(), progress);
    }
}
