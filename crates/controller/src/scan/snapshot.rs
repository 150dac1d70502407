//! The inputs of a pass: the profiles, the namespaces and the exceptions at its start. Pure.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{ToolSecurityParams, conditions::ExceptionReason};
use palisade_compiler::Namespace;

use crate::{
    evaluation::Evaluator,
    generations::accepted::AcceptedProfile,
    watch::{exception_store::ObservedException, store::ObservedNamespace},
};

/// A profile for evaluation.
#[derive(Debug)]
pub struct Subject {
    /// The generation in effect.
    pub accepted: Arc<AcceptedProfile>,
    /// Its policies.
    pub evaluator: Arc<Evaluator>,
    /// Exception requests, by namespace.
    pub requests: BTreeMap<String, Vec<Arc<ObservedException>>>,
}

impl Subject {
    pub fn name(&self) -> &str {
        &self.accepted.compiled.profile
    }

    /// The approved exception requests in a namespace.
    pub fn approved(&self, namespace: &str, now: Timestamp) -> impl Iterator<Item = &ObservedException> {
        let requests = self.requests.get(namespace).into_iter().flatten().map(AsRef::as_ref);
        let exceptions = &self.accepted.compiled.exceptions;
        requests.filter(move |one| exceptions.standing(&one.request, now).0 == ExceptionReason::InForce)
    }

    /// Its parameters in a namespace, with all exceptions that hold there.
    pub fn params(&self, namespace: &Namespace, now: Timestamp) -> Option<ToolSecurityParams> {
        let requests = self.requests.get(&namespace.name).into_iter().flatten();
        self.accepted.compiled.params(namespace, requests.map(|one| &one.request), now)
    }
}

/// Inputs of the evaluation.
#[derive(Debug)]
pub struct Snapshot {
    /// The profiles.
    pub subjects: Vec<Subject>,
    /// The namespaces, by name.
    pub namespaces: BTreeMap<String, Arc<ObservedNamespace>>,
    /// The time, because exceptions end.
    pub now: Timestamp,
}
