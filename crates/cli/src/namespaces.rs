//! Namespaces in files.

use std::{collections::BTreeMap, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use palisade_compiler::Namespace;
use serde::Deserialize;

use crate::{
    input, output,
    report::{Failure, Problem, Source},
};

/// The part of a `Namespace` that counts.
#[derive(Deserialize)]
pub struct NamespaceObject {
    /// Its metadata.
    pub metadata: ObjectMeta,
}

/// The namespaces in a file, by name.
pub fn read(source: &Arc<Source>) -> Result<Vec<Namespace>, Failure> {
    let objects = input::objects(source).map_err(|problem| Failure::CouldNotRun(vec![problem]))?;
    let mut found = BTreeMap::new();
    let mut others = Vec::new();
    let mut problems = Vec::new();
    for object in objects {
        if object.kind != "Namespace" || object.api_version != "v1" {
            others.push(object.kind);
            continue;
        }
        match object.parse::<NamespaceObject>() {
            Ok(NamespaceObject { metadata }) => match metadata.name.clone().filter(|name| !name.is_empty()) {
                Some(name) => drop(found.insert(name.clone(), seen(name, metadata))),
                None => problems.push(object.problem("metadata", "a namespace without a name")),
            },
            Err(mistake) => problems.push(mistake.problem),
        }
    }
    output::ignored(source, &others, "Namespace");
    if found.is_empty() && problems.is_empty() {
        problems.push(Problem::new(format!("{}: no Namespace found", source.name())));
    }
    if problems.is_empty() { Ok(found.into_values().flatten().collect()) } else { Err(Failure::CouldNotRun(problems)) }
}

/// A namespace as the controller sees it; `None` for one that is being deleted, which the controller leaves alone.
pub fn seen(name: String, metadata: ObjectMeta) -> Option<Namespace> {
    if metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut labels = metadata.labels.unwrap_or_default();
    // The API server sets it on every namespace; files written by hand often leave it out.
    labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
    Some(Namespace { name, labels, annotations: metadata.annotations.unwrap_or_default() })
}
