//! Metrics. No label has values that grow with the number of namespaces.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use palisade_api::{ExceptionCounts, RequestCounts, RolloutPhase, RolloutStatus, Stage, conditions::ConditionType};
use palisade_process::HttpMetrics;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::status::{ConditionStatus, Observations};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StateLabels {
    profile: String,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ExceptionLabels {
    profile: String,
    origin: &'static str,
    state: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct StageLabels {
    profile: String,
    stage: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct PhaseLabels {
    profile: String,
    phase: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NameLabel {
    name: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CheckLabels {
    profile: String,
    check: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ConditionLabels {
    profile: String,
    r#type: &'static str,
    status: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct WriteLabels {
    kind: &'static str,
    verb: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

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

    /// As a label.
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
    Nobody,
    /// The probe gave no answer.
    Failed,
}

impl MutationResult {
    const ALL: [Self; 4] = [Self::Native, Self::Webhook, Self::Nobody, Self::Failed];

    /// As a label.
    pub fn label(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Webhook => "webhook",
            Self::Nobody => "nobody",
            Self::Failed => "failed",
        }
    }
}

/// The content of `/metrics` after each metric was counted once, for comparison with dashboards and alerts.
///
/// # Errors
///
/// If a metric cannot be encoded.
pub fn example() -> Result<String, std::fmt::Error> {
    Metrics::counted_once().text()
}

/// All of them.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    reconciles: Family<ResultLabel, Counter>,
    durations: Histogram,
    namespaces: Family<StateLabels, Gauge>,
    by_stage: Family<StageLabels, Gauge>,
    exceptions: Family<ExceptionLabels, Gauge>,
    rollout: Family<StateLabels, Gauge>,
    rollout_phase: Family<PhaseLabels, Gauge>,
    violations: Family<CheckLabels, Gauge>,
    /// The checks that have a value there, by profile.
    counted: Mutex<BTreeMap<String, BTreeSet<String>>>,
    scans: Family<ResultLabel, Counter>,
    scan_duration: Gauge<f64, AtomicU64>,
    scan_objects: Gauge,
    leads: Family<NameLabel, Gauge>,
    conditions: Family<ConditionLabels, Gauge>,
    writes: Family<WriteLabels, Counter>,
    drift: Family<KindLabel, Counter>,
    probes: Family<ProbeLabels, Counter>,
    /// Of the port of `/readyz`.
    pub ports: HttpMetrics,
    mutated: Family<ProbeLabels, Counter>,
    probes_at: Family<ServerLabels, Counter>,
    answers: Family<ServerLabel, Gauge>,
}

const STATES: [&str; 3] = ["selected", "ready", "failed"];
const ROLLOUT_STATES: [&str; 3] = ["promoted", "pending", "held"];
/// How a reconcile ends.
const RECONCILED: [&str; 7] =
    ["ok", "finalizer_error", "compile_error", "try_error", "apply_error", "report_error", "remove_error"];
/// How a scan ends.
const SCANNED: [&str; 2] = ["ok", "error"];
/// Kinds that are restored after a change by another client.
const RESTORED: [&str; 5] = [
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "ToolSecurityParams",
];

impl Metrics {
    /// Registers them.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            reconciles: Family::default(),
            durations: Histogram::new([0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0]),
            namespaces: Family::default(),
            by_stage: Family::default(),
            exceptions: Family::default(),
            rollout: Family::default(),
            rollout_phase: Family::default(),
            violations: Family::default(),
            counted: Mutex::default(),
            scans: Family::default(),
            scan_duration: Gauge::default(),
            scan_objects: Gauge::default(),
            leads: Family::default(),
            conditions: Family::default(),
            writes: Family::default(),
            drift: Family::default(),
            probes: Family::default(),
            ports: HttpMetrics::default(),
            mutated: Family::default(),
            probes_at: Family::default(),
            answers: Family::default(),
        };
        metrics.start_at_zero();
        metrics.registered()
    }

    /// Initializes the metrics of alerts with 0: Prometheus sees no increase in a series that begins with 1, so the
    /// first failure or repair would raise no alert.
    fn start_at_zero(&self) {
        for result in RECONCILED {
            self.reconciles.get_or_create(&ResultLabel { result }).inc_by(0);
        }
        for result in SCANNED {
            self.scans.get_or_create(&ResultLabel { result }).inc_by(0);
        }
        for kind in RESTORED {
            self.drift.get_or_create(&KindLabel { kind }).inc_by(0);
        }
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        registry.register("palisade_reconcile", "Reconciliations of profiles, by result", self.reconciles.clone());
        registry.register(
            "palisade_reconcile_duration_seconds",
            "Duration of a reconciliation",
            self.durations.clone(),
        );
        registry.register("palisade_namespaces", "Namespaces of a profile by state", self.namespaces.clone());
        registry.register(
            "palisade_namespaces_by_stage",
            "Namespaces that a profile selects, by the stage of pods",
            self.by_stage.clone(),
        );
        registry.register(
            "palisade_exceptions",
            "Exceptions of a profile, by state: those in the profile, and exception requests",
            self.exceptions.clone(),
        );
        registry.register(
            "palisade_rollout_namespaces",
            "Namespaces of a rollout: promoted, pending and held",
            self.rollout.clone(),
        );
        registry.register(
            "palisade_rollout_phase",
            "1 if the rollout of the profile is in the phase",
            self.rollout_phase.clone(),
        );
        registry.register(
            "palisade_violations",
            "Workloads that violate a profile, by check, in the last background scan",
            self.violations.clone(),
        );
        registry.register(
            "leader_election_master_status",
            "1 if this replica is the leader, by the name of the Lease; the same metric as in other controllers",
            self.leads.clone(),
        );
        registry.register("palisade_scan", "Background scans, by result", self.scans.clone());
        registry.register(
            "palisade_scan_last_duration_seconds",
            "Duration of the last background scan",
            self.scan_duration.clone(),
        );
        registry.register(
            "palisade_scan_objects",
            "Pods and workloads that profiles evaluate, in the last background scan",
            self.scan_objects.clone(),
        );
        registry.register(
            "palisade_profile_condition",
            "1 if the condition of the profile has the status",
            self.conditions.clone(),
        );
        registry.register("palisade_writes", "Objects written, by kind and verb", self.writes.clone());
        registry.register(
            "palisade_drift_repaired",
            "Objects restored after a change by another client",
            self.drift.clone(),
        );
        registry.register("palisade_probe", "Probes of the enforcement of a profile, by result", self.probes.clone());
        self.ports.register(registry);
        registry.register("palisade_mutation_probe", "Probes of the mutation engine, by result", self.mutated.clone());
        registry.register(
            "palisade_probe_at",
            "Probes of the enforcement of a profile, by API server and result",
            self.probes_at.clone(),
        );
        registry.register("palisade_api_server_answers", "1 if the API server answers probes", self.answers.clone());
        palisade_process::about_process(registry, env!("CARGO_PKG_VERSION"));
        self
    }

    fn counted_once() -> Self {
        let (metrics, server, profile) = (Self::new(), "https://10.0.0.1:6443", "tools");
        metrics.reconciled("ok", Duration::from_millis(3));
        metrics.ports.count_once("health");
        metrics.wrote("ToolSecurityParams", "apply");
        metrics.drifted("ToolSecurityParams");
        metrics.probed(profile, EnforcementResult::Passed);
        metrics.mutated(profile, MutationResult::Native);
        metrics.probed_at(server, EnforcementResult::Passed);
        metrics.answers(server, true);
        let rollout = RolloutStatus { phase: RolloutPhase::Stopped, held: 3, promoted: 7, ..RolloutStatus::default() };
        metrics.rolled_out(profile, &rollout);
        let requested = Some(RequestCounts { approved: 2, unused: 1, ..RequestCounts::default() });
        metrics.excepts(profile, Some(&ExceptionCounts { active: 1, expired: 4, requested }));
        metrics.violating(profile, Some(&[("hostPorts".to_owned(), 2), ("privileged".to_owned(), 1)].into()));
        metrics.violating(profile, Some(&[("hostPorts".to_owned(), 3)].into()));
        metrics.scanned("ok", Duration::from_millis(1500));
        metrics.scan_objects(20_000);
        metrics.leads(true);
        metrics.namespaces.get_or_create(&StateLabels { profile: profile.to_owned(), state: STATES[0] }).set(1);
        metrics.by_stage.get_or_create(&StageLabels { profile: profile.to_owned(), stage: Stage::Deny.into() }).set(1);
        let (r#type, status) = (ConditionType::Ready.into(), ConditionStatus::True.text());
        metrics.conditions.get_or_create(&ConditionLabels { profile: profile.to_owned(), r#type, status }).set(1);
        metrics
    }

    /// A reconcile ended.
    pub fn reconciled(&self, result: &'static str, took: Duration) {
        debug_assert!(RECONCILED.contains(&result), "{result} does not begin with 0");
        self.reconciles.get_or_create(&ResultLabel { result }).inc();
        self.durations.observe(took.as_secs_f64());
    }

    /// An object was written.
    pub fn wrote(&self, kind: &'static str, verb: &'static str) {
        self.writes.get_or_create(&WriteLabels { kind, verb }).inc();
    }

    /// Another writer had changed an object.
    pub fn drifted(&self, kind: &'static str) {
        self.drift.get_or_create(&KindLabel { kind }).inc();
    }

    /// All API servers were asked whether they enforce a profile.
    pub fn probed(&self, profile: &str, result: EnforcementResult) {
        let result = result.label();
        self.probes.get_or_create(&ProbeLabels { profile: profile.to_owned(), result }).inc();
    }

    /// One API server was asked whether it enforces a profile.
    pub fn probed_at(&self, server: &str, result: EnforcementResult) {
        let result = result.label();
        self.probes_at.get_or_create(&ServerLabels { server: server.to_owned(), result }).inc();
    }

    /// The API servers were asked which engine mutates pods.
    pub fn mutated(&self, profile: &str, result: MutationResult) {
        let result = result.label();
        self.mutated.get_or_create(&ProbeLabels { profile: profile.to_owned(), result }).inc();
    }

    /// Records if an API server answers.
    pub fn answers(&self, server: &str, answers: bool) {
        self.answers.get_or_create(&ServerLabel { server: server.to_owned() }).set(i64::from(answers));
    }

    /// An API server is no longer probed.
    pub fn forget_server(&self, server: &str) {
        self.answers.remove(&ServerLabel { server: server.to_owned() });
        for result in EnforcementResult::ALL.map(EnforcementResult::label) {
            self.probes_at.remove(&ServerLabels { server: server.to_owned(), result });
        }
    }

    /// The status of a profile.
    pub fn report(&self, profile: &str, observations: &Observations) {
        let counts = [observations.namespaces.selected, observations.namespaces.ready, observations.namespaces.failed];
        for (state, count) in STATES.into_iter().zip(counts) {
            self.namespaces.get_or_create(&StateLabels { profile: profile.to_owned(), state }).set(count);
        }
        for (stage, count) in Stage::ALL.into_iter().zip(observations.namespaces.by_stage.counts()) {
            self.by_stage.get_or_create(&StageLabels { profile: profile.to_owned(), stage: stage.into() }).set(count);
        }
        self.excepts(profile, observations.exceptions.as_ref());
        match &observations.rollout {
            Some(rollout) => self.rolled_out(profile, rollout),
            None => self.forget_rollout(profile),
        }
        self.violating(profile, observations.scan.as_ref().map(|scan| &scan.checks));
        if observations.rollout.is_none() {
            self.forget_condition(profile, ConditionType::RolledOut);
        }
        for condition in &observations.conditions {
            for status in ConditionStatus::ALL {
                let labels = ConditionLabels {
                    profile: profile.to_owned(),
                    r#type: condition.type_.into(),
                    status: status.text(),
                };
                self.conditions.get_or_create(&labels).set(i64::from(condition.status == status));
            }
        }
    }

    /// Records if this replica is the leader.
    pub fn leads(&self, leads: bool) {
        self.leads.get_or_create(&NameLabel { name: palisade_api::names::CONTROLLER }).set(i64::from(leads));
    }

    /// A background scan ended.
    pub fn scanned(&self, result: &'static str, took: Duration) {
        debug_assert!(SCANNED.contains(&result), "{result} does not begin with 0");
        self.scans.get_or_create(&ResultLabel { result }).inc();
        self.scan_duration.set(took.as_secs_f64());
    }

    /// How many objects the background scan found.
    pub fn scan_objects(&self, count: usize) {
        self.scan_objects.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    fn violating(&self, profile: &str, checks: Option<&BTreeMap<String, i64>>) {
        let labels = |check: &String| CheckLabels { profile: profile.to_owned(), check: check.clone() };
        for (check, count) in checks.into_iter().flatten() {
            self.violations.get_or_create(&labels(check)).set(*count);
        }
        let now = checks.map(|checks| checks.keys().cloned().collect()).unwrap_or_default();
        let before = self.counted.lock().unwrap_or_else(PoisonError::into_inner).insert(profile.to_owned(), now);
        for check in before.iter().flatten().filter(|check| checks.is_none_or(|checks| !checks.contains_key(*check))) {
            self.violations.remove(&labels(check));
        }
    }

    /// Sets the counts of exceptions; without counts, removes the previous ones.
    fn excepts(&self, profile: &str, counts: Option<&ExceptionCounts>) {
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

    fn forget_condition(&self, profile: &str, type_: ConditionType) {
        for status in ConditionStatus::ALL {
            let labels = ConditionLabels { profile: profile.to_owned(), r#type: type_.into(), status: status.text() };
            self.conditions.remove(&labels);
        }
    }

    fn rolled_out(&self, profile: &str, rollout: &RolloutStatus) {
        for (state, count) in ROLLOUT_STATES.into_iter().zip([rollout.promoted, rollout.pending, rollout.held]) {
            self.rollout.get_or_create(&StateLabels { profile: profile.to_owned(), state }).set(count);
        }
        for phase in RolloutPhase::ALL {
            let labels = PhaseLabels { profile: profile.to_owned(), phase: phase.into() };
            self.rollout_phase.get_or_create(&labels).set(i64::from(phase == rollout.phase));
        }
    }

    fn forget_rollout(&self, profile: &str) {
        for state in ROLLOUT_STATES {
            self.rollout.remove(&StateLabels { profile: profile.to_owned(), state });
        }
        for phase in RolloutPhase::ALL {
            self.rollout_phase.remove(&PhaseLabels { profile: profile.to_owned(), phase: phase.into() });
        }
    }

    /// A profile is gone.
    pub fn forget(&self, profile: &str) {
        self.forget_rollout(profile);
        self.excepts(profile, None);
        self.violating(profile, None);
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).remove(profile);
        for state in STATES {
            self.namespaces.remove(&StateLabels { profile: profile.to_owned(), state });
        }
        for stage in Stage::ALL {
            self.by_stage.remove(&StageLabels { profile: profile.to_owned(), stage: stage.into() });
        }
        for type_ in ConditionType::ALL {
            self.forget_condition(profile, type_);
        }
        for result in EnforcementResult::ALL.map(EnforcementResult::label) {
            self.probes.remove(&ProbeLabels { profile: profile.to_owned(), result });
        }
        for result in MutationResult::ALL.map(MutationResult::label) {
            self.mutated.remove(&ProbeLabels { profile: profile.to_owned(), result });
        }
    }

    /// As `OpenMetrics` text.
    pub fn text(&self) -> Result<String, std::fmt::Error> {
        palisade_process::text(&self.registry)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_alerts_look_at_begins_with_zero() {
        let text = Metrics::new().text().unwrap();
        for name in [
            "palisade_drift_repaired_total{kind=\"ToolSecurityParams\"} 0",
            "palisade_reconcile_total{result=\"apply_error\"} 0",
            "palisade_scan_total{result=\"error\"} 0",
        ] {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
    }

    #[test]
    fn metric_names_match_the_dashboards() {
        let metrics = Metrics::counted_once();
        let text = metrics.text().unwrap();
        assert!(!text.contains("privileged"), "nothing violates it any more");
        for name in [
            "palisade_violations{profile=\"tools\",check=\"hostPorts\"} 3",
            "palisade_scan_total{result=\"ok\"} 1",
            "palisade_scan_last_duration_seconds 1.5",
            "palisade_scan_objects 20000",
            "leader_election_master_status{name=\"palisade-controller\"} 1",
            "palisade_reconcile_total{result=\"ok\"} 1",
            "palisade_reconcile_duration_seconds_count 1",
            "palisade_writes_total{kind=\"ToolSecurityParams\",verb=\"apply\"} 1",
            "palisade_drift_repaired_total{kind=\"ToolSecurityParams\"} 1",
            "palisade_probe_total{profile=\"tools\",result=\"passed\"} 1",
            "palisade_mutation_probe_total{profile=\"tools\",result=\"native\"} 1",
            "palisade_probe_at_total{server=\"https://10.0.0.1:6443\",result=\"passed\"} 1",
            "palisade_api_server_answers{server=\"https://10.0.0.1:6443\"} 1",
            "palisade_rollout_namespaces{profile=\"tools\",state=\"held\"} 3",
            "palisade_rollout_namespaces{profile=\"tools\",state=\"promoted\"} 7",
            "palisade_rollout_phase{profile=\"tools\",phase=\"Stopped\"} 1",
            "palisade_rollout_phase{profile=\"tools\",phase=\"Promoting\"} 0",
            "palisade_exceptions{profile=\"tools\",origin=\"profile\",state=\"expired\"} 4",
            "palisade_exceptions{profile=\"tools\",origin=\"request\",state=\"unused\"} 1",
            "palisade_build_info{version=",
            "process_resident_memory_bytes ",
        ] {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
        metrics.forget("tools");
        assert!(!metrics.text().unwrap().contains("tools"));
        metrics.forget_server("https://10.0.0.1:6443");
        assert!(!metrics.text().unwrap().contains("10.0.0.1"));
    }
}
