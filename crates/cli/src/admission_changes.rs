//! The effect of a profile change on existing objects or past requests: newly denied, and newly admitted. Pure.

use std::collections::{BTreeMap, BTreeSet};

use palisade_kube_json::text::truncated;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::evaluator::Violation;

/// Maximum length of a message about a violation, in characters.
const MAX_MESSAGE: usize = 300;

/// The answer of an API server to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Effect {
    /// It has no violations.
    Passes,
    /// It violates a profile at the stage Warn or Audit.
    Reported,
    /// It is denied.
    Denied,
}

impl Effect {
    /// From the violations of the object.
    pub fn of(violations: &[Violation]) -> Self {
        match violations.iter().map(|one| one.denied).max() {
            None => Self::Passes,
            Some(false) => Self::Reported,
            Some(true) => Self::Denied,
        }
    }
}

/// The difference after a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Change {
    /// It was not denied, and will be.
    NewlyDenied,
    /// It was denied, and will not be.
    NewlyAdmitted,
    /// It had no violations, and will be warned or audited.
    NewlyReported,
    /// It was warned or audited, and will have no violations.
    NoLongerReported,
}

impl Change {
    /// All, the most important first.
    pub const ALL: [Self; 4] = [Self::NewlyDenied, Self::NewlyAdmitted, Self::NewlyReported, Self::NoLongerReported];

    /// The change from one effect to another, if there is one.
    pub fn between(before: Effect, after: Effect) -> Option<Self> {
        match (before, after) {
            (before, after) if before == after => None,
            (_, Effect::Denied) => Some(Self::NewlyDenied),
            (Effect::Denied, _) => Some(Self::NewlyAdmitted),
            (_, Effect::Passes) => Some(Self::NoLongerReported),
            (_, Effect::Reported) => Some(Self::NewlyReported),
        }
    }

    /// The title.
    pub fn title(self) -> &'static str {
        match self {
            Self::NewlyDenied => "newly denied",
            Self::NewlyAdmitted => "newly admitted",
            Self::NewlyReported => "newly warned or audited",
            Self::NoLongerReported => "no longer warned or audited",
        }
    }
}

/// The place of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// Its namespace.
    pub namespace: String,
    /// Its topmost workload: `Deployment/web`.
    pub workload: String,
}

/// The objects of one workload that one change concerns.
#[derive(Debug, Default)]
pub struct Line {
    /// Their number.
    pub objects: u64,
    /// The checks that differ, by profile and id, each with the message about the first object.
    pub checks: BTreeMap<(String, String), String>,
}

/// Objects without a verdict for one reason.
#[derive(Debug, Default)]
pub struct NoVerdict {
    /// Their number.
    pub count: u64,
    /// The first one, and more about it.
    pub first: String,
}

/// The changes of admission for many objects.
#[derive(Debug, Default)]
pub struct AdmissionChanges {
    /// The number of objects that were evaluated before and after the change.
    pub judged: u64,
    /// The number of them that are denied before and after.
    pub still_denied: u64,
    /// By change and workload.
    pub lines: BTreeMap<(Change, Place), Line>,
    /// By reason.
    pub no_verdict: BTreeMap<String, NoVerdict>,
}

/// The sums of one change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Total {
    /// The number of objects or requests.
    pub objects: u64,
    /// The number of workloads.
    pub workloads: usize,
    /// The number of namespaces.
    pub namespaces: usize,
}

impl AdmissionChanges {
    /// Adds an object with its violations before and after the change; which ones count depends on the change.
    pub fn add(&mut self, place: Place, before: &[Violation], after: &[Violation]) {
        self.judged += 1;
        let (was, is) = (Effect::of(before), Effect::of(after));
        self.still_denied += u64::from(was == Effect::Denied && is == Effect::Denied);
        let Some(change) = Change::between(was, is) else { return };
        let (of, denied) = match change {
            Change::NewlyDenied => (after, true),
            Change::NewlyAdmitted => (before, true),
            Change::NewlyReported => (after, false),
            Change::NoLongerReported => (before, false),
        };
        let line = self.lines.entry((change, place)).or_default();
        line.objects += 1;
        for one in of.iter().filter(|one| one.denied == denied) {
            let text = || truncated(&one.message, MAX_MESSAGE).to_owned();
            line.checks.entry((one.profile.clone(), one.check.clone())).or_insert_with(text);
        }
    }

    /// Counts an object without a verdict, with the reason.
    pub fn unknown(&mut self, why: &str, which: impl FnOnce() -> String) {
        let known = self.no_verdict.entry(why.to_owned()).or_default();
        known.count += 1;
        if known.count == 1 {
            truncated(&which(), MAX_MESSAGE).clone_into(&mut known.first);
        }
    }

    /// The lines of one change, by namespace and workload.
    pub fn of(&self, change: Change) -> impl Iterator<Item = (&Place, &Line)> {
        self.lines.iter().filter(move |((of, _), _)| *of == change).map(|((_, place), line)| (place, line))
    }

    /// The sums of one change.
    pub fn total(&self, change: Change) -> Total {
        let namespaces: BTreeSet<_> = self.of(change).map(|(place, _)| &place.namespace).collect();
        Total {
            objects: self.of(change).map(|(_, line)| line.objects).sum(),
            workloads: self.of(change).count(),
            namespaces: namespaces.len(),
        }
    }

