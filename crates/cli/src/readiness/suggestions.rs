//! Profile changes that admit many workloads: their owners cannot fix a violation that one line of a profile causes.

use std::collections::BTreeSet;

use k8s_openapi::jiff::Timestamp;

use super::{
    cluster::Judged,
    data::{ProfileChange, SuggestedChanges},
};
use crate::{
    progress::Progress,
    proposal::{self, Step, Trial},
    report::one_line,
};

/// The maximum number of suggestions in a report: `palisade suggest` has all.
const MAX_SUGGESTIONS: usize = 3;
/// The minimum number of workloads of a suggestion.
const MANY: usize = 3;

/// The suggestions for several namespaces without a caution.
pub(super) fn of(judged: &Judged, now: Timestamp) -> Vec<SuggestedChanges> {
    let Judged { accepted, tenants, version, judge, all, .. } = judged;
    // The owner of a part of a cluster does not change profiles.
    if judged.is_narrowed || all.cases.violating.len() < MANY {
        return Vec::new();
    }
    let trial = Trial::new(accepted, tenants, *version, now);
    let found = proposal::search(&trial, judge, &all.cases, MAX_SUGGESTIONS, &mut Progress::none());
    found.steps.iter().filter(|step| !step.is_careful() && step.admits.len() >= MANY).filter_map(suggestion).collect()
}

fn suggestion(step: &Step) -> Option<SuggestedChanges> {
    let mut namespaces: Vec<_> = step.admits.iter().map(|(namespace, _)| namespace).collect();
    namespaces.sort_unstable();
    namespaces.dedup();
    let change = |one: &proposal::Owned| ProfileChange {
        profile: one_line(&one.profile),
        change: one_line(&one.change.to_string()),
    };
    (namespaces.len() > 1).then(|| SuggestedChanges {
        changes: step.changes.iter().map(change).collect(),
        workloads: step.admits.len(),
        namespaces: namespaces.len(),
    })
}

impl SuggestedChanges {
    /// As a sentence that ends before the changes.
    pub fn sentence(&self, index: usize) -> String {
        let profiles: BTreeSet<_> = self.changes.iter().map(|one| one.profile.as_str()).collect();
        let noun = if profiles.len() == 1 { "profile" } else { "profiles" };
        let profiles: Vec<_> = profiles.into_iter().collect();
        let changes = match self.changes.len() {
            1 => "One change".to_owned(),
            count => format!("{count} changes together"),
        };
        let admits = if self.changes.len() == 1 { "admits" } else { "admit" };
        let more = if index == 0 { "" } else { "more " };
        format!(
            "{changes} of {noun} {} {admits} {} {more}workloads in {} namespaces:",
            profiles.join(", "),
            self.workloads,
            self.namespaces,
        )
    }
}
