//! Metrics of the lane of generated objects.

use palisade_api::GeneratedStatus;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

use super::states::StateCounts;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProfileLabel {
    profile: String,
}

const STATES: [&str; 2] = ["desired", "ready"];

/// The objects of `spec.generate`.
#[derive(Debug, Default)]
pub struct ObjectMetrics {
    objects: StateCounts,
    failed: Family<ProfileLabel, Gauge>,
}

impl ObjectMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        let help = "Objects of spec.generate in all namespaces: desired and ready";
        self.objects.register(registry, "palisade_generated_objects", help);
        registry.register(
            "palisade_generated_failed_namespaces",
            "Namespaces with objects of spec.generate that could not be computed, written or deleted",
            self.failed.clone(),
        );
    }

    pub(super) fn set(&self, profile: &str, status: Option<&GeneratedStatus>) {
        let Some(status) = status else {
            self.objects.forget(profile, STATES);
            self.failed.remove(&ProfileLabel { profile: profile.to_owned() });
            return;
        };
        self.objects.set(profile, STATES, [status.desired, status.ready]);
        self.failed.get_or_create(&ProfileLabel { profile: profile.to_owned() }).set(status.failed_namespaces);
    }
}
