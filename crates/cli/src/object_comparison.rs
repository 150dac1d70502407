//! Existing objects, evaluated before and after a change of profiles.

use palisade_kube_json::{
    existing::{anew, is_current},
    owners::{Owners, Reference},
};
use serde_json::Value as Json;

use crate::{
    admission_changes::{AdmissionChanges, Place},
    evaluator::{self, ProfileEvaluator, Violation},
    parallel::{parallel, threads},
};

/// The reason why there is no verdict on an object that the API server rejects from any user.
pub const NOT_TAKEN: &str = "the API server itself rejects it as it is";
/// The reason why there is no verdict on an object that cannot be evaluated offline.
pub const NOT_KNOWN: &str = "it cannot be evaluated offline";

/// Two sets of profiles, and the effect of their difference on objects.
pub struct ObjectComparison<'a> {
    before: &'a ProfileEvaluator,
    after: &'a ProfileEvaluator,
    owners: Owners,
    /// The changes so far.
    pub changes: AdmissionChanges,
}

/// An object to evaluate.
struct Subject {
    kind: String,
    object: Json,
}

/// The controller of a pod or workload.
fn owner_of(subject: &Subject) -> Option<Reference> {
    let api_version = subject.object["apiVersion"].as_str().unwrap_or_default();
    let has_workload =
        evaluator::is_pod(api_version, &subject.kind) || evaluator::workload(api_version, &subject.kind).is_some();
    Reference::to_controller(&subject.object).filter(|_| has_workload)
}

impl<'a> ObjectComparison<'a> {
    /// Begins without results; `owners` are known in any case.
    pub fn new(before: &'a ProfileEvaluator, after: &'a ProfileEvaluator, owners: Owners) -> Self {
        Self { before, after, owners, changes: AdmissionChanges::default() }
    }

    /// Evaluates objects as if they were created now. Owners come before the objects that they own.
    pub fn add(&mut self, objects: Vec<Json>) {
        let mut subjects = Vec::new();
        for object in objects {
            let text = |key: &str| object[key].as_str().unwrap_or_default().to_owned();
            let (api_version, kind) = (text("apiVersion"), text("kind"));
            if ![self.before, self.after].iter().any(|one| one.evaluates(&api_version, &kind)) {
                continue;
            }
            if evaluator::workload(&api_version, &kind).is_some() {
                self.owners.learn(&object);
            }
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let selected = self.before.selects(namespace) || self.after.selects(namespace);
            if selected && is_current(&kind, &object) {
                subjects.push(Subject { object: anew(object), kind });
            }
        }
        let verdicts = parallel(threads(), &subjects, |subject| {
            let kind = evaluator::workload(subject.object["apiVersion"].as_str().unwrap_or_default(), &subject.kind);
            (self.before.judge(kind, &subject.object), self.after.judge(kind, &subject.object))
        });
        for (subject, verdicts) in subjects.iter().zip(verdicts) {
            self.count(subject, verdicts);
        }
    }

    fn count(&mut self, subject: &Subject, verdicts: (Result<Vec<Violation>, String>, Result<Vec<Violation>, String>)) {
        let metadata = &subject.object["metadata"];
        let text = |key: &str| metadata[key].as_str().filter(|text| !text.is_empty());
        let namespace = text("namespace").unwrap_or_default().to_owned();
        let name = text("name").or(text("generateName")).unwrap_or("(not named)");
        let which = |why: &str| format!("{namespace} {}/{name}: {why}", subject.kind);
        match verdicts {
            (Ok(before), Ok(after)) => {
                // Profiles do not matter for an object that the API server rejects from any user.
                if let Some(rejected) = before.iter().chain(&after).find(|one| one.profile.is_empty()) {
                    return self.changes.unknown(NOT_TAKEN, || which(&rejected.message));
                }
                let owner = owner_of(subject);
                let itself = Reference { name: name.to_owned(), ..Reference::to(&subject.kind, &subject.object) };
                let workload = self.owners.workload(&itself, owner.as_ref()).to_string();
                self.changes.add(Place { namespace, workload }, &before, &after);
            }
            (Err(why), _) | (_, Err(why)) => self.changes.unknown(NOT_KNOWN, || which(&why)),
        }
    }
}
