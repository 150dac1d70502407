//! Metrics of the lane of rollouts.

use palisade_api::{RolloutPhase, RolloutStatus};
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::states::StateCounts;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PhaseLabels {
    profile: String,
    phase: &'static str,
}

const STATES: [&str; 3] = ["promoted", "pending", "held"];

/// Phases of rollouts, and their namespaces.
#[derive(Debug, Default)]
pub struct RolloutMetrics {
    namespaces: StateCounts,
    phases: Family<PhaseLabels, Gauge>,
}

impl RolloutMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "Namespaces of a rollout: promoted, pending and held";
        self.namespaces.register(registry, "palisade_rollout_namespaces", help);
        registry.register(
            "palisade_rollout_phase",
            "1 if the rollout of the profile is in the phase",
            self.phases.clone(),
        );
    }

    pub(super) fn set(&self, profile: &str, rollout: &RolloutStatus) {
        self.namespaces.set(profile, STATES, [rollout.promoted, rollout.pending, rollout.held]);
        for phase in RolloutPhase::ALL {
            let labels = PhaseLabels { profile: profile.to_owned(), phase: phase.into() };
            self.phases.get_or_create(&labels).set(i64::from(phase == rollout.phase));
        }
    }

    pub(super) fn forget(&self, profile: &str) {
        self.namespaces.forget(profile, STATES);
        for phase in RolloutPhase::ALL {
            self.phases.remove(&PhaseLabels { profile: profile.to_owned(), phase: phase.into() });
        }
    }
}
