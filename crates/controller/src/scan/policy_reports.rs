//! The same findings as reports of the `OpenReports` API or its predecessor (`wgpolicyk8s.io`), if one of them is
//! installed: for dashboards and other tools that support them.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube::{
    Api,
    api::{ApiResource, DynamicObject, TypeMeta},
};
use palisade_api::names;
use palisade_checks::{Level, catalogue};
use palisade_kube_json::{json::set, owners::Reference};
use serde_json::{Value as Json, json};

use super::{
    reports::{self, Budget, Finding, Kind, Reports},
    snapshot::Snapshot,
    tally::Tallies,
};
use crate::{
    api_request::{ApiError, call},
    context::Context,
};

/// The most results in a report. With the longest messages these are 100 KB; an API server takes 1.5 MB.
const MAX_RESULTS: usize = 100;
/// How names begin, before the name of the profile: namespaces have reports of other tools, too.
const PREFIX: &str = "palisade-";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReportApi {
    group: &'static str,
    version: &'static str,
    kind: &'static str,
    plural: &'static str,
    /// True if a report has an owner and lists omissions.
    is_open_reports: bool,
}

/// Supported APIs; the first served one is written.
const KNOWN: [ReportApi; 2] = [
    ReportApi {
        group: "openreports.io",
        version: "v1alpha1",
        kind: "Report",
        plural: "reports",
        is_open_reports: true,
    },
    ReportApi {
        group: "wgpolicyk8s.io",
        version: "v1alpha2",
        kind: "PolicyReport",
        plural: "policyreports",
        is_open_reports: false,
    },
];

