//! Existing objects that a profile evaluates, as if they were created now.

use std::collections::BTreeSet;

use palisade_kube_json::{
    existing::{anew, is_current},
    owners::{Owners, Reference},
    workload::Workload,
};
use serde_json::Value as Json;

use crate::evaluator::{self, ProfileEvaluator};

/// Takes objects of a cluster in batches.
pub struct Present<'a> {
    judge: &'a ProfileEvaluator,
    /// All known namespaces.
    known: &'a BTreeSet<String>,
    /// The owners of the workloads so far.
    pub owners: Owners,
    /// The namespaces of objects that are unknown.
    pub unknown: BTreeSet<String>,
}

/// An object that a profile evaluates.
pub struct Current {
    /// Its kind; none for a pod or another object.
    pub workload: Option<&'static Workload>,
    /// Its namespace.
    pub namespace: String,
    /// The object, without fields from the API server and controllers.
    pub object: Json,
    /// Its name. Without a name, its generateName.
    pub itself: Reference,
    /// Its controller.
    pub owner: Option<Reference>,
}

impl<'a> Present<'a> {
    /// Begins.
    pub fn new(judge: &'a ProfileEvaluator, known: &'a BTreeSet<String>) -> Self {
        Self { judge, known, owners: Owners::default(), unknown: BTreeSet::new() }
    }

    /// The objects of a page that a profile evaluates. Owners come before the objects that they own.
    pub fn take(&mut self, page: Vec<Json>) -> Vec<Current> {
        let mut current = Vec::new();
        for object in page {
            let text = |pointer: &str| object.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
            let (api_version, kind) = (text("/apiVersion"), text("/kind").to_owned());
            if !self.judge.evaluates(api_version, &kind) {
                continue;
            }
            let workload = evaluator::workload(api_version, &kind);
            let has_owner = workload.is_some() || evaluator::is_pod(api_version, &kind);
            if workload.is_some() {
                self.owners.learn(&object);
            }
            let namespace = text("/metadata/namespace").to_owned();
            if !is_current(&kind, &object) {
                continue;
            }
            if self.judge.selects(&namespace) {
                let name = object["metadata"]["name"].as_str().or(object["metadata"]["generateName"].as_str());
                let name = name.unwrap_or_default().to_owned();
                let itself = Reference { name, ..Reference::to(&kind, &object) };
                let owner = Reference::to_controller(&object).filter(|_| has_owner);
                current.push(Current { workload, namespace, object: anew(object), itself, owner });
            } else if !self.known.contains(&namespace) {
                self.unknown.insert(namespace);
            }
        }
        current
    }
}
