//! Keeps the reports in the cluster as the last pass found them, and writes only what differs.

use std::{collections::BTreeMap, fmt::Debug};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{OwnerReference, Time};
use kube::{
    Api, Client, Resource, ResourceExt as _,
    api::{DeleteParams, ListParams, ObjectMeta, Preconditions},
};
use palisade_api::{Enforcement, Stage, ToolSecurityReport, ToolSecurityReportSpec, names};
use serde::{Serialize, de::DeserializeOwned};

use super::{
    snapshot::{Snapshot, Subject},
    tally::{Tallies, Tally},
};
use crate::{
    api_request::{ApiError, call, gone},
    context::Context,
    generated::converge::{self, DryRun},
};

/// How many reports one request lists.
const PAGE_SIZE: u32 = 250;

/// Reports, by namespace and name.
pub type Reports<K> = BTreeMap<(String, String), K>;

/// How large all reports together may be, in bytes of JSON.
#[derive(Debug)]
pub struct Budget {
    left: usize,
    /// How many reports, by profile, are without their violations, or are not written at all.
    pub cut: BTreeMap<String, usize>,
}

impl Budget {
    pub fn new(bytes: usize) -> Self {
        Self { left: bytes, cut: BTreeMap::new() }
    }

    /// As much of a report as there is room for: all, only the counts, or nothing.
    pub fn take<T: Serialize>(&mut self, profile: &str, all: T, counts: impl FnOnce(T) -> T) -> Option<T> {
        let size = |report: &T| serde_json::to_vec(report).map_or(usize::MAX, |json| json.len());
        let mut report = all;
        if size(&report) > self.left {
            *self.cut.entry(profile.to_owned()).or_default() += 1;
            report = counts(report);
        }
        self.left = self.left.checked_sub(size(&report))?;
        Some(report)
    }
}

/// Findings of a profile in a namespace.
pub struct Finding<'a> {
    subject: &'a Subject,
    namespace: &'a str,
    /// The findings.
    pub tally: &'a Tally,
    /// Stage of pods in the namespace.
    pub stage: Stage,
}

/// All findings of the profiles in this pass.
pub fn findings<'a>(snapshot: &'a Snapshot, tallies: &'a Tallies) -> impl Iterator<Item = Finding<'a>> {
    let subjects: BTreeMap<_, _> = snapshot.subjects.iter().map(|subject| (subject.name(), subject)).collect();
    tallies.iter().filter_map(move |((profile, namespace), tally)| {
        let subject = *subjects.get(profile.as_str())?;
        let observed = snapshot.namespaces.get(namespace)?;
        let stage = subject.accepted.compiled.stages_in(&observed.namespace.get()).pods;
        Some(Finding { subject, namespace, tally, stage })
    })
}

impl Finding<'_> {
    pub fn profile(&self) -> &str {
        self.subject.name()
    }

    /// The stages of the profile.
    pub fn enforcement(&self) -> &Enforcement {
        &self.subject.accepted.compiled.enforcement
    }

    pub fn namespace(&self) -> &str {
        self.namespace
    }

    /// The metadata of a report, which is deleted with the profile.
    pub fn metadata(&self, name: String) -> ObjectMeta {
        let labels = [(names::MANAGED_BY_LABEL, names::MANAGED_BY), (names::PROFILE_LABEL, self.profile())];
        ObjectMeta {
            name: Some(name),
            namespace: Some(self.namespace.to_owned()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            owner_references: Some(vec![OwnerReference {
                api_version: names::API_VERSION.to_owned(),
                kind: "ToolSecurityProfile".to_owned(),
                name: self.profile().to_owned(),
                uid: self.subject.accepted.profile.metadata.uid.clone().unwrap_or_default(),
                ..OwnerReference::default()
            }]),
            ..ObjectMeta::default()
        }
    }
}

/// The `ToolSecurityReports` that there should be.
pub fn desired(snapshot: &Snapshot, tallies: &Tallies, now: &Time, budget: &mut Budget) -> Reports<ToolSecurityReport> {
    let counts =
        |all: ToolSecurityReportSpec| ToolSecurityReportSpec { violations: vec![], first_not_judged: vec![], ..all };
    let reports = findings(snapshot, tallies).filter_map(|finding| {
        let spec = finding.tally.report(finding.stage, finding.enforcement(), now.clone());
        let spec = budget.take(finding.profile(), spec, counts)?;
        Some(ToolSecurityReport { metadata: finding.metadata(finding.profile().to_owned()), spec })
    });
    reports.map(|report| (key(&report), report)).collect()
}

pub fn key(report: &impl Resource) -> (String, String) {
    let meta = report.meta();
    (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default())
}

