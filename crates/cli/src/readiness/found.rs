//! What exists, judged as if it were created now, and gathered by workload.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
};

use palisade_objects::{owners::Reference, workload::Workload};
use serde_json::Value as Json;

use super::data::{NotJudged, OfChange, OfViolation, OfWorkload};
use crate::{
    judge::{Judge, REJECTED, Violation},
    parallel::{parallel, threads},
    present::{Current, Present},
    proposal::{self, Cases},
    report::one_line,
};

/// How many bytes of violating objects are kept, as text, until the one of each workload is known that is to change. For
/// others that change is sought at once: it takes longer, and no memory.
const KEPT: usize = 32 << 20;

/// The objects of a cluster, of which those that comply are counted and forgotten.
pub(super) struct Objects<'a> {
    judge: &'a Judge,
    present: Present<'a>,
    found: Vec<Found>,
    /// How many bytes of objects are kept.
    kept: AtomicUsize,
    cases: Cases,
}

/// An object that was judged.
struct Found {
    namespace: String,
    object: Reference,
    owner: Option<Reference>,
    outcome: Outcome,
}

enum Outcome {
    Complies,
    Violates(Vec<Violation>, Offender),
    NotJudged(String),
}

/// An object that violates a profile: what is needed of it to say what to change.
struct Offender {
    kind: Option<&'static Workload>,
    held: Held,
}

enum Held {
    /// All of it, as JSON.
    Object(Box<str>),
    /// The smallest change that helps.
    Change(Option<OfChange>),
}

impl Offender {
    /// Keeps the object if there is room.
    fn new(judge: &Judge, kind: Option<&'static Workload>, object: &Json, kept: &AtomicUsize) -> Self {
        let text = object.to_string();
        let before = kept.fetch_add(text.len(), Ordering::Relaxed);
        if before.saturating_add(text.len()) <= KEPT {
            return Self { kind, held: Held::Object(text.into()) };
        }
        kept.fetch_sub(text.len(), Ordering::Relaxed);
        Self { kind, held: Held::Change(smallest(judge, kind, object)) }
    }

    fn change(&self, judge: &Judge) -> Option<OfChange> {
        match &self.held {
            Held::Change(change) => change.clone(),
            Held::Object(text) => smallest(judge, self.kind, &serde_json::from_str(text).ok()?),
        }
    }
}

fn smallest(judge: &Judge, kind: Option<&Workload>, object: &Json) -> Option<OfChange> {
    judge.smallest(kind, object).map(|least| OfChange::new(least, kind))
}

/// A workload with all its objects.
#[derive(Default)]
pub(super) struct OfOne {
    violations: BTreeMap<(String, String, String), usize>,
    violating: usize,
    /// Whether the object of the workload itself complies; none if it was not judged.
    itself: Option<bool>,
    not_judged: Option<String>,
    /// The object to change: the workload itself, or else the first of its pods. And whether it is itself.
    object: Option<(bool, String, Offender)>,
}

/// By namespace and workload.
pub(super) type Workloads = BTreeMap<(String, String), OfOne>;

/// All that was found.
pub(super) struct All {
    pub workloads: Workloads,
    /// How many objects were judged.
    pub objects: usize,
    /// What violates a profile, to be tried with changes of the profile.
    pub cases: proposal::Found,
    /// Namespaces that objects are in and of which nothing is known.
    pub unknown: BTreeSet<String>,
}

impl<'a> Objects<'a> {
    /// Begins.
    pub fn new(judge: &'a Judge, known: &'a BTreeSet<String>) -> Self {
        Self {
            judge,
            present: Present::new(judge, known),
            found: Vec::new(),
            kept: AtomicUsize::new(0),
            cases: Cases::default(),
        }
    }

    /// Judges some objects; others than pods and workloads are left out. What owns others comes before them.
    pub fn judge(&mut self, page: Vec<Json>) {
        let current = self.present.take(page);
        let (judge, kept) = (self.judge, &self.kept);
        let outcomes = parallel(threads(), &current, |one| outcome(judge, one.workload, &one.object, kept));
        for (one, outcome) in current.into_iter().zip(outcomes) {
            self.cases.add(
                &one,
                match &outcome {
                    Outcome::Complies => Ok(Vec::new()),
                    Outcome::Violates(violations, _) => Ok(violations.clone()),
                    Outcome::NotJudged(why) => Err(why.clone()),
                },
            );
            let Current { namespace, itself, owner, .. } = one;
            self.found.push(Found { namespace, object: itself, owner, outcome });
        }
    }

