//! Existing objects, evaluated as if they were created now, and grouped by workload.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::atomic::{AtomicUsize, Ordering},
};

use palisade_kube_json::{owners::Reference, workload::Workload};
use serde_json::Value as Json;

use super::data::{NotJudged, ViolatingWorkload, WorkloadChange, WorkloadViolation};
use crate::{
    evaluator::{ProfileEvaluator, REJECTED, Violation},
    parallel::{parallel, threads},
    present::{Current, Present},
    proposal::{self, Cases},
    report::one_line,
};

/// The maximum number of bytes of violating objects that are kept, as text, until the object to change is known for
/// each workload. For the others, the change is searched for immediately: that takes longer, but no memory.
const KEPT: usize = 32 << 20;

/// The objects of a cluster. Compliant ones are counted and dropped.
pub(super) struct Objects<'a> {
    judge: &'a ProfileEvaluator,
    present: Present<'a>,
    found: Vec<Found>,
    /// The number of bytes of kept objects.
    kept: AtomicUsize,
    cases: Cases,
}

/// An evaluated object.
struct Found {
    namespace: String,
    object: Reference,
    owner: Option<Reference>,
    outcome: ObjectOutcome,
}

enum ObjectOutcome {
    Complies,
    Violates(Vec<Violation>, Offender),
    NotJudged(String),
}

/// An object that violates a profile, with the data for its change.
struct Offender {
    kind: Option<&'static Workload>,
    held: Held,
}

enum Held {
    /// The whole object, as JSON.
    Object(Box<str>),
    /// The smallest change that helps.
    Change(Option<WorkloadChange>),
}

impl Offender {
    /// Keeps the object if there is room.
    fn new(judge: &ProfileEvaluator, kind: Option<&'static Workload>, object: &Json, kept: &AtomicUsize) -> Self {
        let text = object.to_string();
        let before = kept.fetch_add(text.len(), Ordering::Relaxed);
        if before.saturating_add(text.len()) <= KEPT {
            return Self { kind, held: Held::Object(text.into()) };
        }
        kept.fetch_sub(text.len(), Ordering::Relaxed);
        Self { kind, held: Held::Change(smallest(judge, kind, object)) }
    }

    fn change(&self, judge: &ProfileEvaluator) -> Option<WorkloadChange> {
        match &self.held {
            Held::Change(change) => change.clone(),
            Held::Object(text) => smallest(judge, self.kind, &serde_json::from_str(text).ok()?),
        }
    }
}

fn smallest(judge: &ProfileEvaluator, kind: Option<&Workload>, object: &Json) -> Option<WorkloadChange> {
    judge.smallest(kind, object).map(|least| WorkloadChange::new(least, kind))
}

/// A workload with all its objects.
#[derive(Default)]
pub(super) struct EvaluatedWorkload {
    violations: BTreeMap<(String, String, String), usize>,
    violating: usize,
    /// Whether the object of the workload itself complies; none if it was not evaluated.
    itself: Option<bool>,
    not_judged: Option<String>,
    /// The object to change: the workload itself, otherwise the first of its pods. And whether it is the workload
    /// itself.
    object: Option<(bool, String, Offender)>,
}

/// By namespace and workload.
pub(super) type Workloads = BTreeMap<(String, String), EvaluatedWorkload>;

/// All results.
pub(super) struct All {
    pub workloads: Workloads,
    /// The number of evaluated objects.
    pub objects: usize,
    /// Violating objects, to be tried with changes of the profile.
    pub cases: proposal::Found,
    /// Namespaces of objects that are unknown.
    pub unknown: BTreeSet<String>,
}

impl<'a> Objects<'a> {
    /// Begins.
    pub fn new(judge: &'a ProfileEvaluator, known: &'a BTreeSet<String>) -> Self {
        Self {
            judge,
            present: Present::new(judge, known),
            found: Vec::new(),
            kept: AtomicUsize::new(0),
            cases: Cases::default(),
        }
    }

    /// Evaluates some objects; others than pods and workloads are skipped. Owners come before the objects that they
    /// own.
    pub fn judge(&mut self, page: Vec<Json>) {
        let current = self.present.take(page);
        let (judge, kept) = (self.judge, &self.kept);
        let outcomes = parallel(threads(), &current, |one| outcome(judge, one.workload, &one.object, kept));
        for (one, outcome) in current.into_iter().zip(outcomes) {
            self.cases.add(
                &one,
                match &outcome {
                    ObjectOutcome::Complies => Ok(Vec::new()),
                    ObjectOutcome::Violates(violations, _) => Ok(violations.clone()),
                    ObjectOutcome::NotJudged(why) => Err(why.clone()),
                },
            );
            let Current { namespace, itself, owner, .. } = one;
            self.found.push(Found { namespace, object: itself, owner, outcome });
        }
    }

    /// Groups them by workload.
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

fn outcome(
    judge: &ProfileEvaluator,
    workload: Option<&'static Workload>,
    object: &Json,
    kept: &AtomicUsize,
) -> ObjectOutcome {
    match judge.denials(workload, object) {
        Ok(violations) if violations.is_empty() => ObjectOutcome::Complies,
        // It exists, so the API server accepted it once: profiles are not the cause.
        Ok(violations) => match violations.iter().find(|one| one.check == REJECTED && one.profile.is_empty()) {
            Some(one) => ObjectOutcome::NotJudged(format!("the API server would reject it: {}", one.message)),
            None => ObjectOutcome::Violates(violations, Offender::new(judge, workload, object, kept)),
        },
        Err(why) => ObjectOutcome::NotJudged(why),
    }
}

impl EvaluatedWorkload {
    fn add(&mut self, is_itself: bool, name: String, outcome: ObjectOutcome) {
        if is_itself {
            self.itself = Some(matches!(outcome, ObjectOutcome::Complies));
        }
        match outcome {
            ObjectOutcome::Complies => {}
            ObjectOutcome::NotJudged(why) => drop(self.not_judged.get_or_insert(why)),
            ObjectOutcome::Violates(violations, offender) => {
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

    /// The reason why an object of it was not evaluated.
    pub fn not_judged(&self, namespace: &str, workload: &str) -> Option<NotJudged> {
        let why = one_line(self.not_judged.as_ref()?);
        Some(NotJudged { namespace: namespace.to_owned(), workload: workload.to_owned(), why })
    }

    /// The part of a report about it, with the smallest change that helps. `denies` returns for a profile and a
    /// check whether a violation is denied in the namespace, and `mutators` may change pods in admission.
    pub fn about(
        &self,
        judge: &ProfileEvaluator,
        mutators: &[String],
        denies: &dyn Fn(&str, &str) -> bool,
        namespace: &str,
        workload: &str,
    ) -> ViolatingWorkload {
        let violations = self.violations.iter().map(|((profile, check, message), objects)| WorkloadViolation {
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
                // The template of the workload has nothing to change.
                change = None;
                let by = if mutators.is_empty() { "another component".to_owned() } else { mutators.join(" or ") };
                note = format!(
                    "The workload complies, but its pod {name} does not: the pod is older than the template, or {by} \
                     changes it in admission. If the pod is older, restart the workload."
                );
            } else if is_pod && self.itself.is_none() {
                note = format!("Only pods of this workload are known; the change applies to pod {name}.");
            }
        }
        ViolatingWorkload {
            namespace: namespace.to_owned(),
            workload: workload.to_owned(),
            objects: self.violating,
            denied: self.violations.keys().any(|(profile, check, _)| denies(profile, check)),
            violations: violations.collect(),
            change,
            note,
        }
    }
}
