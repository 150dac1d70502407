//! Metrics of the background scan.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Mutex, PoisonError, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::EncodeLabelSet,
    metrics::{counter::Counter, family::Family, gauge::Gauge},
    registry::Registry,
};

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct ResultLabel {
    result: &'static str,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct CheckLabels {
    profile: String,
    check: String,
}

const RESULTS: [&str; 2] = ["ok", "error"];

/// Scans, and the violations that they find.
#[derive(Debug, Default)]
pub struct ScanMetrics {
    scans: Family<ResultLabel, Counter>,
    duration: Gauge<f64, AtomicU64>,
    objects: Gauge,
    violations: Family<CheckLabels, Gauge>,
    /// The checks with a value in `violations`, by profile.
    counted: Mutex<BTreeMap<String, BTreeSet<String>>>,
}

impl ScanMetrics {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register("palisade_scan", "Background scans, by result", self.scans.clone());
        registry.register(
            "palisade_scan_last_duration_seconds",
            "Duration of the last background scan",
            self.duration.clone(),
        );
        registry.register(
            "palisade_scan_objects",
            "Pods and workloads that profiles evaluate, in the last background scan",
            self.objects.clone(),
        );
        registry.register(
            "palisade_violations",
            "Workloads that violate a profile, by check, in the last background scan",
            self.violations.clone(),
        );
    }

    pub(super) fn start_at_zero(&self) {
        for result in RESULTS {
            self.scans.get_or_create(&ResultLabel { result }).inc_by(0);
        }
    }

    /// Counts a scan.
    pub fn ended(&self, result: &'static str, took: Duration) {
        debug_assert!(RESULTS.contains(&result), "{result} does not begin with 0");
        self.scans.get_or_create(&ResultLabel { result }).inc();
        self.duration.set(took.as_secs_f64());
    }

    /// Sets the number of objects that the scan found.
    pub fn set_objects(&self, count: usize) {
        self.objects.set(i64::try_from(count).unwrap_or(i64::MAX));
    }

    /// Sets the violations of a profile by check; without counts, removes the previous ones.
    pub(super) fn set_violations(&self, profile: &str, checks: Option<&BTreeMap<String, i64>>) {
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

    pub(super) fn forget(&self, profile: &str) {
        self.set_violations(profile, None);
        self.counted.lock().unwrap_or_else(PoisonError::into_inner).remove(profile);
    }
}