    /// Gathers them by workload.
    pub fn end(self) -> All {
        let (mut workloads, objects) = (Workloads::new(), self.found.len());
        for Found { namespace, object, owner, outcome } in self.found {
            let itself = object.to_string();
            let workload = self.present.owners.workload(&object, owner.as_ref()).to_string();
            let is_itself = itself == workload;
            let one = workloads.entry((namespace, workload)).or_default();
            one.add(is_itself, object.name, outcome);
        }
        let cases = self.cases.end(&self.present.owners);
        All { workloads, objects, cases, unknown: self.present.unknown }
    }
}

fn outcome(judge: &Judge, workload: Option<&'static Workload>, object: &Json, kept: &AtomicUsize) -> Outcome {
    match judge.judge(workload, object) {
        Ok(violations) if violations.is_empty() => Outcome::Complies,
        // It exists, so the API server has taken it once: no profile is to blame.
        Ok(violations) => match violations.iter().find(|one| one.check == REJECTED && one.profile.is_empty()) {
            Some(one) => Outcome::NotJudged(format!("the API server would not take it as it is: {}", one.message)),
            None => Outcome::Violates(violations, Offender::new(judge, workload, object, kept)),
        },
        Err(why) => Outcome::NotJudged(why),
    }
}

impl OfOne {
    fn add(&mut self, is_itself: bool, name: String, outcome: Outcome) {
        if is_itself {
            self.itself = Some(matches!(outcome, Outcome::Complies));
        }
        match outcome {
            Outcome::Complies => {}
            Outcome::NotJudged(why) => drop(self.not_judged.get_or_insert(why)),
            Outcome::Violates(violations, offender) => {
                self.violating += 1;
                for Violation { profile, check, message, .. } in violations {
                    *self.violations.entry((profile, check, message)).or_default() += 1;
                }
                let rank = |(is_itself, name, _): &(bool, String, Offender)| (!is_itself, name.clone());
                let this = (is_itself, name, offender);
                if self.object.as_ref().is_none_or(|other| rank(&this) < rank(other)) {
                    self.object = Some(this);
                }
            }
        }
    }

    /// Whether it violates a profile.
    pub fn violates(&self) -> bool {
        self.violating > 0
    }

    /// Why something of it was not judged.
    pub fn not_judged(&self, namespace: &str, workload: &str) -> Option<NotJudged> {
        let why = one_line(self.not_judged.as_ref()?);
        Some(NotJudged { namespace: namespace.to_owned(), workload: workload.to_owned(), why })
    }

    /// What a report says about it, with the smallest change that helps. `denying` are the profiles that are in the stage
    /// Deny in the namespace, and `mutators` may change pods in admission.
    pub fn about(
        &self,
        judge: &Judge,
        mutators: &[String],
        denying: &BTreeSet<&str>,
        namespace: &str,
        workload: &str,
    ) -> OfWorkload {
        let violations = self.violations.iter().map(|((profile, check, message), objects)| OfViolation {
            profile: profile.clone(),
            check: check.clone(),
            message: one_line(message),
            objects: *objects,
        });
        let (mut change, mut note) = (None, String::new());
        if let Some((is_itself, name, offender)) = &self.object {
            change = offender.change(judge);
            let is_pod = offender.kind.is_none() && !is_itself;
            if is_pod && self.itself == Some(true) {
                // What is to change is not in the pod.
                change = None;
                let by = if mutators.is_empty() { "something".to_owned() } else { mutators.join(" or ") };
                note = format!(
                    "It complies itself, and a pod of it does not, as {name}: the pod is older than the template, or {by} \
                     changes it in admission. If it is older, a restart helps."
                );
            } else if is_pod && self.itself.is_none() {
                note = format!("Palisade knows its pods alone; the change is that of pod {name}.");
            }
        }
        OfWorkload {
            namespace: namespace.to_owned(),
            workload: workload.to_owned(),
            objects: self.violating,
            denied: self.violations.keys().any(|(profile, ..)| denying.contains(profile.as_str())),
            violations: violations.collect(),
            change,
            note,
        }
    }
}
