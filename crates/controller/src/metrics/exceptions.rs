//! Metrics of exceptions: those in profiles, and exception requests.

use palisade_api::ExceptionCounts;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ExceptionLabels {
    profile: String,
    origin: &'static str,
    state: &'static str,
}

#[derive(Debug, Default)]
pub struct ExceptionMetrics {
    exceptions: Family<ExceptionLabels, Gauge>,
}

impl ExceptionMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "palisade_exceptions",
            "Exceptions of a profile, by state: those in the profile, and exception requests",
            self.exceptions.clone(),
        );
    }

    /// Sets the counts of a profile; without counts, removes the previous ones.
    pub(super) fn set(&self, profile: &str, counts: Option<&ExceptionCounts>) {
        let ExceptionCounts { active, expired, requested } = counts.copied().unwrap_or_default();
        let of_tenants = requested.unwrap_or_default();
        for (origin, state, count) in [
            ("profile", "active", active),
            ("profile", "expired", expired),
            ("request", "pending", of_tenants.pending),
            ("request", "approved", of_tenants.approved),
            ("request", "expired", of_tenants.expired),
            ("request", "invalid", of_tenants.invalid),
            ("request", "unused", of_tenants.unused),
        ] {
            let labels = ExceptionLabels { profile: profile.to_owned(), origin, state };
            if counts.is_some() {
                self.exceptions.get_or_create(&labels).set(count);
            } else {
                self.exceptions.remove(&labels);
            }
        }
    }
}
