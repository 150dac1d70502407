//! Namespaces in files, with the exception requests of tenants.

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

/// The relevant part of a `Namespace`.
#[derive(Deserialize)]
struct NamespaceObject {
    metadata: ObjectMeta,
}

/// A namespace with its exception requests.
#[derive(Clone, Debug)]
pub struct Tenant {
    namespace: Namespace,
    /// The exception requests, each with its name.
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
    let objects = input::objects(source).map_err(Failure::fatal)?;
    let others: Vec<_> = objects
        .iter()
        .filter(|object| !is_namespace(object) && !is_exception(object))
        .map(|object| object.kind.clone())
        .collect();
    let (found, mut problems) = among(&objects);
    output::ignored(source, &others, "Namespace");
    if !objects.iter().any(is_namespace) && problems.is_empty() {
        problems.push(Problem::new(format!("{}: a Namespace is required", source.name())));
    }
    if problems.is_empty() { Ok(found) } else { Err(Failure::CouldNotRun(problems)) }
}

/// The namespaces among some objects, as the controller sees them, without those that are being deleted; and the
/// errors.
pub fn among(objects: &[Object<'_>]) -> (Vec<Tenant>, Vec<Problem>) {
    let (mut found, mut problems) = (BTreeMap::new(), Vec::new());
    for object in objects.iter().filter(|object| is_namespace(object)) {
        match object.parse::<NamespaceObject>() {
            Ok(NamespaceObject { metadata }) => match metadata.name.clone().filter(|name| !name.is_empty()) {
                Some(name) => drop(found.insert(name.clone(), seen(name, metadata))),
                None => problems.push(object.problem("metadata", "metadata.name is required")),
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

/// A namespace as the controller sees it; none if it is being deleted.
pub fn seen(name: String, metadata: ObjectMeta) -> Option<Tenant> {
    if metadata.deletion_timestamp.is_some() {
        return None;
    }
    let mut labels = metadata.labels.unwrap_or_default();
    // The API server sets it on every namespace. Files often omit it.
    labels.insert("kubernetes.io/metadata.name".to_owned(), name.clone());
    let namespace = Namespace { name, labels, annotations: metadata.annotations.unwrap_or_default() };
    Some(Tenant { namespace, requests: Vec::new() })
}
