//! Whether an object is valid, as far as `objects` says.

mod autoscaling;
mod claims;
mod cron;
mod data;
mod formats;
mod jobs;
mod kinds;
mod networking;
mod node;
mod pods;
mod quantities;
mod rbac;
mod selectors;
mod services;
mod shown;
mod update;
mod workloads;

use std::ops::Deref;

use palisade_cel::Minor;
use serde_json::Value;

use super::{Kinds, Refused, Resource, Submission, conclude};
use crate::validation::{Checking, FieldError, NOT_SHOWN, meta, names};

/// The parts of the API server's validation that are missing here, in addition to the kinds that [`validated`] omits.
pub const NOT_VALIDATED: &[&str] = &[
    "other built-in kinds than those above, but for their metadata",
    "fields of alpha features, which are off by default",
    "the texts of mistakes in a Secret whose registry credentials are not JSON, and in the annotation \
     scheduler.alpha.kubernetes.io/tolerations: there is no verdict",
    "a Job with a successPolicy and without completions, which makes the API server panic: there is no verdict",
    "until 1.33, the part of a text that shows a struct as Go writes it, with addresses of the API server's memory",
    "an empty list where nothing may be set (owners in a template of a claim, supplementalGroups on Windows, claims of \
     the resources of a pod), which is as if nothing were there",
    "whether the key of a TLS secret fits its certificate, which is only warned of",
    "updates of kinds and subresources whose rules for updates are not here: there is no verdict",
];

/// Is all validated of a resource that the API server validates when an object is created?
pub fn is_validated(resource: &Resource) -> bool {
    kinds::VALIDATED.contains(&(resource.group.as_str(), resource.plural.as_str()))
}

/// The built-in resources with complete validation, as `deployments.apps`.
pub fn validated() -> Vec<String> {
    let name = |(group, plural): &(&str, &str)| {
        if group.is_empty() { (*plural).to_owned() } else { format!("{plural}.{group}") }
    };
    let definitions = ("apiextensions.k8s.io", "customresourcedefinitions");
    kinds::VALIDATED.iter().chain([&definitions]).map(name).collect()
}

/// Rejects an object with errors.
pub(super) fn check(kinds: &Kinds, sent: Submission<'_>, object: &Value) -> Result<(), Refused> {
    let r = sent.resource;
    let old = sent.old.map(Deref::deref);
    let mut checking = Checking { minor: kinds.minor, old, errors: Vec::new(), unknown: None };
    match sent.old {
        Some(old) => update::check(&mut checking, kinds, sent, old, object)?,
        None if sent.subresource.is_empty() => {
            let is = |group: &str, plural: &str| (r.group.as_str(), r.plural.as_str()) == (group, plural);
            // The allocator of addresses comes first, and refuses by itself what it cannot start from.
            if is("", "services") {
                services::before_allocation(&mut checking, sent.object);
                if !checking.errors.is_empty() {
                    return conclude(&r.group, &r.kind, object, checking);
                }
            }
            // Its own validation leaves the metadata to what comes after all validation.
            let late = is("policy", "poddisruptionbudgets");
            if is_review(r) {
                of_review(&mut checking, r, sent.object);
            } else if !late {
                metadata(&mut checking, r, object);
            }
            kinds::check(&mut checking, r, object);
            if late && checking.errors.is_empty() {
                meta::check(&mut checking, object, names::path_segment);
            }
        }
        None => meta::check(&mut checking, object, |_| Vec::new()),
    }
    if sent.subresource == "scale" {
        return conclude("autoscaling", "Scale", object, checking);
    }
    conclude(&r.group, &r.kind, object, checking)
}

/// Whether objects of this kind are answered and not stored: they need no name.
fn is_review(r: &Resource) -> bool {
    matches!(r.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io") && r.kind.ends_with("Review")
}

/// Checks the metadata of access reviews (`ValidateSubjectAccessReview` and the like in
/// `pkg/apis/authorization/validation/validation.go`). The metadata of other reviews is not checked.
fn of_review(checking: &mut Checking<'_>, r: &Resource, object: &Value) {
    let local = r.kind == "LocalSubjectAccessReview";
    let is_empty = |value: &Value| match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    };
    let fields = object["metadata"].as_object().into_iter().flatten();
    let says = |key: &str| key != "managedFields" && !(local && key == "namespace");
    if r.kind.ends_with("AccessReview") && fields.into_iter().any(|(key, value)| says(key) && !is_empty(value)) {
        checking.errors.push(FieldError::invalid_shown("metadata", NOT_SHOWN, "must be empty"));
    }
}

fn metadata(checking: &mut Checking<'_>, r: &Resource, object: &Value) {
    let form: fn(&str) -> Vec<String> = match (r.group.as_str(), r.plural.as_str()) {
        ("rbac.authorization.k8s.io" | "flowcontrol.apiserver.k8s.io", _) => names::path_segment,
        ("", "namespaces") | ("apps", "statefulsets") => names::label,
        // The feature RelaxedServiceNameValidation is on by default since then.
        ("", "services") if checking.minor >= Minor::V1_36 => names::label,
        ("", "services") => names::label_1035,
        _ => names::subdomain,
    };
    meta::check(checking, object, form);
    if !matches!(
        r.group.as_str(),
        "" | "apps" | "batch" | "networking.k8s.io" | "autoscaling" | "rbac.authorization.k8s.io"
    ) || r.kind == "Event"
    {
        return;
    }
    let finalizers = object.pointer("/metadata/finalizers").and_then(Value::as_array);
    for (i, finalizer) in finalizers.into_iter().flatten().filter_map(Value::as_str).enumerate() {
        if !finalizer.contains('/') && !["kubernetes", "orphan", "foregroundDeletion"].contains(&finalizer) {
            let text = "name is neither a standard finalizer name nor is it fully qualified";
            checking.errors.push(FieldError::invalid(format!("metadata.finalizers[{i}]"), finalizer, text));
        }
    }
}
