//! Whether an object is valid, as far as `objects` says.

mod kinds;
mod pods;
mod update;

use std::ops::Deref;

use serde_json::Value;

use super::{Kinds, Refused, Resource, Sent};
pub use update::NOT_SHOWN;
pub(super) use update::metadata_update;

use crate::create::{Checking, FieldError, meta, names, quote};

/// Refuses what validation finds wrong.
pub(super) fn check(kinds: &Kinds, sent: Sent<'_>, object: &Value) -> Result<(), Refused> {
    let r = sent.resource;
    let old = sent.old.map(Deref::deref);
    let mut checking = Checking { minor: kinds.minor, old, errors: Vec::new(), unknown: None };
    match sent.old {
        Some(old) => update::check(&mut checking, kinds, sent, old, object)?,
        None if sent.subresource.is_empty() => {
            metadata(&mut checking, r, object);
            kinds::check(&mut checking, r, object);
        }
        None => meta::check(&mut checking, object, |_| Vec::new()),
    }
    if sent.subresource == "scale" {
        return conclude("autoscaling", "Scale", object, checking);
    }
    conclude(&r.group, &r.kind, object, checking)
}

/// Refuses if there is a mistake.
pub(super) fn conclude(group: &str, kind: &str, object: &Value, checking: Checking<'_>) -> Result<(), Refused> {
    if !checking.errors.is_empty() {
        let of = if group.is_empty() { kind.to_owned() } else { format!("{kind}.{group}") };
        let name = object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default();
        return Err(Refused::Validation { what: format!("{of} {}", quote(name)), causes: checking.errors });
    }
    checking.unknown.map_or(Ok(()), |why| Err(Refused::NoVerdict(why)))
}

fn metadata(checking: &mut Checking<'_>, r: &Resource, object: &Value) {
    let form: fn(&str) -> Vec<String> = match (r.group.as_str(), r.plural.as_str()) {
        ("rbac.authorization.k8s.io" | "flowcontrol.apiserver.k8s.io", _) => names::path_segment,
        ("", "namespaces") => names::label,
        // The feature RelaxedServiceNameValidation is on by default since then.
        ("", "services") if checking.minor >= 36 => names::label,
        ("", "services") => names::label_1035,
        _ => names::subdomain,
    };
    let length = object.pointer("/metadata/name").and_then(Value::as_str).map_or(0, str::len);
    // Longer names were once taken, and are not held against an update.
    if r.group == "batch" && r.kind == "CronJob" && length > 52 && checking.old.is_none() {
        checking.errors.push(FieldError::invalid(
            "metadata.name",
            object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or_default(),
            "must be no more than 52 characters",
        ));
    }
    meta::check(checking, object, form);
    if !matches!(r.group.as_str(), "" | "apps" | "batch" | "networking.k8s.io" | "autoscaling") || r.kind == "Event" {
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
