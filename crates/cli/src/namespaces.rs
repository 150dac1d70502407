//! Namespaces in files, with the exceptions that tenants ask for in them.

use std::{collections::BTreeMap, ops::Deref, sync::Arc};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use palisade_api::{ToolSecurityException, names};
use palisade_compiler::{Namespace, Request};
use serde::Deserialize;

use crate::{
    input::{self, Object},
    output,
    report::{Failure, Problem, Source},
};

/// The part of a `Namespace` that counts.
#[derive(Deserialize)]
struct NamespaceObject {
    metadata: ObjectMeta,
}

/// A namespace, and what is asked for in it.
#[derive(Clone, Debug)]
pub struct Tenant {
    namespace: Namespace,
    /// The exceptions that are asked for there, each with its name.
    pub requests: Vec<(String, Request)>,
}

impl Deref for Tenant {
    type Target = Namespace;

    fn deref(&self) -> &Namespace {
        &self.namespace
    }
}

/// The namespaces in a file, by name.
pub fn read(source: &Arc<Source>) -> Result<Vec<Tenant>, Failure> {
    let objects = input::objects(source).map_err(|problem| Failure::CouldNotRun(vec![problem]))?;
    let others: Vec<_> = objects
        .iter()
        .filter(|object| !is_namespace(object) && !is_exception(object))
        .map(|object| object.kind.clone())
        .collect();
    let (found, mut problems) = among(&objects);
    output::ignored(source, &others, "Namespace");
    if !objects.iter().any(is_namespace) && problems.is_empty() {
        problems.push(Problem::new(format!("{}: no Namespace found", source.name())));
    }
    if problems.is_empty() { Ok(found) } else { Err(Failure::CouldNotRun(problems)) }
}

/// The namespaces among some objects, as the controller sees them: those that are being deleted it leaves alone. And the
/// mistakes in them.
pub fn among(objects: &[Object<'_>]) -> (Vec<Tenant>, Vec<Problem>) {
    let (mut found, mut problems) = (BTreeMap::new(), Vec::new());
    for object in objects.iter().filter(|object| is_namespace(object)) {
        match object.parse::<NamespaceObject>() {
            Ok(NamespaceObject { metadata }) => match metadata.name.clone().filter(|name| !name.is_empty()) {
                Some(name) => drop(found.insert(name.clone(), seen(name, metadata))),
                None => problems.push(object.problem("metadata", "a namespace without a name")),
            },
            Err(mistake) => problems.push(mistake.problem),
        }
    }
    for object in objects.iter().filter(|object| is_exception(object)) {
        match object.parse::<ToolSecurityException>() {
            Ok(exception) => {
                let (meta, request) = (&exception.metadata, Request::from(&exception));
                let namespace = meta.namespace.as_deref().unwrap_or("default");
                if let Some(Some(tenant)) = found.get_mut(namespace) {
                    tenant.requests.push((meta.name.clone().unwrap_or_default(), request));
                }
            }
            Err(mistake) => problems.push(mistake.problem),
        }
    }
    (found.into_values().flatten().collect(), problems)
}

fn is_namespace(object: &Object<'_>) -> bool {
    object.kind == "Namespace" && object.api_version == "v1"
}

/// Whether it is a `ToolSecurityException`.
pub fn is_exception(object: &Object<'_>) -> bool {
    object.kind == "ToolSecurityException" && object.api_version == names::API_VERSION
}

/// A namespace that is not being deleted, as the controller sees it.
pub fn seen(name: String, metadata: ObjectMeta) -> Option<Tenant> {
    if metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut labels = metadata.labels.unwrap_or_default();
    // The API server sets it on every namespace; files written by hand often leave it out.
    labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
    let namespace = Namespace { name, labels, annotations: metadata.annotations.unwrap_or_default() };
    Some(Tenant { namespace, requests: Vec::new() })
}
