//! Metrics. No label has values that grow with the number of namespaces.

use std::time::Duration;

use palisade_runtime::HttpMetrics;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::{Registry, Unit},
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReviewOutcome {
    Mutated,
    /// There was nothing to mutate.
    Complete,
    /// The profile is not known or mutates nothing.
    NoProfile,
    /// The namespace has no parameters yet.
    NoParameters,
    /// The review could not be read.
    Malformed,
    /// The body did not come in time, or was too large.
    Unread,
}

impl ReviewOutcome {
    const ALL: [Self; 6] =
        [Self::Mutated, Self::Complete, Self::NoProfile, Self::NoParameters, Self::Malformed, Self::Unread];

    fn text(self) -> &'static str {
        match self {
            Self::Mutated => "mutated",
            Self::Complete => "complete",
            Self::NoProfile => "no_profile",
            Self::NoParameters => "no_parameters",
            Self::Malformed => "malformed",
            Self::Unread => "unread",
        }
    }
}

/// The content of `/metrics` after each metric was counted once, for comparison with dashboards and alerts.
///
/// # Errors
///
/// If a metric cannot be encoded.
pub fn example() -> Result<String, std::fmt::Error> {
    let metrics = Metrics::new();
    metrics.answered(ReviewOutcome::Mutated, Duration::from_micros(40));
    metrics.ports.count_once("webhook");
    metrics.text()
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<ResultLabel, Counter>,
    durations: Histogram,
    /// Connections.
    pub ports: HttpMetrics,
    /// When the certificate in use expires, as Unix time.
    pub certificate_expiry: Gauge,
    /// How often a new certificate was put into use.
    pub certificates_loaded: Counter,
    /// How many profiles are registered.
    pub registered: Gauge,
    /// How many profiles have a newest revision that the gate rejects.
    pub rejected: Gauge,
    /// Failures to maintain or publish the certificate.
    pub upkeep_failed: Counter,
}

impl Metrics {
    /// Registers them.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            requests: Family::default(),
            durations: Histogram::new([0.000_05, 0.000_1, 0.000_2, 0.000_5, 0.001, 0.002, 0.005, 0.02, 0.1, 1.0]),
            ports: HttpMetrics::default(),
            certificate_expiry: Gauge::default(),
            certificates_loaded: Counter::default(),
            registered: Gauge::default(),
            rejected: Gauge::default(),
            upkeep_failed: Counter::default(),
        };
        // Prometheus sees no increase in a series that begins with 1.
        for outcome in ReviewOutcome::ALL {
            metrics.requests.get_or_create(&ResultLabel { result: outcome.text() }).inc_by(0);
        }
        metrics.registered()
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("palisade_webhook_requests", "Admission reviews, by outcome", self.requests.clone());
        registry.register_with_unit(
            "palisade_webhook_request_duration",
            "Time from the complete body to the response",
            Unit::Seconds,
            self.durations.clone(),
        );
        self.ports.register(registry);
        registry.register_with_unit(
            "palisade_webhook_certificate_expiration_timestamp",
            "Expiration time of the current certificate, as Unix time",
            Unit::Seconds,
            self.certificate_expiry.clone(),
        );
        registry.register(
            "palisade_webhook_certificates_loaded",
            "New certificates taken into use",
            self.certificates_loaded.clone(),
        );
        registry.register(
            "palisade_webhook_registered_profiles",
            "Profiles for which the API server calls this webhook",
            self.registered.clone(),
        );
        registry.register(
            "palisade_webhook_refused_profiles",
            "Profiles whose current generation the webhook rejects: it uses an earlier generation, or does not \
             mutate pods",
            self.rejected.clone(),
        );
        registry.register(
            "palisade_webhook_upkeep_failures",
            "Failures to maintain or publish the certificate",
            self.upkeep_failed.clone(),
        );
        palisade_runtime::about_process(registry, env!("CARGO_PKG_VERSION"));
        self
    }

    pub fn answered(&self, outcome: ReviewOutcome, took: Duration) {
        self.requests.get_or_create(&ResultLabel { result: outcome.text() }).inc();
        self.durations.observe(took.as_secs_f64());
    }

    /// As `OpenMetrics` text.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        palisade_runtime::text(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metric_names_match_the_dashboards() {
        let metrics = Metrics::new();
        metrics.answered(ReviewOutcome::Mutated, Duration::from_micros(40));
        metrics.certificate_expiry.set(7);
        let text = metrics.text().unwrap();
        for name in [
            "palisade_webhook_requests_total{result=\"mutated\"} 1",
            "palisade_webhook_requests_total{result=\"malformed\"} 0",
            "palisade_webhook_request_duration_seconds_count 1",
            "palisade_webhook_certificate_expiration_timestamp_seconds 7",
            "palisade_webhook_registered_profiles 0",
            "palisade_webhook_refused_profiles 0",
            "palisade_webhook_upkeep_failures_total 0",
            "process_resident_memory_bytes ",
        ] {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
    }
}
