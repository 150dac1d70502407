//! Waves of a rollout: which namespaces to promote to which stages, denials, and the clock. The lane that acts on
//! it is [`crate::rollout`].

pub mod clock;
pub mod denials;
pub mod plan;

use std::collections::BTreeMap;

use palisade_api::{RolloutStatus, conditions::ConditionType};
use tokio::time::Instant;

use crate::{
    status::{self, Condition},
    watch::store::ObservedProfile,
};

/// State of the lane for a profile.
#[derive(Debug, Default)]
pub struct RolloutState {
    /// For the status; `None` until the lane has looked at the profile.
    pub status: Option<RolloutStatus>,
    /// The generation that the status is about.
    pub generation: Option<i64>,
    /// Times of the evaluation of namespaces with violations.
    pub evaluated: BTreeMap<String, Instant>,
    /// True if pods were observed to be mutated as the profile declares. They are evaluated as if they were.
    pub mutated: bool,
    /// How often it failed in a row.
    pub failures: u32,
}

impl RolloutState {
    /// The rollout as a condition of a profile. The report of an earlier process is kept until the lane has run.
    pub fn condition(&self, observed: &ObservedProfile, rollout: &RolloutStatus) -> Condition {
        let reported = || {
            let status = observed.profile.as_ref().ok()?.status.as_ref()?;
            let known = status.conditions.iter().find(|one| one.type_ == ConditionType::RolledOut.to_string());
            known?.observed_generation
        };
        let looked_at = if self.status.is_some() { self.generation } else { reported() };
        status::rolled_out(rollout, looked_at.is_some() && looked_at == observed.meta.generation)
    }
}
