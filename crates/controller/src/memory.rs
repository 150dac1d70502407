//! What passes over one profile remember. All of it can be lost.

use std::{collections::BTreeSet, sync::Arc};

use palisade_api::ToolSecurityProfileStatus;
use tokio::time::Instant;

use crate::{
    compile::{Good, Verdict},
    mutate::Turn,
    remove::Removal,
    trial::Tried,
};

/// What is remembered.
#[derive(Debug, Default)]
pub struct Memory {
    /// The profile's uid: another profile of the same name is another one.
    pub uid: String,
    /// What the profile is, by generation.
    pub verdict: Option<(i64, Verdict)>,
    /// What the API server said of a generation before it was written.
    pub tried: Option<Tried>,
    /// The last spec that was put in force.
    pub last_good: Option<Arc<Good>>,
    /// Whether the revision was looked for.
    pub revision_read: bool,
    /// The generation that the revision was written for.
    pub revision_saved: Option<i64>,
    /// When writing the revision may be tried again.
    pub revision_after: Option<Instant>,
    /// Who fills in pods, as it was found last.
    pub mutating: Option<Turn>,
    /// The namespaces that were reported as failed.
    pub failed: Option<BTreeSet<String>>,
    /// The status that was written last.
    pub reported: Option<ToolSecurityProfileStatus>,
    /// How far the removal of the profile is.
    pub removal: Removal,
    /// How many passes have failed in a row.
    pub failures: u32,
}
