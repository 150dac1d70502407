//! Metrics of the lane of reconciliations.

use std::time::Duration;

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, histogram::Histogram},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

const RESULTS: [&str; 7] =
    ["ok", "finalizer_error", "compile_error", "try_error", "apply_error", "report_error", "remove_error"];

/// Results and durations of reconciliations.
#[derive(Debug)]
pub struct ReconcileMetrics {
    reconciles: Family<ResultLabel, Counter>,
    durations: Histogram,
}

impl Default for ReconcileMetrics {
    fn default() -> Self {
        let durations = Histogram::new([0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0]);
        Self { reconciles: Family::default(), durations }
    }
}

impl ReconcileMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("palisade_reconcile", "Reconciliations of profiles, by result", self.reconciles.clone());
        registry.register(
            "palisade_reconcile_duration_seconds",
            "Duration of a reconciliation",
            self.durations.clone(),
        );
    }

    pub(super) fn start_at_zero(&self) {
        for result in RESULTS {
            self.reconciles.get_or_create(&ResultLabel { result }).inc_by(0);
        }
    }

    /// Counts a reconciliation.
    pub fn ended(&self, result: &'static str, took: Duration) {
        debug_assert!(RESULTS.contains(&result), "{result} does not begin with 0");
        self.reconciles.get_or_create(&ResultLabel { result }).inc();
        self.durations.observe(took.as_secs_f64());
    }
}
