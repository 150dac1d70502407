//! Counts of a profile by state.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    profile: String,
    state: &'static str,
}

/// A gauge for each state of each profile.
#[derive(Debug, Default)]
pub(super) struct StateCounts(Family<StateLabels, Gauge>);

impl StateCounts {
    pub(super) fn register(&self, registry: &mut Registry, name: &str, help: &str) {
        registry.register(name, help, self.0.clone());
    }

    pub(super) fn set<const N: usize>(&self, profile: &str, states: [&'static str; N], counts: [i64; N]) {
        for (state, count) in states.into_iter().zip(counts) {
            self.0.get_or_create(&StateLabels { profile: profile.to_owned(), state }).set(count);
        }
    }

    pub(super) fn forget<const N: usize>(&self, profile: &str, states: [&'static str; N]) {
        for state in states {
            self.0.remove(&StateLabels { profile: profile.to_owned(), state });
        }
    }
}
