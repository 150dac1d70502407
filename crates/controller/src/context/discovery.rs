//! Discovery of the kinds of objects that profiles evaluate, and that the API server may not have.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::APIResource;
use kube::Client;
use palisade_api::ObjectKind;

use crate::{
    api_request::{ApiError, call},
    evaluation::{Evaluator, ListedKind},
};

/// The kinds that can be listed, and why others cannot.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Discovered {
    pub listed: Vec<ListedKind>,
    /// Reasons by resource and group, as in `ingresses.networking.k8s.io`.
    pub missing: BTreeMap<String, String>,
}

/// The reason for a kind that is not installed.
pub const NOT_SERVED: &str = "the API server does not have the kind";

/// Finds kinds, each in the first of its versions that the API server has.
pub async fn discover(client: &Client, kinds: &[ObjectKind]) -> Discovered {
    let (mut found, mut known) = (Discovered::default(), BTreeMap::new());
    for ObjectKind { group, versions, resource, .. } in kinds {
        let mut missing = NOT_SERVED.to_owned();
        for version in versions {
            let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
            if !known.contains_key(&api_version) {
                known.insert(api_version.clone(), resources(client, &api_version).await);
            }
            match known.get(&api_version) {
                Some(Ok(resources)) => {
                    let named = resources.iter().find(|one| one.name == *resource && one.namespaced);
                    if let Some(one) = named {
                        found.listed.push(ListedKind::new(&api_version, &one.kind, resource));
                        missing.clear();
                        break;
                    }
                }
                Some(Err(error)) => missing.clone_from(error),
                None => {}
            }
        }
        if !missing.is_empty() {
            found.missing.insert(name(group, resource), missing);
        }
    }
    found
}

/// The resources in a version of a group; none if the API server does not have it.
async fn resources(client: &Client, api_version: &str) -> Result<Vec<APIResource>, String> {
    let listed = if api_version.contains('/') {
        call(client.list_api_group_resources(api_version)).await
    } else {
        call(client.list_core_api_resources(api_version)).await
    };
    match listed {
        Ok(list) => Ok(list.resources),
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        Err(error) => Err(error.to_string()),
    }
}

/// The kinds that an evaluator needs and that are not listed, for a status.
pub fn unlisted(evaluator: &Evaluator, missing: &BTreeMap<String, String>) -> Option<String> {
    let of_profile = evaluator.object_kinds().iter().filter_map(|kind| {
        let name = name(&kind.group, &kind.resource);
        let why = missing.get(&name).filter(|why| *why != NOT_SERVED || evaluator.is_named(kind))?;
        Some(format!("{name} ({why})"))
    });
    let all: Vec<_> = of_profile.collect();
    (!all.is_empty()).then(|| format!("not scanned: {}", all.join(", ")))
}

/// The reason why a kind that the API server has cannot be listed, for a status.
pub fn reason(error: &ApiError) -> String {
    if error.is_forbidden() {
        "grant palisade-controller permission to list them".to_owned()
    } else {
        error.to_string()
    }
}

/// A resource as kubectl writes it.
fn name(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}

impl ListedKind {
    /// Its resource as kubectl writes it.
    pub fn name(&self) -> String {
        name(self.api_version.split_once('/').map_or("", |(group, _)| group), &self.resource)
    }
}
