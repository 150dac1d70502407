//! The content of a report: `-o json` writes it, `--earlier` reads it, and the other formats show it.

use std::collections::BTreeMap;

use palisade_api::Stage;
use palisade_kube_json::workload::Workload;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::smallest::MinimalFix;

/// `apiVersion` and `kind` of the JSON.
pub(super) const API_VERSION: &str = "report.toolsecurity.dev/v1alpha1";
/// See [`API_VERSION`].
pub(super) const KIND: &str = "Report";

/// How close a namespace is to the stage Deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Readiness {
    /// An object violates a profile, and no change is known with which it would comply.
    NeedsWork,
    /// An object could not be evaluated.
    NotJudged,
    /// An object violates a profile; for each violation a change is known that fixes it.
    Nearly,
    /// All objects comply.
    Ready,
}

impl Readiness {
    /// All, in the order of urgency.
    pub const ALL: [Self; 4] = [Self::NeedsWork, Self::NotJudged, Self::Nearly, Self::Ready];

    /// The title.
    pub fn title(self) -> &'static str {
        match self {
            Self::NeedsWork => "Needs work",
            Self::NotJudged => "Not evaluated",
            Self::Nearly => "Nearly ready",
            Self::Ready => "Ready",
        }
    }

    /// The meaning, as a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NeedsWork => {
                "An object in the namespace violates a profile, and no change is known that fixes it. Its owner must \
                 decide."
            }
            Self::NotJudged => "An object in the namespace could not be evaluated, for the given reason.",
            Self::Nearly => {
                "An object in the namespace violates a profile, and for each violation a tested change is listed."
            }
            Self::Ready => "All objects in the namespace comply: at the stage Deny, none of them would be denied.",
        }
    }

    /// Its word in JSON, and its class in HTML.
    pub fn word(self) -> &'static str {
        match self {
            Self::NeedsWork => "needsWork",
            Self::NotJudged => "notJudged",
            Self::Nearly => "nearly",
            Self::Ready => "ready",
        }
    }
}

/// A report.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Report {
    pub api_version: String,
    pub kind: String,
    pub title: String,
    /// The time of the report.
    pub time: String,
    /// The version of the API server, or the version that objects were evaluated for.
    pub server: String,
    pub summary: Summary,
    pub profiles: Vec<ProfileReadiness>,
    /// Changes of profiles that admit many workloads in several namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<SuggestedChanges>,
    /// Violated checks, the most violated first.
    pub checks: Vec<CheckCounts>,
    /// Namespaces that a profile selects.
    pub namespaces: Vec<NamespaceReadiness>,
    /// Workloads that violate a profile.
    pub workloads: Vec<ViolatingWorkload>,
    pub not_judged: Vec<NotJudged>,
    /// Namespaces that no profile selects.
    pub not_selected: Vec<String>,
    /// Earlier reports and this one, by time; empty without earlier ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trend: Vec<Point>,
    /// The changes since the latest of the earlier reports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<Since>,
}

/// The figures.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Summary {
    /// Namespaces that a profile selects.
    pub namespaces: usize,
    pub ready: usize,
    pub nearly: usize,
    pub needs_work: usize,
    pub not_judged: usize,
    /// Namespaces in which each profile that selects them is at the stage Deny.
    pub in_deny: usize,
    /// Evaluated workloads, and pods without one.
    pub workloads: usize,
    /// Workloads among them that violate a profile.
    pub violating: usize,
    /// Violating workloads with a known change that fixes them.
    pub with_change: usize,
    /// Evaluated pods and workloads.
    pub objects: usize,
}

impl Summary {
    /// The number of namespaces with this readiness.
    pub fn count(&self, readiness: Readiness) -> usize {
        match readiness {
            Readiness::NeedsWork => self.needs_work,
            Readiness::NotJudged => self.not_judged,
            Readiness::Nearly => self.nearly,
            Readiness::Ready => self.ready,
        }
    }

    /// Counts a namespace.
    pub fn add(&mut self, readiness: Readiness) {
        self.namespaces += 1;
        match readiness {
            Readiness::NeedsWork => self.needs_work += 1,
            Readiness::NotJudged => self.not_judged += 1,
            Readiness::Nearly => self.nearly += 1,
            Readiness::Ready => self.ready += 1,
        }
    }
}

