//! Keeps the reports in the cluster as the last pass found them, and writes only what differs.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::{
    Api, ResourceExt as _,
    api::{DeleteParams, ListParams, ObjectMeta, Preconditions},
};
use palisade_api::{ToolSecurityReport, ToolSecurityReportSpec, names};

use super::{
    pass::{Snapshot, Subject},
    tally::Tallies,
};
use crate::{
    call::{ApiError, call, gone},
    context::Context,
    converge::{self, Dry},
};

/// The kind, in metrics.
const REPORT: &str = "ToolSecurityReport";
/// How many reports one request lists.
const PAGE: u32 = 250;

/// What reports there should be, by namespace and profile.
#[derive(Debug)]
pub struct Desired {
    reports: BTreeMap<(String, String), ToolSecurityReport>,
    /// How many reports, by profile, are without their violations, or are not written at all, because all together
    /// would be larger than they may be.
    pub cut: BTreeMap<String, usize>,
}

impl Desired {
    /// From what was found. All reports together are not larger than `budget`, in bytes of JSON: those that come last
    /// have counts only, or are left out.
    pub fn new(snapshot: &Snapshot, tallies: &Tallies, now: &Time, budget: usize) -> Self {
        let subjects: BTreeMap<_, _> = snapshot.subjects.iter().map(|subject| (subject.name(), subject)).collect();
        let mut desired = Self { reports: BTreeMap::new(), cut: BTreeMap::new() };
        let mut left = budget;
        for ((profile, namespace), tally) in tallies {
            let Some(subject) = subjects.get(profile.as_str()) else { continue };
            let Some(observed) = snapshot.namespaces.get(namespace) else { continue };
            let stage = subject.accepted.compiled.stages_in(&observed.namespace).pods;
            let full = tally.report(stage, now.clone());
            let counts = || ToolSecurityReportSpec { violations: vec![], first_not_judged: vec![], ..full.clone() };
            let spec = if size(&full) <= left {
                Some(full)
            } else {
                *desired.cut.entry(profile.clone()).or_default() += 1;
                Some(counts()).filter(|counts| size(counts) <= left)
            };
            if let Some(spec) = spec {
                left -= size(&spec);
                desired.reports.insert((namespace.clone(), profile.clone()), report(subject, namespace, spec));
            }
        }
        desired
    }
}

fn size(spec: &ToolSecurityReportSpec) -> usize {
    serde_json::to_vec(spec).map_or(usize::MAX, |json| json.len())
}

fn report(subject: &Subject, namespace: &str, spec: ToolSecurityReportSpec) -> ToolSecurityReport {
    let profile = &subject.accepted.profile.metadata;
    let mut report = ToolSecurityReport::new(subject.name(), spec);
    let labels = [(names::MANAGED_BY_LABEL, names::MANAGED_BY), (names::PROFILE_LABEL, subject.name())];
    report.metadata = ObjectMeta {
        namespace: Some(namespace.to_owned()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        // It goes when the profile goes.
        owner_references: Some(vec![OwnerReference {
            api_version: names::API_VERSION.to_owned(),
            kind: "ToolSecurityProfile".to_owned(),
            name: subject.name().to_owned(),
            uid: profile.uid.clone().unwrap_or_default(),
            ..OwnerReference::default()
        }]),
        ..report.metadata
    };
    report
}

/// Whether a report says what it should, apart from since when.
fn is_same(found: &ToolSecurityReport, desired: &ToolSecurityReport) -> bool {
    let spec = ToolSecurityReportSpec { observed_time: found.spec.observed_time.clone(), ..desired.spec.clone() };
    let owner = |report: &ToolSecurityReport| report.owner_references().first().map(|owner| owner.uid.clone());
    found.spec == spec && owner(found) == owner(desired)
}

/// Writes what differs, and deletes what should not be there. Returns how many reports were written or deleted.
pub async fn keep(cx: &Context, snapshot: &Snapshot, desired: Desired) -> Result<usize, ApiError> {
    let mut missing = desired.reports;
    let all: Api<ToolSecurityReport> = Api::all(cx.client.clone());
    let mut page = ListParams::default().labels(&format!("{}={}", names::MANAGED_BY_LABEL, names::MANAGED_BY));
    page = page.limit(PAGE);
    let mut writes = 0;
    loop {
        let list = call(all.list(&page)).await?;
        for found in &list.items {
            if cx.stop.is_cancelled() {
                return Ok(writes);
            }
            let key = (found.namespace().unwrap_or_default(), found.name_any());
            match missing.remove(&key) {
                Some(desired) if is_same(found, &desired) => {}
                Some(desired) => writes += usize::from(write(cx, &desired, Some(found)).await?),
                None if is_stale(cx, snapshot, &key.1) => writes += usize::from(delete(cx, found).await?),
                None => {}
            }
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => break,
        }
    }
    for report in missing.values() {
        if cx.stop.is_cancelled() {
            return Ok(writes);
        }
        writes += usize::from(write(cx, report, None).await?);
    }
    Ok(writes)
}

/// Whether a report that nothing was found for is to go: the profile was judged by, or is gone. One that is not in force
/// now may be so soon.
fn is_stale(cx: &Context, snapshot: &Snapshot, profile: &str) -> bool {
    snapshot.subjects.iter().any(|subject| subject.name() == profile) || cx.store.profile(profile).is_none()
}

async fn write(
    cx: &Context,
    desired: &ToolSecurityReport,
    found: Option<&ToolSecurityReport>,
) -> Result<bool, ApiError> {
    let api: Api<ToolSecurityReport> = Api::namespaced(cx.client.clone(), &desired.namespace().unwrap_or_default());
    match converge::send(&api, desired, found, names::field_manager::REPORT, Dry::No).await {
        Ok((_, verb)) => {
            cx.metrics.wrote(REPORT, verb.label());
            Ok(true)
        }
        Err(error) if error.is_without_namespace() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn delete(cx: &Context, found: &ToolSecurityReport) -> Result<bool, ApiError> {
    let api: Api<ToolSecurityReport> = Api::namespaced(cx.client.clone(), &found.namespace().unwrap_or_default());
    let preconditions = Preconditions { uid: found.uid(), ..Preconditions::default() };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    let existed = gone(api.delete(&found.name_any(), &parameters)).await?;
    if existed {
        cx.metrics.wrote(REPORT, "delete");
    }
    Ok(existed)
}
