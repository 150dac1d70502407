//! Fields that an update cannot change, and fields that it changes without naming them: `rest.BeforeUpdate` and
//! `PrepareForUpdate` of the strategies (`pkg/registry/*/*/strategy.go`). Objects are as the decoder returns them.

use palisade_cel::Minor;
use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value, json};

use super::{
    equal::DeepEqual,
    pods, service,
    strategy::{claim, clean_secrets, is_generated, metadata},
    table::Table,
};

type Object = Map<String, Value>;

/// The metadata that a status subresource resets to the stored values: `ResetObjectMetaForStatus`.
const RESET: &[&str] = &["deletionTimestamp", "selfLink", "labels", "annotations", "finalizers", "ownerReferences"];

/// Kinds whose status subresource resets all of [`RESET`].
const RESET_FOR_STATUS: &[&str] =
    &["ServiceCIDR", "ResourceClaim", "DeviceTaintRule", "VolumeAttachment", "ValidatingAdmissionPolicy", "PodGroup"];

/// Kinds whose status subresource takes no metadata at all.
const OLD_METADATA: &[&str] = &["FlowSchema", "PriorityLevelConfiguration"];

/// An update of an object of a built-in kind.
pub(super) fn update(table: &Table, minor: Minor, name: &str, subresource: &str, object: &mut Object, old: &Object) {
    let kind = name.rsplit('.').next().unwrap_or(name);
    match subresource {
        "status" => status(kind, object, old),
        "ephemeralcontainers" => {
            let new = object.get("spec").map(|spec| spec["ephemeralContainers"].clone()).unwrap_or_default();
            replace(object, old, &["spec", "status"]);
            reset(object, old, RESET);
            if let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
                match new {
                    Value::Null => drop(spec.remove("ephemeralContainers")),
                    new => drop(spec.insert("ephemeralContainers".to_owned(), new)),
                }
            }
        }
        "resize" => {
            if pods::resize(minor, object, old) {
                reset(object, old, RESET);
            }
        }
        "finalize" => replace(object, old, &["status"]),
        _ => {
            replace(object, old, &["status"]);
            content(minor, name, object, old);
        }
    }
    let counts = is_generated(minor, name) && !matches!(subresource, "status" | "finalize") && kind != "PriorityClass";
    let same = DeepEqual::of(table, Some(name));
    let before = Value::Object(old.clone());
    let more = counts && {
        let now = Value::Object(object.clone());
        let part = |key: &str| !same.at(&["metadata", key], &now, &before);
        !same.but(&["apiVersion", "kind", "metadata", "status"], &now, &before)
            || (kind == "Deployment" && part("annotations"))
            || (kind == "EndpointSlice" && part("labels"))
    };
    if name == "apps/v1.DaemonSet" {
        let changed = !same.at(&["spec", "template"], &Value::Object(object.clone()), &before);
        template_generation(object, old, changed);
    }
    keep_metadata(object, old, more);
}

/// Takes these parts from the old object.
fn replace(object: &mut Object, old: &Object, parts: &[&str]) {
    for part in parts {
        match old.get(*part) {
            Some(value) => drop(object.insert((*part).to_owned(), value.clone())),
            None => drop(object.remove(*part)),
        }
    }
}

fn reset(object: &mut Object, old: &Object, keys: &[&str]) {
    let before = old.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    replace(metadata(object), &before, keys);
}

/// A status subresource takes the status, and some of the metadata.
fn status(kind: &str, object: &mut Object, old: &Object) {
    let others: Vec<String> = object.keys().chain(old.keys()).cloned().collect();
    for part in others.iter().filter(|part| !["apiVersion", "kind", "metadata", "status"].contains(&part.as_str())) {
        replace(object, old, &[part]);
    }
    match kind {
        "Deployment" => reset(object, old, &["labels"]),
        "Pod" => {
            reset(object, old, &["deletionTimestamp", "ownerReferences"]);
            pods::status(object, old);
        }
        _ if RESET_FOR_STATUS.contains(&kind) => reset(object, old, RESET),
        _ if OLD_METADATA.contains(&kind) => replace(object, old, &["metadata"]),
        _ => {}
    }
}

/// Applies the changes of the strategies to the object that the client sends.
fn content(minor: Minor, name: &str, object: &mut Object, old: &Object) {
    match name {
        "core/v1.PersistentVolumeClaim" => claim(minor, object),
        "core/v1.ServiceAccount" => clean_secrets(object),
        "core/v1.Service" => service::update(object, old),
        "core/v1.Namespace" => {
            let finalizers = old.get("spec").map(|spec| spec["finalizers"].clone()).unwrap_or_default();
            *object.at_mut(&["spec", "finalizers"]) = finalizers;
        }
        "certificates/v1.CertificateSigningRequest" => replace(object, old, &["spec"]),
        _ => {}
    }
}

/// The API server counts changes of the template, in an annotation.
fn template_generation(object: &mut Object, old: &Object, changed: bool) {
    const ANNOTATION: &str = "deprecated.daemonset.template.generation";
    let before = old.get("metadata").and_then(|metadata| metadata["annotations"][ANNOTATION].as_str()?.parse().ok());
    let now = before.unwrap_or(0_i64) + i64::from(changed);
    let annotations = metadata(object).entry("annotations").or_insert_with(|| json!({}));
    *annotations.at_mut(&[ANNOTATION]) = Value::from(now.to_string());
}

/// The generation is the server's; some of the metadata never changes.
fn keep_metadata(object: &mut Object, old: &Object, more: bool) {
    let nothing = Map::new();
    let before = old.get("metadata").and_then(Value::as_object).unwrap_or(&nothing);
    let now = metadata(object);
    match before.get("generation").and_then(Value::as_i64).unwrap_or(0) + i64::from(more) {
        0 => now.remove("generation"),
        generation => now.insert("generation".to_owned(), json!(generation)),
    };
    for key in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = before.get(key).filter(|value| !value.is_null()) {
            now.insert(key.to_owned(), value.clone());
        }
    }
    for key in ["uid", "deletionGracePeriodSeconds"] {
        if let Some(value) = before.get(key).filter(|_| now.get(key).is_none_or(|now| now.is_null() || now == "")) {
            now.insert(key.to_owned(), value.clone());
        }
    }
    if let Some(version) = before.get("resourceVersion")
        && now.get("resourceVersion").is_none_or(Value::is_null)
    {
        now.insert("resourceVersion".to_owned(), version.clone());
    }
}

/// An update of a custom resource (apiextensions-apiserver `pkg/registry/customresource/strategy.go`).
pub(super) fn custom(object: &mut Object, old: &Object, subresource: &str, has_status: bool) {
    if subresource == "status" {
        // Nothing of it but the status counts.
        let (status, fields) = (object.remove("status"), metadata(object).remove("managedFields"));
        object.clone_from(old);
        object.remove("status");
        object.extend(status.map(|status| ("status".to_owned(), status)));
        if let Some(fields) = fields {
            metadata(object).insert("managedFields".to_owned(), fields);
        }
        return;
    }
    if has_status {
        replace(object, old, &["status"]);
    }
    let table = Table::empty(Minor::DEFAULT);
    let same = DeepEqual::of(&table, None);
    let more = !same.but(&["metadata"], &Value::Object(object.clone()), &Value::Object(old.clone()));
    keep_metadata(object, old, more);
}
