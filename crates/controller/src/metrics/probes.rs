//! Metrics of probes, and of the API servers that they ask.

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ProbeLabels {
    profile: String,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ServerLabels {
    server: String,
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ServerLabel {
    server: String,
}

/// How a probe of enforcement ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EnforcementResult {
    /// The API server denies violations and admits complying objects.
    Passed,
    /// The API server admits a violation.
    ViolationAdmitted,
    /// The API server denies a complying object.
    CompliantPodDenied,
    /// The probe gave no answer.
    Failed,
    /// No probe is possible.
    Impossible,
}

impl EnforcementResult {
    const ALL: [Self; 5] =
        [Self::Passed, Self::ViolationAdmitted, Self::CompliantPodDenied, Self::Failed, Self::Impossible];

    pub fn label(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::ViolationAdmitted => "violation_admitted",
            Self::CompliantPodDenied => "compliant_pod_denied",
            Self::Failed => "failed",
            Self::Impossible => "impossible",
        }
    }
}

/// How a probe of mutation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutationResult {
    /// The API server mutates pods.
    Native,
    /// The webhook does, for at least one API server.
    Webhook,
    /// For some API server no engine does.
    NoEngine,
    /// The probe gave no answer.
    Failed,
}

impl MutationResult {
    const ALL: [Self; 4] = [Self::Native, Self::Webhook, Self::NoEngine, Self::Failed];

    pub fn label(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Webhook => "webhook",
            Self::NoEngine => "none",
            Self::Failed => "failed",
        }
    }
}

#[derive(Debug, Default)]
pub struct ProbeMetrics {
    enforcement: Family<ProbeLabels, Counter>,
    mutation: Family<ProbeLabels, Counter>,
    by_server: Family<ServerLabels, Counter>,
    answers: Family<ServerLabel, Gauge>,
}

impl ProbeMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "palisade_probe",
            "Probes of the enforcement of a profile, by result",
            self.enforcement.clone(),
        );
        registry.register("palisade_mutation_probe", "Probes of the mutation engine, by result", self.mutation.clone());
        registry.register(
            "palisade_probe_at",
            "Probes of the enforcement of a profile, by API server and result",
            self.by_server.clone(),
        );
        registry.register("palisade_api_server_answers", "1 if the API server answers probes", self.answers.clone());
    }

    /// Counts a probe of enforcement at all API servers.
    pub fn enforcement_ended(&self, profile: &str, result: EnforcementResult) {
        let result = result.label();
        self.enforcement.get_or_create(&ProbeLabels { profile: profile.to_owned(), result }).inc();
    }

    /// Counts a probe of enforcement at one API server.
    pub fn enforcement_ended_at(&self, server: &str, result: EnforcementResult) {
        let result = result.label();
        self.by_server.get_or_create(&ServerLabels { server: server.to_owned(), result }).inc();
    }

    /// Counts a probe of the engine that mutates pods.
    pub fn mutation_ended(&self, profile: &str, result: MutationResult) {
        let result = result.label();
        self.mutation.get_or_create(&ProbeLabels { profile: profile.to_owned(), result }).inc();
    }

    /// Records if an API server answers.
    pub fn set_answers(&self, server: &str, answers: bool) {
        self.answers.get_or_create(&ServerLabel { server: server.to_owned() }).set(i64::from(answers));
    }

    /// An API server is no longer probed.
    pub fn forget_server(&self, server: &str) {
        self.answers.remove(&ServerLabel { server: server.to_owned() });
        for result in EnforcementResult::ALL.map(EnforcementResult::label) {
            self.by_server.remove(&ServerLabels { server: server.to_owned(), result });
        }
    }

    pub(super) fn forget(&self, profile: &str) {
        for result in EnforcementResult::ALL.map(EnforcementResult::label) {
            self.enforcement.remove(&ProbeLabels { profile: profile.to_owned(), result });
        }
        for result in MutationResult::ALL.map(MutationResult::label) {
            self.mutation.remove(&ProbeLabels { profile: profile.to_owned(), result });
        }
    }
}
