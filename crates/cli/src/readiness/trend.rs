//! Earlier reports, for the trend of the figures.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;

use super::data::{API_VERSION, KIND, Point, Readiness, Report, Since, Summary, ViolatingWorkload};
use crate::{cluster::could_not_run, files, report::Failure};

/// More namespaces than a cluster has.
const MAX_NAMESPACES: u64 = 100_000_000;

/// Reads earlier reports.
pub(super) fn read(paths: &[String]) -> Result<Vec<Report>, Failure> {
    let mut reports = Vec::new();
    for source in files::sources(paths)? {
        let name = source.name();
        let wrong = |what: &str| {
            could_not_run(format!("{name}: {what}; --earlier requires a file from palisade report -o json"))
        };
        let report: Report = serde_json::from_str(source.text()).map_err(|error| wrong(&error.to_string()))?;
        if (report.api_version.as_str(), report.kind.as_str()) != (API_VERSION, KIND) {
            return Err(wrong(&format!("must be a {KIND} of {API_VERSION}")));
        }
        if report.time.parse::<Timestamp>().is_err() {
            return Err(wrong("invalid timestamp"));
        }
        if !is_sound(&report.summary) {
            return Err(wrong("inconsistent figures"));
        }
        reports.push(report);
    }
    Ok(reports)
}

/// Whether its numbers of namespaces are consistent with their sum, and not larger than in any cluster.
fn is_sound(summary: &Summary) -> bool {
    let all = Readiness::ALL.map(|one| u64::try_from(summary.count(one)).unwrap_or(u64::MAX));
    let sum = all.into_iter().try_fold(0_u64, u64::checked_add);
    sum.is_some_and(|sum| sum == summary.namespaces as u64 && sum <= MAX_NAMESPACES)
}

fn time(report: &Report) -> Option<Timestamp> {
    report.time.parse().ok()
}

fn point(report: &Report) -> Point {
    let profiles = report.profiles.iter().map(|profile| profile.name.clone()).collect();
    Point { time: report.time.clone(), profiles, summary: report.summary.clone() }
}

fn names(report: &Report) -> BTreeSet<String> {
    let name = |ViolatingWorkload { namespace, workload, .. }: &ViolatingWorkload| format!("{namespace}/{workload}");
    report.workloads.iter().map(name).collect()
}

/// Adds the trend.
///
/// # Errors
/// A report is not earlier.
pub(super) fn add(report: &mut Report, mut earlier: Vec<Report>) -> Result<(), Failure> {
    if let Some(later) = earlier.iter().find(|one| time(one) >= time(report)) {
        return Err(could_not_run(format!(
            "--earlier: the report of {} must be earlier than this one, of {}",
            later.time, report.time
        )));
    }
    earlier.sort_by_key(time);
    let Some(last) = earlier.last() else { return Ok(()) };
    let (then, now) = (names(last), names(report));
    report.since = Some(Since {
        time: last.time.clone(),
        new: now.difference(&then).cloned().collect(),
        gone: then.difference(&now).cloned().collect(),
    });
    report.trend = earlier.iter().chain([&*report]).map(point).collect();
    Ok(())
}