/// A kind of reports in the cluster.
#[derive(Debug)]
pub struct Kind<K: Resource> {
    /// Its name, in metrics.
    pub name: &'static str,
    /// How it is reached.
    pub resource: K::DynamicType,
    /// Its API in a namespace.
    pub within: fn(Client, &str, &K::DynamicType) -> Api<K>,
    /// How names begin, before the name of the profile.
    pub prefix: &'static str,
    /// A corrected report, if its content is outdated.
    pub correction: fn(&K, K) -> Option<K>,
}

pub const TOOL_SECURITY_REPORT: Kind<ToolSecurityReport> = Kind {
    name: "ToolSecurityReport",
    resource: (),
    within: |client, namespace, ()| Api::namespaced(client, namespace),
    prefix: "",
    correction: |found, desired| {
        // Apart from since when.
        let spec = ToolSecurityReportSpec { observed_time: found.spec.observed_time.clone(), ..desired.spec.clone() };
        (found.spec != spec || !have_same_owner(found, &desired)).then_some(desired)
    },
};

/// True if two reports have the same owner.
pub fn have_same_owner<K: Resource>(one: &K, other: &K) -> bool {
    let owner = |report: &K| report.owner_references().first().map(|owner| owner.uid.clone());
    owner(one) == owner(other)
}

/// Writes what differs, and deletes what should not be there. Returns how many reports were written or deleted.
pub async fn keep<K>(
    cx: &Context,
    kind: &Kind<K>,
    snapshot: &Snapshot,
    mut missing: Reports<K>,
) -> Result<usize, ApiError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let all: Api<K> = Api::all_with(cx.client.clone(), &kind.resource);
    let mut page = ListParams::default().labels(&format!("{}={}", names::MANAGED_BY_LABEL, names::MANAGED_BY));
    page = page.limit(PAGE_SIZE);
    let mut writes = 0;
    loop {
        let list = call(all.list(&page)).await?;
        for found in &list.items {
            if cx.stop.is_cancelled() {
                return Ok(writes);
            }
            if let Some(desired) = missing.remove(&key(found)) {
                if let Some(correction) = (kind.correction)(found, desired) {
                    writes += usize::from(write(cx, kind, &correction, Some(found)).await?);
                }
            } else if is_stale(cx, kind, snapshot, &found.name_any()) {
                writes += usize::from(delete(cx, kind, found).await?);
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
        writes += usize::from(write(cx, kind, report, None).await?);
    }
    Ok(writes)
}

/// True if a report without findings must be deleted: the profile was part of the pass, or was deleted. A profile that
/// is not in effect now may be so soon.
fn is_stale<K: Resource>(cx: &Context, kind: &Kind<K>, snapshot: &Snapshot, name: &str) -> bool {
    let Some(profile) = name.strip_prefix(kind.prefix) else { return false };
    snapshot.subjects.iter().any(|subject| subject.name() == profile) || cx.store.profile(profile).is_none()
}

fn within<K: Resource>(cx: &Context, kind: &Kind<K>, report: &K) -> Api<K> {
    (kind.within)(cx.client.clone(), &key(report).0, &kind.resource)
}

async fn write<K>(cx: &Context, kind: &Kind<K>, desired: &K, found: Option<&K>) -> Result<bool, ApiError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let api = within(cx, kind, desired);
    match converge::send(&api, desired, found, names::field_manager::REPORT, DryRun(false)).await {
        Ok((_, verb)) => {
            cx.metrics.writes.wrote(kind.name, verb.label());
            Ok(true)
        }
        Err(error) if error.is_without_namespace() => Ok(false),
        Err(error) => Err(error),
    }
}

async fn delete<K>(cx: &Context, kind: &Kind<K>, found: &K) -> Result<bool, ApiError>
where
    K: Resource + Clone + Debug + DeserializeOwned,
{
    let preconditions = Preconditions { uid: found.uid(), ..Preconditions::default() };
    let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
    let existed = gone(within(cx, kind, found).delete(&found.name_any(), &parameters)).await?;
    if existed {
        cx.metrics.writes.wrote(kind.name, "delete");
    }
    Ok(existed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_beyond_the_budget_have_counts_only_or_are_left_out() {
        // In JSON: 10, 10, 10 and 2 bytes.
        let mut budget = Budget::new(23);
        let mut take = |text: &str| budget.take("tools", text.to_owned(), |_| String::new());
        let taken = [take("12345678"), take("12345678"), take("12345678"), take("1234")];
        let all = Some("12345678".to_owned());
        assert_eq!(taken, [all.clone(), all, Some(String::new()), None]);
        assert_eq!(budget.cut, [("tools".to_owned(), 2)].into());
    }
}
