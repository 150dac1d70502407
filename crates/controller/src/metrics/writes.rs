//! Metrics of all lanes: written objects, and objects restored after a change by another client.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WriteLabels {
    kind: &'static str,
    verb: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Kinds that are restored after a change by another client.
const RESTORED: [&str; 6] = [
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ToolSecurityParams",
    "GeneratedObject",
];

/// Counters of written objects.
#[derive(Debug, Default)]
pub struct WriteMetrics {
    writes: Family<WriteLabels, Counter>,
    drift: Family<KindLabel, Counter>,
}

impl WriteMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("palisade_writes", "Objects written, by kind and verb", self.writes.clone());
        registry.register(
            "palisade_drift_repaired",
            "Objects restored after a change by another client",
            self.drift.clone(),
        );
    }

    pub(super) fn start_at_zero(&self) {
        for kind in RESTORED {
            self.drift.get_or_create(&KindLabel { kind }).inc_by(0);
        }
    }

    /// Counts a written object.
    pub fn wrote(&self, kind: &'static str, verb: &'static str) {
        self.writes.get_or_create(&WriteLabels { kind, verb }).inc();
    }

    /// Counts an object that another client had changed.
    pub fn drifted(&self, kind: &'static str) {
        self.drift.get_or_create(&KindLabel { kind }).inc();
    }
}
