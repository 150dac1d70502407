//! What a report says: `-o json` writes it, `--earlier` reads it, and the other formats show it.

use std::collections::BTreeMap;

use palisade_api::Stage;
use palisade_objects::workload::Workload;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::smallest::Least;

/// `apiVersion` and `kind` of the JSON.
pub(super) const API_VERSION: &str = "report.toolsecurity.dev/v1alpha1";
/// See [`API_VERSION`].
pub(super) const KIND: &str = "Report";

/// How near a namespace is to the stage Deny.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Readiness {
    /// Something in it violates a profile, and no change is known with which it would comply.
    NeedsWork,
    /// Something in it could not be judged.
    NotJudged,
    /// Something in it violates a profile; for each a change is known with which it complies.
    Nearly,
    /// All in it complies.
    Ready,
}

impl Readiness {
    /// All, in the order in which they need attention.
    pub const ALL: [Self; 4] = [Self::NeedsWork, Self::NotJudged, Self::Nearly, Self::Ready];

    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::NeedsWork => "Needs work",
            Self::NotJudged => "Not judged",
            Self::Nearly => "Nearly ready",
            Self::Ready => "Ready",
        }
    }

    /// What it means, for people.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::NeedsWork => {
                "Something in the namespace violates a profile, and nobody but its owner knows what would do instead."
            }
            Self::NotJudged => "Something in the namespace could not be judged; the reason stands beside it.",
            Self::Nearly => {
                "Something in the namespace violates a profile, and for each violation a change is known that was tried."
            }
            Self::Ready => {
                "Everything in the namespace complies: in the stage Deny, nothing that it has would be denied."
            }
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
    /// What time it is of.
    pub time: String,
    /// The version of the API server that was asked, or that objects were judged for.
    pub server: String,
    pub summary: Summary,
    pub profiles: Vec<OfProfile>,
    /// Changes of profiles that admit many workloads in several namespaces.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<OfSuggestion>,
    /// Those that something violates, the most violated first.
    pub checks: Vec<OfCheck>,
    /// Those that a profile selects.
    pub namespaces: Vec<OfNamespace>,
    /// Those that violate a profile.
    pub workloads: Vec<OfWorkload>,
    pub not_judged: Vec<NotJudged>,
    /// Namespaces that no profile selects.
    pub not_selected: Vec<String>,
    /// Earlier reports and this one, by time; empty without earlier ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub trend: Vec<Point>,
    /// What has changed since the latest of the earlier reports.
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
    /// Namespaces where each profile that selects them is in the stage Deny.
    pub in_deny: usize,
    /// Workloads that were judged, and pods without one.
    pub workloads: usize,
    /// Those of them that violate a profile.
    pub violating: usize,
    /// Those of these for which a change is known with which they comply.
    pub with_change: usize,
    /// Pods and workloads that were judged.
    pub objects: usize,
}

impl Summary {
    /// How many namespaces are so ready.
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

/// Changes of profiles to make at once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OfSuggestion {
    /// The changes, each with its profile.
    pub changes: Vec<OfProfileChange>,
    /// How many workloads comply then, in how many namespaces.
    pub workloads: usize,
    pub namespaces: usize,
}

/// A change of a profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct OfProfileChange {
    pub profile: String,
    /// As people write it: `spec.volumes.allowed += nfs`.
    pub change: String,
}

/// A profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfProfile {
    pub name: String,
    /// Its stage where a namespace has none of its own.
    pub stage: Stage,
    /// How many namespaces it selects, and in which stages they are.
    pub namespaces: usize,
    pub deny: usize,
    pub warn: usize,
    pub audit: usize,
    /// How many workloads violate it.
    pub violating: usize,
}

/// A check.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfCheck {
    pub check: String,
    /// What it forbids.
    pub title: String,
    /// How many workloads violate it, in how many namespaces.
    pub workloads: usize,
    pub namespaces: usize,
}

/// A namespace.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfNamespace {
    pub name: String,
    /// What the annotation says that names its owner; empty if it has none, or none was asked for.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub owner: String,
    pub readiness: Readiness,
    /// The stage of pods in it, by profile.
    pub stages: BTreeMap<String, Stage>,
    /// How many workloads were judged, and how many violate a profile.
    pub workloads: usize,
    pub violating: usize,
    /// Why every pod of it violates a profile, by profile.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub problems: BTreeMap<String, String>,
    /// How many workloads violate each check.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub checks: BTreeMap<String, usize>,
}

/// A workload that violates a profile.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfWorkload {
    pub namespace: String,
    /// Kind and name.
    pub workload: String,
    /// How many objects of it violate a profile: itself, and pods.
    pub objects: usize,
    /// Whether a profile that it violates is in the stage Deny there: then its pods are denied.
    pub denied: bool,
    pub violations: Vec<OfViolation>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<OfChange>,
    /// What else is to be known of it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct OfViolation {
    pub profile: String,
    pub check: String,
    pub message: String,
    /// In how many objects.
    pub objects: usize,
}

/// The smallest change that helps.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct OfChange {
    /// Whether the workload complies with it.
    pub complies: bool,
    /// JSON patch of the object.
    pub patch: Json,
    /// The same for people, with `+`, `-` and `~`.
    pub lines: Vec<String>,
    /// The checks that are violated even so, because no complying value is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub without_known_value: Vec<String>,
}

impl OfChange {
    /// Of an object of a kind; without one, of a pod.
    pub fn new(least: Least, kind: Option<&Workload>) -> Self {
        let lines = least.lines_at(kind);
        let Least { patch, left, .. } = least;
        Self { complies: left.is_empty(), patch, lines, without_known_value: left.into_iter().collect() }
    }
}

/// What could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct NotJudged {
    pub namespace: String,
    /// Kind and name; empty for a whole namespace.
    pub workload: String,
    pub why: String,
}

/// What a report of a time counted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Point {
    pub time: String,
    /// The names of the profiles that were judged by.
    pub profiles: Vec<String>,
    #[serde(flatten)]
    pub summary: Summary,
}

/// What has changed since an earlier report, by `namespace/Kind/name`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Since {
    pub time: String,
    /// Workloads that violate a profile and did not then, and the other way round.
    pub new: Vec<String>,
    pub gone: Vec<String>,
}
