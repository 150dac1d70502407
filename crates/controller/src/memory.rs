//! What the controller remembers of one profile between two passes. All of it can be lost.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use palisade_api::ToolSecurityProfileStatus;
use tokio::time::Instant;

use crate::{
    compile::{Good, Verdict},
    mutate::Turn,
    resolve::Keep,
    world::ObservedParams,
};

/// After this the API server judges by a new policy: it reads policies and bindings about once a second.
pub const SETTLE: Duration = Duration::from_secs(2);

/// What is remembered.
#[derive(Debug)]
pub struct Memory {
    /// The profile's uid: another profile of the same name is another one.
    pub uid: String,
    /// What the profile is, by generation.
    pub verdict: Option<(i64, Verdict)>,
    /// The last spec that was put in force.
    pub last_good: Option<Arc<Good>>,
    /// Whether the revision was looked for.
    pub revision_read: bool,
    /// The generation that the revision was written for.
    pub revision_saved: Option<i64>,
    /// When writing the revision may be tried again.
    pub revision_after: Option<Instant>,
    /// When the policy was written last.
    pub settling: Settling,
    /// Namespaces whose parameters are to be removed, and since when.
    pub removable: BTreeMap<String, Instant>,
    /// Namespaces whose parameters could not be written.
    pub write_failures: BTreeMap<String, WriteFailure>,
    /// Parameters that were seen to be right: what differs from them later was changed by someone else.
    pub confirmed: BTreeMap<String, Arc<ObservedParams>>,
    /// The generation whose policy and binding were seen to be right.
    pub confirmed_bundle: Option<i64>,
    /// Whether this process has written the policy or the binding.
    pub wrote_bundle: bool,
    /// Who fills in pods, as it was found last.
    pub mutating: Option<Turn>,
    /// The namespaces that were reported as failed.
    pub failed: Option<BTreeSet<String>>,
    /// The status that was written last.
    pub reported: Option<ToolSecurityProfileStatus>,
    /// Whether all that was made for it is removed: it is only not yet seen to be gone.
    pub removed: bool,
    /// How many passes have failed in a row.
    pub failures: u32,
}

/// A policy that the API server may not judge by yet.
#[derive(Debug)]
pub struct Settling {
    /// Since when.
    pub since: Instant,
    /// The parameters that the policy before it reads.
    pub before: Keep,
    /// Whether there was a policy before it.
    pub replaced: bool,
}

/// Parameters that could not be written.
#[derive(Debug)]
pub struct WriteFailure {
    failures: u32,
    /// When to try again.
    pub again: Instant,
    /// Why.
    pub message: String,
}

impl Memory {
    /// Nothing is known.
    pub fn new(uid: String) -> Self {
        Self {
            uid,
            verdict: None,
            last_good: None,
            revision_read: false,
            revision_saved: None,
            revision_after: None,
            // Perhaps this process was stopped just after it had written the policy.
            settling: Settling { since: Instant::now(), before: Keep::Everything, replaced: false },
            removable: BTreeMap::new(),
            write_failures: BTreeMap::new(),
            confirmed: BTreeMap::new(),
            confirmed_bundle: None,
            wrote_bundle: false,
            mutating: None,
            failed: None,
            reported: None,
            removed: false,
            failures: 0,
        }
    }

    /// How long until the API server surely judges by the policy in the cluster; `None` if it does.
    pub fn settles_in(&self, now: Instant) -> Option<Duration> {
        let rest = SETTLE.saturating_sub(now.duration_since(self.settling.since));
        (!rest.is_zero()).then_some(rest)
    }

    /// A write of parameters failed.
    pub fn write_failed(&mut self, namespace: &str, message: String, now: Instant) {
        let failures = self.write_failures.get(namespace).map_or(1, |failure| failure.failures.saturating_add(1));
        let again = now + palisade_process::delay(failures, Duration::from_mins(1));
        self.write_failures.insert(namespace.to_owned(), WriteFailure { failures, again, message });
    }
}
