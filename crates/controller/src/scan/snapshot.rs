//! What a pass judges objects by: the profiles, the namespaces and the exceptions as they are when it begins. Pure.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{ToolSecurityParams, conditions::ExceptionReason};
use palisade_compiler::Namespace;

use crate::{accepted::AcceptedProfile, asked::ObservedException, judge::Judge, store::ObservedNamespace};

/// A profile to judge by.
#[derive(Debug)]
pub struct Subject {
    /// The generation in force.
    pub accepted: Arc<AcceptedProfile>,
    /// Its policies.
    pub judge: Arc<Judge>,
    /// What tenants ask for, by namespace.
    pub asked: BTreeMap<String, Vec<Arc<ObservedException>>>,
}

impl Subject {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.accepted.compiled.profile
    }

    /// The exceptions that tenants asked for in a namespace that are to be in force.
    pub fn approved(&self, namespace: &str, now: Timestamp) -> impl Iterator<Item = &ObservedException> {
        let asked = self.asked.get(namespace).into_iter().flatten().map(AsRef::as_ref);
        let exceptions = &self.accepted.compiled.exceptions;
        asked.filter(move |one| exceptions.standing(&one.request, now).0 == ExceptionReason::InForce)
    }

    /// Its parameters in a namespace, with all exceptions that hold there.
    pub fn params(&self, namespace: &Namespace, now: Timestamp) -> Option<ToolSecurityParams> {
        let asked = self.asked.get(&namespace.name).into_iter().flatten();
        self.accepted.compiled.params(namespace, asked.map(|one| &one.request), now)
    }
}

/// What objects are judged by.
#[derive(Debug)]
pub struct Snapshot {
    /// The profiles.
    pub subjects: Vec<Subject>,
    /// The namespaces, by name.
    pub namespaces: BTreeMap<String, Arc<ObservedNamespace>>,
    /// The time, because exceptions end.
    pub now: Timestamp,
}
