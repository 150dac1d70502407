//! The suggestions in the form of `-o json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value as Json;

use super::{by_profile, changed};
use crate::{
    profiles::Accepted,
    proposal::{Found, Owned, Step, Suggestions, merge_patch},
    report::one_line,
};

/// The subject.
pub(super) struct About {
    /// The time of the evaluation.
    pub time: String,
    /// The version of the API server.
    pub server: String,
    /// The namespaces of objects that are unknown.
    pub unknown: BTreeSet<String>,
}

/// All suggestions.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Suggested {
    api_version: &'static str,
    kind: &'static str,
    time: String,
    server: String,
    /// The number of evaluated pods and workloads.
    pub objects: usize,
    /// The number of workloads that violate a profile, and of their namespaces.
    pub violating: Count,
    /// The workloads that all suggestions together admit.
    pub admitted: Count,
    /// The most helpful first; each in addition to those before it.
    pub suggestions: Vec<Suggestion>,
    /// For each profile, the merge patch (RFC 7386) with all suggestions that have no caution and help several
    /// namespaces.
    pub patches: BTreeMap<String, Json>,
    /// The number of workloads that further suggestions would admit.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
    /// Workloads that no suggestion admits.
    pub left: Vec<RemainingWorkload>,
    /// Objects that could not be evaluated.
    pub not_judged: Vec<NotJudged>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Workloads, and their namespaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(super) struct Count {
    pub workloads: usize,
    pub namespaces: usize,
}

impl Count {
    /// Of workloads with their namespaces.
    pub fn of<'a>(places: impl Iterator<Item = &'a (String, String)>) -> Self {
        let (mut workloads, mut namespaces) = (0, BTreeSet::new());
        for (namespace, _) in places {
            workloads += 1;
            namespaces.insert(namespace);
        }
        Self { workloads, namespaces: namespaces.len() }
    }
}

/// Changes to make together.
#[derive(Serialize)]
pub(super) struct Suggestion {
    pub changes: Vec<ShownChange>,
    #[serde(flatten)]
    pub count: Count,
    /// The namespace, if only one of several namespaces needs the changes.
    #[serde(rename = "onlyNamespace", skip_serializing_if = "Option::is_none")]
    pub only: Option<String>,
    /// The workloads that it admits in addition to the suggestions before it.
    pub admits: Vec<Place>,
}

/// A change with its text.
#[derive(Serialize)]
pub(super) struct ShownChange {
    pub text: String,
    #[serde(flatten)]
    pub of: Owned,
}

/// A workload in its namespace.
#[derive(Clone, Serialize)]
pub(super) struct Place {
    pub namespace: String,
    pub workload: String,
}

impl Place {
    fn of((namespace, workload): &(String, String)) -> Self {
        Self { namespace: one_line(namespace), workload: one_line(workload) }
    }
}

/// A workload that needs a change by its owner.
#[derive(Serialize)]
pub(super) struct RemainingWorkload {
    #[serde(flatten)]
    pub place: Place,
    pub violations: Vec<RemainingViolation>,
    /// The reasons why no change is proposed, by check.
    pub why: Vec<String>,
}

/// A violation.
#[derive(PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub(super) struct RemainingViolation {
    pub profile: String,
    pub check: String,
    pub message: String,
}

/// An object that could not be evaluated.
#[derive(Serialize)]
pub(super) struct NotJudged {
    #[serde(flatten)]
    pub place: Place,
    pub why: String,
}

impl Suggested {
    /// From the results.
    pub fn new(about: About, found: &Found, suggestions: &Suggestions, accepted: &[Accepted]) -> Self {
        let plain = by_profile(suggestions.steps.iter().filter(|step| !step.is_careful()));
        let patches = changed(accepted, &plain).into_iter();
        let patches = patches.map(|(one, after)| (one.checked.profile.clone(), merge_patch(&one.profile, &after)));
        let unknown = about.unknown.iter().map(|namespace| NotJudged {
            place: Place { namespace: one_line(namespace), workload: String::new() },
            why: "its labels are unknown, because its Namespace is not in the files".to_owned(),
        });
        let not_judged =
            found.not_judged.iter().map(|(place, why)| NotJudged { place: Place::of(place), why: why.clone() });
        Self {
            api_version: "report.toolsecurity.dev/v1alpha1",
            kind: "Suggestions",
            time: about.time,
            server: about.server,
            objects: found.objects,
            violating: Count::of(found.violating.keys()),
            admitted: Count::of(suggestions.steps.iter().flat_map(|step| &step.admits)),
            suggestions: suggestions.steps.iter().map(suggestion).collect(),
            patches: patches.collect(),
            more: suggestions.more,
            left: suggestions.left.iter().map(left).collect(),
            not_judged: not_judged.chain(unknown).collect(),
        }
    }
}

fn suggestion(step: &Step) -> Suggestion {
    let shown = |of: &Owned| ShownChange { text: one_line(&of.change.to_string()), of: of.clone() };
    Suggestion {
        changes: step.changes.iter().map(shown).collect(),
        count: Count::of(step.admits.iter()),
        only: step.only.as_deref().map(one_line),
        admits: step.admits.iter().map(Place::of).collect(),
    }
}

fn left(one: &crate::proposal::Left) -> RemainingWorkload {
    let violations: BTreeSet<_> = one
        .violations
        .iter()
        .map(|one| RemainingViolation {
            profile: one.profile.clone(),
            check: one.check.clone(),
            message: one_line(&one.message),
        })
        .collect();
    RemainingWorkload {
        place: Place::of(&one.place),
        violations: violations.into_iter().collect(),
        why: one.why.iter().map(|why| one_line(why)).collect(),
    }
}
