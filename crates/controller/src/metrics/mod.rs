//! Metrics, a file for each lane. No label has values that grow with the number of namespaces.

mod exceptions;
mod objects;
mod probes;
mod profiles;
mod reconciles;
mod rollouts;
mod scans;
mod states;
mod writes;

use std::time::Duration;

use palisade_api::{ExceptionCounts, GeneratedStatus, RequestCounts, RolloutPhase, RolloutStatus};
use palisade_runtime::HttpMetrics;
use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{family::Family, gauge::Gauge},
    registry::Registry,
};

pub use self::probes::{EnforcementResult, MutationResult};
use self::{
    exceptions::ExceptionMetrics, objects::ObjectMetrics, probes::ProbeMetrics, profiles::ProfileMetrics,
    reconciles::ReconcileMetrics, rollouts::RolloutMetrics, scans::ScanMetrics, writes::WriteMetrics,
};
use crate::status::Observations;

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct NameLabel {
    name: &'static str,
}

/// The content of `/metrics` after each metric was counted once, for comparison with dashboards and alerts.
///
/// # Errors
///
/// If a metric cannot be encoded.
pub fn example() -> Result<String, std::fmt::Error> {
    Metrics::counted_once().text()
}

#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    /// The lane of reconciliations.
    pub reconciles: ReconcileMetrics,
    /// Written objects.
    pub writes: WriteMetrics,
    pub probes: ProbeMetrics,
    pub scans: ScanMetrics,
    /// The port of `/readyz`.
    pub ports: HttpMetrics,
    profiles: ProfileMetrics,
    exceptions: ExceptionMetrics,
    rollouts: RolloutMetrics,
    objects: ObjectMetrics,
    leads: Family<NameLabel, Gauge>,
}

impl Metrics {
    /// Registers all metrics.
    pub fn new() -> Self {
        let metrics = Self {
            registry: Registry::default(),
            reconciles: ReconcileMetrics::default(),
            writes: WriteMetrics::default(),
            probes: ProbeMetrics::default(),
            scans: ScanMetrics::default(),
            ports: HttpMetrics::default(),
            profiles: ProfileMetrics::default(),
            exceptions: ExceptionMetrics::default(),
            rollouts: RolloutMetrics::default(),
            objects: ObjectMetrics::default(),
            leads: Family::default(),
        };
        metrics.start_at_zero();
        metrics.registered()
    }

    /// Initializes the metrics of alerts with 0: Prometheus sees no increase in a series that begins with 1, so the
    /// first failure or repair would raise no alert.
    fn start_at_zero(&self) {
        self.reconciles.start_at_zero();
        self.scans.start_at_zero();
        self.writes.start_at_zero();
    }

    fn registered(mut self) -> Self {
        let registry = &mut self.registry;
        self.reconciles.register(registry);
        self.profiles.register(registry);
        self.exceptions.register(registry);
        self.rollouts.register(registry);
        self.objects.register(registry);
        self.scans.register(registry);
        registry.register(
            "leader_election_master_status",
            "1 if this replica is the leader, by the name of the Lease; the same metric as in other controllers",
            self.leads.clone(),
        );
        self.writes.register(registry);
        self.probes.register(registry);
        self.ports.register(registry);
        palisade_runtime::about_process(registry, env!("CARGO_PKG_VERSION"));
        self
    }

    fn counted_once() -> Self {
        let (metrics, server, profile) = (Self::new(), "https://10.0.0.1:6443", "tools");
        metrics.reconciles.ended("ok", Duration::from_millis(3));
        metrics.ports.count_once("health");
        metrics.writes.wrote("ToolSecurityParams", "apply");
        metrics.writes.drifted("ToolSecurityParams");
        metrics.probes.enforcement_ended(profile, EnforcementResult::Passed);
        metrics.probes.mutation_ended(profile, MutationResult::Native);
        metrics.probes.enforcement_ended_at(server, EnforcementResult::Passed);
        metrics.probes.set_answers(server, true);
        metrics.probes.set_can_exit(server, false);
        let rollout = RolloutStatus { phase: RolloutPhase::Stopped, held: 3, promoted: 7, ..RolloutStatus::default() };
        metrics.rollouts.set(profile, &rollout);
        let requested = Some(RequestCounts { approved: 2, unused: 1, ..RequestCounts::default() });
        metrics.exceptions.set(profile, Some(&ExceptionCounts { active: 1, expired: 4, requested }));
        metrics
            .scans
            .set_violations(profile, Some(&[("hostPorts".to_owned(), 2), ("privileged".to_owned(), 1)].into()));
        metrics.scans.set_violations(profile, Some(&[("hostPorts".to_owned(), 3)].into()));
        metrics.scans.ended("ok", Duration::from_millis(1500));
        metrics.scans.set_objects(20_000);
        let generated = GeneratedStatus { desired: 9, ready: 8, failed_namespaces: 1, failures: vec![] };
        metrics.objects.set(profile, Some(&generated));
        metrics.leads(true);
        metrics.profiles.count_once(profile);
        metrics
    }

    /// Sets the metrics of the status of a profile.
    pub fn report(&self, profile: &str, observations: &Observations) {
        self.profiles.set_namespaces(profile, &observations.namespaces);
        self.exceptions.set(profile, observations.exceptions.as_ref());
        match &observations.rollout {
            Some(rollout) => self.rollouts.set(profile, rollout),
            None => self.rollouts.forget(profile),
        }
        self.objects.set(profile, observations.generated.as_ref());
        self.scans.set_violations(profile, observations.scan.as_ref().map(|scan| &scan.checks));
        self.profiles.set_conditions(profile, &observations.conditions);
    }

    /// Records if this replica is the leader.
    pub fn leads(&self, leads: bool) {
        self.leads.get_or_create(&NameLabel { name: palisade_api::names::CONTROLLER }).set(i64::from(leads));
    }

    /// A profile was deleted.
    pub fn forget(&self, profile: &str) {
        self.rollouts.forget(profile);
        self.objects.set(profile, None);
        self.exceptions.set(profile, None);
        self.scans.forget(profile);
        self.profiles.forget(profile);
        self.probes.forget(profile);
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
    fn metrics_of_alerts_start_at_zero() {
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
        assert!(!text.contains("privileged"), "it has no violations");
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
            "palisade_api_server_can_exit{server=\"https://10.0.0.1:6443\"} 0",
            "palisade_rollout_namespaces{profile=\"tools\",state=\"held\"} 3",
            "palisade_rollout_namespaces{profile=\"tools\",state=\"promoted\"} 7",
            "palisade_rollout_phase{profile=\"tools\",phase=\"Stopped\"} 1",
            "palisade_rollout_phase{profile=\"tools\",phase=\"Promoting\"} 0",
            "palisade_exceptions{profile=\"tools\",origin=\"profile\",state=\"expired\"} 4",
            "palisade_generated_objects{profile=\"tools\",state=\"ready\"} 8",
            "palisade_generated_failed_namespaces{profile=\"tools\"} 1",
            "palisade_exceptions{profile=\"tools\",origin=\"request\",state=\"unused\"} 1",
            "palisade_build_info{version=",
            "process_resident_memory_bytes ",
        ] {
            assert!(text.contains(name), "{name} is not in\n{text}");
        }
        metrics.forget("tools");
        assert!(!metrics.text().unwrap().contains("tools"));
        metrics.probes.forget_server("https://10.0.0.1:6443");
        assert!(!metrics.text().unwrap().contains("10.0.0.1"));
    }
}
