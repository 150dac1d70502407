//! Stage waves: which namespaces a rollout takes to which stage, and whether what is in them complies. The lane that acts
//! on it is [`crate::rollout`].

pub mod clock;
pub mod denials;
pub mod plan;

use std::collections::BTreeMap;

use palisade_api::RolloutStatus;
use tokio::time::Instant;

/// What the lane remembers of a profile.
#[derive(Debug, Default)]
pub struct RolloutState {
    /// For the status; `None` until the lane has looked at the profile.
    pub status: Option<RolloutStatus>,
    /// When namespaces were judged that did not comply.
    pub judged: BTreeMap<String, Instant>,
    /// Whether pods were observed to be mutated as the profile says. They are judged as if they were.
    pub mutated: bool,
    /// How often it failed in a row.
    pub failures: u32,
}
