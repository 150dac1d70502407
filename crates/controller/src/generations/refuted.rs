//! Generations that probes refuted. Pure.

use std::sync::Arc;

use palisade_api::conditions::{ConditionType, Reason};

use super::accepted::Rejection;
use crate::watch::store::ObservedProfile;

/// The longest message about a refuted generation, in characters.
const MAX_MESSAGE_CHARS: usize = 3000;

/// A generation that probes refuted: with it in effect, an API server denied a compliant object.
#[derive(Clone, Debug)]
pub struct RefutedGeneration {
    pub generation: i64,
    /// Why it is not accepted.
    pub rejection: Arc<Rejection>,
}

impl RefutedGeneration {
    /// The generation is refuted, and another one is put back.
    pub fn new(generation: i64, why: &str, put_back: i64) -> Self {
        let message = format!(
            "{why}; therefore the spec of generation {put_back} was restored. Another component of the cluster may \
             change objects before they are evaluated. Change the profile to try again"
        );
        let message = message.chars().take(MAX_MESSAGE_CHARS).collect();
        Self { generation, rejection: Arc::new(Rejection { reason: Reason::CompliantPodDenied, message }) }
    }

    /// The report of an earlier process about the generation in the cluster: a restart must not try it again.
    pub fn reported(observed: &ObservedProfile) -> Option<Self> {
        let status = observed.profile.as_ref().ok()?.status.as_ref()?;
        let accepted = ConditionType::Accepted.to_string();
        let condition = status.conditions.iter().find(|condition| condition.type_ == accepted)?;
        let reason = Reason::CompliantPodDenied;
        let generation = observed.meta.generation?;
        let is_this = condition.reason == reason.to_string() && condition.observed_generation == Some(generation);
        let rejection = || Arc::new(Rejection { reason, message: condition.message.clone() });
        is_this.then(|| Self { generation, rejection: rejection() })
    }
}