/// Changes of profiles to make together.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct SuggestedChanges {
    /// The changes, each with its profile.
    pub changes: Vec<ProfileChange>,
    /// The number of workloads that comply after it, and of their namespaces.
    pub workloads: usize,
    pub namespaces: usize,
}

/// A change of a profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ProfileChange {
    pub profile: String,
    /// In the notation `spec.volumes.allowed += nfs`.
    pub change: String,
}

/// A profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ProfileReadiness {
    pub name: String,
    /// Its stage in namespaces without a separate stage.
    pub stage: Stage,
    /// The stages of checks with a separate stage, by id. A violation of only checks that are not in Deny is not
    /// counted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, Stage>,
    /// The number of namespaces that it selects, and of those at each stage.
    pub namespaces: usize,
    pub deny: usize,
    pub warn: usize,
    pub audit: usize,
    /// The number of workloads that violate it.
    pub violating: usize,
}

impl ProfileReadiness {
    /// The effect of violations of checks with a separate stage; `None` if there are none.
    pub fn own_stage(&self) -> Option<String> {
        let stage = self.checks.values().next()?;
        let ids: Vec<_> = self.checks.keys().map(String::as_str).collect();
        let (ids, what) = (ids.join(", "), if ids.len() == 1 { "the check" } else { "the checks" });
        let (only, not) = if *stage == Stage::Deny { ("", "") } else { ("only ", ", and is not counted here") };
        Some(format!("a violation of {only}{what} {ids} {}{not}", stage.consequence()))
    }
}

/// A check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CheckCounts {
    pub check: String,
    /// The forbidden setting.
    pub title: String,
    /// The number of workloads that violate it, and of their namespaces.
    pub workloads: usize,
    pub namespaces: usize,
}

/// A namespace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct NamespaceReadiness {
    pub name: String,
    /// The owner from the annotation; empty if it is not set or not requested.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    pub readiness: Readiness,
    /// The stage of pods in it, by profile.
    pub stages: BTreeMap<String, Stage>,
    /// The number of evaluated workloads, and of those that violate a profile.
    pub workloads: usize,
    pub violating: usize,
    /// The reason why every pod in it violates a profile, by profile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub problems: BTreeMap<String, String>,
    /// The number of workloads that violate each check.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, usize>,
}

/// A workload that violates a profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ViolatingWorkload {
    pub namespace: String,
    /// Kind and name.
    pub workload: String,
    /// The number of its objects that violate a profile: itself, and pods.
    pub objects: usize,
    /// Whether a violated profile is at the stage Deny there: then its pods are denied.
    pub denied: bool,
    pub violations: Vec<WorkloadViolation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<WorkloadChange>,
    /// A remark about it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct WorkloadViolation {
    pub profile: String,
    pub check: String,
    pub message: String,
    /// The number of objects with it.
    pub objects: usize,
}

/// The smallest change that helps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WorkloadChange {
    /// Whether the workload complies with it.
    pub complies: bool,
    /// JSON patch of the object.
    pub patch: Json,
    /// The same as text, with `+`, `-` and `~`.
    pub lines: Vec<String>,
    /// The checks that are violated after the change, because no compliant value is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_known_value: Vec<String>,
}

impl WorkloadChange {
    /// For an object of a kind; without one, for a pod.
    pub fn new(least: MinimalFix, kind: Option<&Workload>) -> Self {
        let lines = least.lines_at(kind);
        let MinimalFix { patch, left, .. } = least;
        Self { complies: left.is_empty(), patch, lines, without_known_value: left.into_iter().collect() }
    }
}

/// An object that could not be evaluated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct NotJudged {
    pub namespace: String,
    /// Kind and name; empty for a whole namespace.
    pub workload: String,
    pub why: String,
}

/// The counts of a report at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    pub time: String,
    /// The names of the profiles.
    pub profiles: Vec<String>,
    #[serde(flatten)]
    pub summary: Summary,
}

/// The changes since an earlier report, by `namespace/Kind/name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Since {
    pub time: String,
    /// Workloads that violate a profile and did not before, and those that no longer do.
    pub new: Vec<String>,
    pub gone: Vec<String>,
}