    /// The sums of one change, by profile and check: those with the most workloads first.
    pub fn by_check(&self, change: Change) -> Vec<((&str, &str), Total)> {
        let mut checks = BTreeMap::<_, (u64, usize, BTreeSet<&str>)>::new();
        for (place, line) in self.of(change) {
            for (profile, check) in line.checks.keys() {
                let sum = checks.entry((profile.as_str(), check.as_str())).or_default();
                sum.0 += line.objects;
                sum.1 += 1;
                sum.2.insert(&place.namespace);
            }
        }
        let total = |(objects, workloads, namespaces): (u64, usize, BTreeSet<&str>)| Total {
            objects,
            workloads,
            namespaces: namespaces.len(),
        };
        let mut all: Vec<_> = checks.into_iter().map(|(check, sum)| (check, total(sum))).collect();
        all.sort_by(|one, other| other.1.workloads.cmp(&one.1.workloads).then_with(|| one.0.cmp(&other.0)));
        all
    }

    /// Whether an object is newly denied.
    pub fn denies(&self) -> bool {
        self.of(Change::NewlyDenied).next().is_some()
    }

    /// All lines, as JSON.
    pub fn json(&self) -> Json {
        let mut changes = serde_json::Map::new();
        for change in Change::ALL {
            let workloads: Vec<_> = self.of(change).map(|(place, line)| of_line(place, line)).collect();
            let checks: Vec<_> = self
                .by_check(change)
                .into_iter()
                .map(|((profile, check), total)| {
                    json!({"profile": profile, "check": check, "objects": total.objects, "workloads": total.workloads,
                        "namespaces": total.namespaces})
                })
                .collect();
            let of_change = json!({"total": self.total(change), "checks": checks, "workloads": workloads});
            let key = json!(change).as_str().unwrap_or_default().to_owned();
            changes.insert(key, of_change);
        }
        let unknown = self.no_verdict.iter();
        let unknown: Vec<_> = unknown
            .map(|(why, NoVerdict { count, first })| json!({"reason": why, "count": count, "first": first}))
            .collect();
        changes.insert("judged".to_owned(), json!(self.judged));
        changes.insert("stillDenied".to_owned(), json!(self.still_denied));
        changes.insert("noVerdict".to_owned(), json!(unknown));
        Json::Object(changes)
    }
}

fn of_line(place: &Place, line: &Line) -> Json {
    let checks: Vec<_> = line
        .checks
        .iter()
        .map(|((profile, check), message)| json!({"profile": profile, "check": check, "message": message}))
        .collect();
    json!({"namespace": place.namespace, "workload": place.workload, "objects": line.objects, "checks": checks})
}

#[cfg(test)]
mod tests {
    use super::*;

    fn violation(check: &str, denied: bool) -> Violation {
        Violation { profile: "tools".to_owned(), check: check.to_owned(), message: format!("{check} is wrong"), denied }
    }

    fn place(namespace: &str, workload: &str) -> Place {
        Place { namespace: namespace.to_owned(), workload: workload.to_owned() }
    }

    #[test]
    fn what_is_different_is_counted_by_workload_and_check() {
        let mut changes = AdmissionChanges::default();
        let (denied, warned) =
            ([violation("privileged", true), violation("hostPorts", false)], [violation("hostPorts", false)]);
        for _ in 0..3 {
            changes.add(place("a", "Deployment/web"), &warned, &denied);
        }
        changes.add(place("b", "Pod/p"), &[], &denied);
        changes.add(place("b", "Pod/q"), &denied, &denied);
        changes.add(place("b", "Pod/r"), &denied, &warned);
        changes.add(place("b", "Pod/s"), &[], &warned);
        changes.add(place("b", "Pod/t"), &warned, &[]);
        changes.add(place("b", "Pod/u"), &[], &[]);
        assert_eq!((changes.judged, changes.still_denied, changes.denies()), (9, 1, true));
        assert_eq!(changes.total(Change::NewlyDenied), Total { objects: 4, workloads: 2, namespaces: 2 });
        // A check that only warns denies nobody.
        let expected = Total { objects: 4, workloads: 2, namespaces: 2 };
        assert_eq!(changes.by_check(Change::NewlyDenied), [(("tools", "privileged"), expected)]);
        for change in [Change::NewlyAdmitted, Change::NewlyReported, Change::NoLongerReported] {
            assert_eq!(changes.total(change), Total { objects: 1, workloads: 1, namespaces: 1 }, "{change:?}");
        }
    }

    #[test]
    fn each_change_of_an_effect_is_one_or_none() {
        let [passes, reported, denied] = [Effect::Passes, Effect::Reported, Effect::Denied];
        for same in [passes, reported, denied] {
            assert_eq!(Change::between(same, same), None);
        }
        assert_eq!(Change::between(reported, denied), Some(Change::NewlyDenied));
        assert_eq!(Change::between(denied, reported), Some(Change::NewlyAdmitted));
        assert_eq!(Effect::of(&[violation("a", false), violation("b", true)]), denied);
        assert_eq!(Effect::of(&[violation("a", false)]), reported);
    }

    #[test]
    fn what_has_no_verdict_is_counted_by_its_reason() {
        let mut changes = AdmissionChanges::default();
        changes.unknown("too large", || "Pod/a".to_owned());
        changes.unknown("too large", || "Pod/b".to_owned());
        assert_eq!(changes.json()["noVerdict"], json!([{"reason": "too large", "count": 2, "first": "Pod/a"}]));
    }
}
