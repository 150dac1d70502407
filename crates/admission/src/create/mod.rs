//! The errors and warnings of kube-apiserver when a client creates or updates an admission policy, its binding, a
//! webhook configuration or a CRD.
//!
//! Ported from `k8s.io/kubernetes/pkg/apis/admissionregistration/validation` of Kubernetes 1.36.1, with the words that
//! 1.32 to 1.35 have instead. The user is assumed to be allowed everything: RBAC for `paramKind` is not checked.

mod binding;
mod crd;
mod decode;
mod expressions;
mod mutating;
mod rules;
mod type_check;
mod validating;
mod webhooks;

use palisade_cel::Minor;
use serde_json::Value as Json;

pub use crate::validation::{ErrorType, FieldError, aggregate, quote};
use crate::{
    objects,
    validation::{Checking, meta, names},
};
pub use type_check::{ExpressionWarning, Names, checker, type_check};

const GROUP: &str = "admissionregistration.k8s.io";

/// The API server's answer to a request that it rejects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The HTTP status.
    pub code: u16,
    /// `reason`, as `Invalid`.
    pub reason: String,
    /// `message`: what a user reads.
    pub message: String,
    /// `details.causes`: each error with its field. The API server sends none for an object that it cannot decode;
    /// here one has the place of the value, and the error in it.
    pub causes: Vec<FieldError>,
}

/// Why an object is not created.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The API server's answer.
    Status(Status),
    /// The API server's answer is unknown, for this reason.
    NoVerdict(String),
}

impl From<objects::Refused> for Refused {
    fn from(refused: objects::Refused) -> Self {
        let message = refused.to_string();
        let (code, reason, causes) = match refused {
            objects::Refused::NoVerdict(why) => return Self::NoVerdict(why),
            objects::Refused::Decode(_) => (400, "BadRequest", vec![]),
            objects::Refused::Validation { causes, .. } => (422, "Invalid", causes),
            objects::Refused::Forbidden(_) => (403, "Forbidden", vec![]),
            objects::Refused::NotFound(_) => (404, "NotFound", vec![]),
            objects::Refused::Conflict(_) => (409, "Conflict", vec![]),
            objects::Refused::Failed(_) => (500, "", vec![]),
        };
        Self::Status(Status { code, reason: reason.to_owned(), message, causes })
    }
}

/// Creates an object, or updates `old`: the warnings, if the API server accepts it.
///
/// For kinds other than admission policies, their bindings, registrations of webhooks and CRDs it checks only the
/// metadata.
///
/// # Errors
/// The API server's answer, or why it is unknown.
pub fn create(minor: Minor, object: &Json, old: Option<&Json>) -> Result<Vec<String>, Refused> {
    let text = |key: &str| object.get(key).and_then(Json::as_str).unwrap_or_default();
    let (api_version, kind) = (text("apiVersion"), text("kind"));
    let group = api_version.rsplit_once('/').map_or("", |(group, _)| group);
    decode::decode(minor, api_version, kind, object).map_err(Refused::Status)?;
    if (group, kind) == ("apiextensions.k8s.io", "CustomResourceDefinition")
        && let Some(error) = crd::undecodable(minor, object)
    {
        let message = objects::cannot_be_handled(kind, "v1", &error);
        return Err(Refused::Status(Status { code: 400, reason: "BadRequest".to_owned(), message, causes: vec![] }));
    }
    let object = &decode::defaulted(group, kind, object);
    let old = old.map(|old| decode::defaulted(group, kind, old));
    let mut checking = Checking { minor, old: old.as_ref(), errors: Vec::new(), unknown: None };
    let mut warnings = Vec::new();
    match (group, kind) {
        (GROUP, "ValidatingAdmissionPolicy") => validating::policy(&mut checking, object),
        (GROUP, "ValidatingAdmissionPolicyBinding") => binding::validating(&mut checking, object),
        (GROUP, "MutatingAdmissionPolicy") => mutating::policy(&mut checking, object),
        (GROUP, "MutatingAdmissionPolicyBinding") => binding::mutating(&mut checking, object),
        (GROUP, "MutatingWebhookConfiguration" | "ValidatingWebhookConfiguration") => {
            webhooks::configuration(&mut checking, object);
        }
        ("apiextensions.k8s.io", "CustomResourceDefinition") => crd::definition(&mut checking, object),
        _ => meta::check(&mut checking, object, names::path_segment),
    }
    let name = meta::name(object);
    if group == GROUP && minor >= Minor::V1_36 && name.ends_with(STATIC_SUFFIX) {
        warnings.push(format!(
            "metadata.name: names ending with {} are reserved for static manifest-based configurations and cannot be \
             managed via the API",
            quote(STATIC_SUFFIX)
        ));
    }
    let Checking { errors, unknown, .. } = checking;
    if !errors.is_empty() {
        let of = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let message = format!("{of} {} is invalid: {}", quote(&name), aggregate(&errors));
        return Err(Refused::Status(Status { code: 422, reason: "Invalid".to_owned(), message, causes: errors }));
    }
    if let Some(why) = unknown {
        return Err(Refused::NoVerdict(why));
    }
    let has_version = object.pointer("/metadata/resourceVersion").and_then(Json::as_str).is_some_and(|v| !v.is_empty());
    if old.is_none() && has_version {
        let message = "resourceVersion should not be set on objects to be created".to_owned();
        return Err(Refused::Status(Status { code: 500, reason: String::new(), message, causes: vec![] }));
    }
    Ok(warnings)
}

/// Names that only files on the API server's own disk may have (KEP-5793).
const STATIC_SUFFIX: &str = ".static.k8s.io";