/// The APIs that the API server serves now.
pub async fn served(cx: &Context) -> Result<Vec<ReportApi>, ApiError> {
    let mut served = Vec::new();
    for api in KNOWN {
        let list = call(cx.client.list_api_group_resources(&format!("{}/{}", api.group, api.version))).await;
        match list {
            Ok(list) if list.resources.iter().any(|resource| resource.name == api.plural) => served.push(api),
            Ok(_) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(served)
}

/// The reports that there should be.
pub fn desired(
    api: ReportApi,
    snapshot: &Snapshot,
    tallies: &Tallies,
    now: &Time,
    budget: &mut Budget,
) -> Reports<DynamicObject> {
    let counts = |mut all: Json| {
        set(&mut all, &["results"], json!([]));
        all
    };
    let reports = reports::findings(snapshot, tallies).filter_map(|finding| {
        let data = budget.take(finding.profile(), api.report(&finding, now), counts)?;
        let metadata = finding.metadata(format!("{PREFIX}{}", finding.profile()));
        let types = TypeMeta { api_version: format!("{}/{}", api.group, api.version), kind: api.kind.to_owned() };
        Some(DynamicObject { types: Some(types), metadata, data })
    });
    reports.map(|report| (reports::key(&report), report)).collect()
}

/// Updates the reports of the chosen API, and deletes those of other served APIs, for example of one that was the only
/// one before.
pub async fn keep(
    cx: &Context,
    snapshot: &Snapshot,
    served: &[ReportApi],
    chosen: Option<ReportApi>,
    mut desired: Reports<DynamicObject>,
) -> Result<usize, ApiError> {
    let mut writes = 0;
    for api in served {
        let is_chosen = chosen == Some(*api);
        let reports = if is_chosen { std::mem::take(&mut desired) } else { Reports::new() };
        match reports::keep(cx, &api.of_cluster(), snapshot, reports).await {
            Ok(written) => writes += written,
            // Without permission to list reports, the controller has written none.
            Err(error) if error.is_forbidden() && !is_chosen => {}
            // The API went meanwhile, with all reports.
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(writes)
}

impl ReportApi {
    fn of_cluster(self) -> Kind<DynamicObject> {
        let Self { group, version, kind, plural, .. } = self;
        let resource = ApiResource {
            group: group.to_owned(),
            version: version.to_owned(),
            api_version: format!("{group}/{version}"),
            kind: kind.to_owned(),
            plural: plural.to_owned(),
        };
        Kind { name: kind, resource, within: Api::namespaced_with, prefix: PREFIX, correction }
    }

    /// The content of a report. The summary counts all results, the list has the first ones.
    fn report(self, finding: &Finding<'_>, now: &Time) -> Json {
        let (violations, not_judged) = (finding.tally.violations(), finding.tally.not_judged());
        let summary = json!({"pass": 0, "fail": violations.len(), "warn": 0, "error": not_judged.len(), "skip": 0});
        let fail = violations.map(|(check, one)| {
            let mut result = result(finding, "fail", &one.workload, &one.message, now);
            let (severity, category) = about(check);
            set(&mut result, &["rule"], check);
            set(&mut result, &["severity"], severity);
            set(&mut result, &["category"], category);
            set(&mut result, &["properties", "objects"], one.objects.to_string());
            let stage = finding.enforcement().stage_of(check, finding.stage);
            set(&mut result, &["properties", "stage"], stage.to_string());
            result
        });
        let error = not_judged.map(|one| result(finding, "error", &one.workload, &one.message, now));
        let results: Vec<_> = fail.chain(error).take(MAX_RESULTS).collect();
        let mut report = json!({"summary": summary, "results": results});
        if self.is_open_reports {
            set(&mut report, &["source"], names::MANAGED_BY);
            let limits = json!({"maxResults": MAX_RESULTS, "statusFilter": ["fail", "error"]});
            set(&mut report, &["configuration"], json!({"limits": limits}));
        }
        report
    }
}

fn result(finding: &Finding<'_>, result: &str, workload: &Reference, message: &str, now: &Time) -> Json {
    let Reference { api_version, kind, name, uid } = workload;
    json!({
        "source": names::MANAGED_BY, "policy": finding.profile(), "result": result, "scored": true,
        "message": message, "timestamp": {"seconds": now.0.as_second(), "nanos": 0},
        "resources": [{
            "apiVersion": api_version, "kind": kind, "namespace": finding.namespace(), "name": name, "uid": uid,
        }],
        "properties": {"stage": finding.stage.to_string()},
    })
}

/// Severity and category of a check. Violations of the level Baseline can lead to an escape from a container.
fn about(check: &str) -> (&'static str, &'static str) {
    let known = catalogue::ALL.iter().find(|known| known.id == check);
    match known.and_then(|known| known.pss.iter().map(|pss| pss.level).min()) {
        Some(Level::Baseline) => ("high", "Pod Security Standards (Baseline)"),
        Some(Level::Restricted) => ("medium", "Pod Security Standards (Restricted)"),
        _ => ("medium", "Palisade"),
    }
}

/// A corrected report, if its content differs. Existing results keep their times.
fn correction(found: &DynamicObject, mut desired: DynamicObject) -> Option<DynamicObject> {
    let id = |result: &Json| json!([result["rule"], result["result"], result["resources"]]).to_string();
    let known = found.data["results"].as_array().into_iter().flatten();
    let since: BTreeMap<_, _> = known.map(|result| (id(result), &result["timestamp"])).collect();
    let results = desired.data.get_mut("results").and_then(Json::as_array_mut);
    for result in results.into_iter().flatten() {
        if let Some(time) = since.get(&id(result)).filter(|time| time["seconds"].is_i64()) {
            set(result, &["timestamp"], (*time).clone());
        }
    }
    (found.data != desired.data || !reports::have_same_owner(found, &desired)).then_some(desired)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(results: &[(&str, i64)]) -> DynamicObject {
        let results: Vec<_> = results
            .iter()
            .map(|(rule, seconds)| json!({"rule": rule, "result": "fail", "timestamp": {"seconds": seconds, "nanos": 0}}))
            .collect();
        DynamicObject { types: None, metadata: kube::api::ObjectMeta::default(), data: json!({"results": results}) }
    }

    #[test]
    fn only_new_violations_get_a_new_time() {
        let found = report(&[("a", 1), ("b", 2)]);
        assert_eq!(correction(&found, report(&[("a", 9), ("b", 9)])), None);
        let written = correction(&found, report(&[("b", 9), ("c", 9)])).map(|report| report.data);
        assert_eq!(written, Some(report(&[("b", 2), ("c", 9)]).data));
    }

    #[test]
    fn checks_have_the_level_at_which_the_standards_forbid_them() {
        assert_eq!(about("privileged"), ("high", "Pod Security Standards (Baseline)"));
        assert_eq!(about("runAsNonRoot"), ("medium", "Pod Security Standards (Restricted)"));
        assert_eq!(about("a-custom-check"), ("medium", "Palisade"));
    }
}
