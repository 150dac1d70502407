//! Exception requests that are needed: without the request, an existing object would violate the
//! profile. Pure.

use std::collections::BTreeSet;

use palisade_compiler::{Namespace, selects};
use palisade_gate::Violation;

use super::snapshot::{Snapshot, Subject};
use crate::{
    evaluation::{Evaluation, Existing, Tenant},
    watch::exception_store::{Needed, ObservedException},
};

/// An evaluator without exception requests, and one for each request with only that request.
pub struct Needs<'a> {
    without: Tenant<'a>,
    alone: Vec<(&'a ObservedException, Tenant<'a>)>,
}

impl<'a> Needs<'a> {
    /// `None` if no exception request is approved.
    pub fn of(subject: &'a Subject, namespace: &Namespace, snapshot: &Snapshot) -> Option<Self> {
        let approved: Vec<_> = subject.approved(&namespace.name, snapshot.now).collect();
        if approved.is_empty() {
            return None;
        }
        let knowing = |one: Option<&'a ObservedException>| {
            let requests = one.into_iter().map(|one| &one.request);
            let params = subject.accepted.compiled.params(namespace, requests, snapshot.now);
            subject.evaluator.tenant(&subject.accepted, namespace, params.as_ref())
        };
        let alone = approved.into_iter().map(|one| (one, knowing(Some(one)))).collect();
        Some(Self { without: knowing(None), alone })
    }

    /// The uids of the exceptions that an object needs. An object without a verdict may need any of them.
    pub fn by(&self, existing: &Existing) -> Vec<String> {
        let without = match self.without.evaluate(existing) {
            Evaluation::Complies => return Vec::new(),
            Evaluation::Violates(without) => Some(without),
            Evaluation::Unknown(_) => None,
        };
        let needed = self.alone.iter().filter(|(exception, alone)| {
            let Some(without) = &without else { return true };
            let lifts = |violation: &&Violation| exception.request.checks.contains(&violation.check);
            let mut of_its_checks = without.iter().filter(lifts).peekable();
            of_its_checks.peek().is_some()
                && match alone.evaluate(existing) {
                    Evaluation::Complies | Evaluation::Unknown(_) => true,
                    Evaluation::Violates(with) => of_its_checks.any(|violation| !with.contains(violation)),
                }
        });
        needed.map(|(exception, _)| exception.uid.clone()).collect()
    }
}

/// The result of a pass for all exceptions, given the needed ones. Exceptions of a profile that does not evaluate
/// workloads have no result: between two runs of a CronJob, no object exists that needs an exception.
pub fn all(snapshot: &Snapshot, needed: &BTreeSet<String>) -> Needed {
    let mut all = Needed::new();
    for subject in snapshot.subjects.iter().filter(|subject| subject.evaluator.evaluates_workloads()) {
        for (name, observed) in &snapshot.namespaces {
            if observed.terminating || !selects(&subject.accepted.profile.spec, &observed.namespace.get()) {
                continue;
            }
            for exception in subject.approved(name, snapshot.now) {
                all.insert(exception.uid.clone(), (exception.generation, needed.contains(&exception.uid)));
            }
        }
    }
    all
}
