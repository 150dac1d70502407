//! Metrics of the lane of generated objects.

use palisade_api::GeneratedStatus;
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

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProfileLabel {
    profile: String,
}

const STATES: [&str; 2] = ["desired", "ready"];

/// The objects of `spec.generate`.
#[derive(Debug, Default)]
pub struct ObjectMetrics {
    objects: Family<StateLabels, Gauge>,
    failed: Family<ProfileLabel, Gauge>,
}

impl ObjectMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "palisade_generated_objects",
            "Objects of spec.generate in all namespaces: desired and ready",
            self.objects.clone(),
        );
        registry.register(
            "palisade_generated_failed_namespaces",
            "Namespaces with objects of spec.generate that could not be computed, written or deleted",
            self.failed.clone(),
        );
    }

    pub(super) fn set(&self, profile: &str, status: Option<&GeneratedStatus>) {
        let Some(status) = status else {
            for state in STATES {
                self.objects.remove(&StateLabels { profile: profile.to_owned(), state });
            }
            self.failed.remove(&ProfileLabel { profile: profile.to_owned() });
            return;
        };
        for (state, count) in STATES.into_iter().zip([status.desired, status.ready]) {
            self.objects.get_or_create(&StateLabels { profile: profile.to_owned(), state }).set(count);
        }
        self.failed.get_or_create(&ProfileLabel { profile: profile.to_owned() }).set(status.failed_namespaces);
    }
}
