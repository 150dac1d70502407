//! The common fields of the objects that are made for a profile: names, labels, an owner, and the parameters that they
//! read.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::admissionregistration::v1::{ParamKind, ParamRef},
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use kube::Resource;
use palisade_api::{ToolSecurityProfile, names};

/// The names of the probes that comply and that violate.
pub(crate) const PROBE_NAMES: [&str; 2] = ["palisade-probe-compliant", "palisade-probe-violating"];
/// The id of the violation of a probe that policies deny by its name: those for objects, and those for pods and
/// workloads whose checks no pod of the catalogue violates.
pub(crate) const PROBE_VIOLATION: &str = "probe";

/// The name of a profile.
pub(crate) fn profile_name(profile: &ToolSecurityProfile) -> &str {
    profile.metadata.name.as_deref().unwrap_or_default()
}

/// The owner reference to a profile that exists in a cluster.
pub fn owner_reference(profile: &ToolSecurityProfile) -> Option<OwnerReference> {
    profile.controller_owner_ref(&())
}

/// The labels of all that is made for a profile.
fn labels(profile: &str) -> BTreeMap<String, String> {
    [(names::MANAGED_BY_LABEL, names::MANAGED_BY), (names::PROFILE_LABEL, profile)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

/// The metadata of something that is made for a profile.
pub(crate) fn metadata(profile: &ToolSecurityProfile, generated: String) -> ObjectMeta {
    let parameters: Vec<_> =
        profile.spec.parameters.iter().map(|parameter| format!("{}:{}", parameter.name, parameter.type_)).collect();
    let mut annotations = BTreeMap::from([(names::PARAMETERS_ANNOTATION.to_owned(), parameters.join(","))]);
    if let Some(generation) = profile.metadata.generation {
        annotations.insert(names::GENERATION_ANNOTATION.to_owned(), generation.to_string());
    }
    ObjectMeta {
        name: Some(generated),
        labels: Some(labels(profile_name(profile))),
        annotations: Some(annotations),
        owner_references: owner_reference(profile).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// The reference to the parameters: in the pod's namespace, under the profile's name.
pub(crate) fn param_ref(profile: &str, not_found: &str) -> ParamRef {
    ParamRef {
        name: Some(names::params(profile)),
        parameter_not_found_action: Some(not_found.to_owned()),
        ..ParamRef::default()
    }
}

/// The kind of a policy's parameters.
pub(crate) fn param_kind() -> ParamKind {
    ParamKind { api_version: Some(names::API_VERSION.to_owned()), kind: Some("ToolSecurityParams".to_owned()) }
}
