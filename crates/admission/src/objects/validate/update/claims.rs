//! Updates of claims, volumes, and what holds data (`pkg/apis/core/validation/validation.go`).

use palisade_cel::{Minor, Quantity};
use palisade_kube_json::json::Change as _;
use serde_json::Value;

use super::{
    super::super::{Resource, gates::Gate},
    Change, IMMUTABLE, NOT_SHOWN, ValueDisplay, nothing,
};
use crate::validation::{Checking, FieldError, part, text};

/// The former place of the storage class.
const CLASS: &str = "volume.beta.kubernetes.io/storage-class";

/// `ValidatePersistentVolumeClaimUpdate`
pub(super) fn update(checking: &mut Checking<'_>, change: Change<'_>) {
    let (new, old) = (&change.new["spec"], &change.old["spec"]);
    let mut besides = Vec::new();
    if text(old, "volumeName").is_empty() {
        besides.push("volumeName");
    }
    let annotation = |of: &Value| of["metadata"]["annotations"][CLASS].as_str().map(str::to_owned);
    let (noted, noted_before) = (annotation(change.new), annotation(change.old));
    let class = new["storageClassName"].as_str();
    let unset = part(old, "storageClassName").is_none();
    let moves = unset
        && noted_before.is_some()
        && class == noted_before.as_deref()
        && (noted.is_none() || noted == noted_before);
    if moves {
        besides.push("storageClassName");
    } else {
        if noted.clone().unwrap_or_default() != noted_before.clone().unwrap_or_default() {
            let field = format!("metadata.annotations.{CLASS}");
            checking.errors.push(FieldError::invalid(field, &noted.unwrap_or_default(), IMMUTABLE));
        }
        if unset && class.is_some() && noted_before.is_none_or(|before| Some(before.as_str()) == class) {
            besides.push("storageClassName");
        }
    }
    let mut munged = new.clone();
    if change.new["status"]["phase"] == "Bound" {
        if let Some(requests) =
            munged.at_mut(&["resources"]).get_mut("requests").filter(|requests| requests.is_object())
        {
            *requests.at_mut(&["storage"]) = old["resources"]["requests"]["storage"].clone();
        }
        // Before, it could not be unset.
        if checking.minor >= Minor::V1_34 || part(new, "volumeAttributesClassName").is_some() {
            besides.push("volumeAttributesClassName");
        }
    }
    if !change.same.below(&["spec"]).but(&besides, &munged, old) {
        let text = format!(
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound \
             claims\n{NOT_SHOWN}"
        );
        checking.errors.push(FieldError::forbidden("spec", &text));
    }
    let size = |of: &Value| Quantity::parse(of.as_str().unwrap_or("0")).ok();
    let storage = |spec: &Value| size(&spec["resources"]["requests"]["storage"]);
    let capacity = size(&change.old["status"]["capacity"]["storage"]);
    if let (Some(now), Some(before), Some(capacity)) = (storage(new), storage(old), capacity)
        && now.compare(&before).is_lt()
        && now.compare(&capacity).is_le()
    {
        let text = "field can not be less than status.capacity";
        checking.errors.push(FieldError::forbidden("spec.resources.requests.storage", text));
    }
    change.immutable_as(checking, &["spec", "volumeMode"], "volumeMode", ValueDisplay::Value);
    attributes(checking, change, new);
}

fn attributes(checking: &mut Checking<'_>, change: Change<'_>, new: &Value) {
    let field = "spec.volumeAttributesClassName";
    if !change.changed(&["spec", "volumeAttributesClassName"]) {
        return;
    }
    if !Gate::VolumeAttributesClass.is_on(checking.minor) {
        let text = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
        checking.errors.push(FieldError::forbidden(field, text));
    }
    let is_older = checking.minor < Minor::V1_34;
    let (of, key) =
        if is_older { ("spec", "volumeAttributesClassName") } else { ("status", "currentVolumeAttributesClassName") };
    if part(&change.old[of], key).is_none() {
        return;
    }
    let (older, newer) = match part(new, "volumeAttributesClassName") {
        None => ("nil", "nil"),
        Some(name) if name == "" => ("an empty string", "empty string"),
        Some(_) => return,
    };
    let text = if is_older {
        format!("update from non-nil value to {older} is forbidden")
    } else {
        format!("update to {newer} is forbidden when status.currentVolumeAttributesClassName is not nil")
    };
    checking.errors.push(FieldError::forbidden(field, &text));
}

/// `ValidatePersistentVolumeUpdate`
pub(super) fn volume(checking: &mut Checking<'_>, change: Change<'_>) {
    // What is not a source of the volume.
    const OTHERS: &[&str] = &[
        "accessModes",
        "capacity",
        "claimRef",
        "mountOptions",
        "nodeAffinity",
        "persistentVolumeReclaimPolicy",
        "storageClassName",
        "volumeAttributesClassName",
        "volumeMode",
    ];
    let (mut new, old) = (change.new["spec"].clone(), change.old.get("spec").unwrap_or(nothing()));
    let secret = |spec: &Value| part(&spec["csi"], "controllerExpandSecretRef").is_some();
    if !old["csi"].is_null() && !secret(old) && secret(&new) {
        *new.at_mut(&["csi", "controllerExpandSecretRef"]) = Value::Null;
    }
    if !change.same.below(&["spec"]).but(OTHERS, &new, old) {
        let text = format!("spec.persistentvolumesource is immutable after creation\n{NOT_SHOWN}");
        checking.errors.push(FieldError::forbidden("spec.persistentvolumesource", &text));
    }
    change.immutable_as(checking, &["spec", "volumeMode"], "volumeMode", ValueDisplay::Value);
    for key in ["nodeAffinity", "volumeAttributesClassName"] {
        let was_there = part(old, key).is_some();
        if was_there && change.changed(&["spec", key]) {
            super::unknown(checking, "persistentvolumes", &format!("spec.{key}"));
        }
    }
}

/// `ValidateConfigMapUpdate` and `ValidateSecretUpdate`
pub(super) fn data(checking: &mut Checking<'_>, r: &Resource, change: Change<'_>) {
    if r.kind == "Secret" {
        change.immutable(checking, &["type"], ValueDisplay::Value);
    }
    if change.old["immutable"] != true {
        return;
    }
    let text = "field is immutable when `immutable` is set";
    if change.new["immutable"] != true {
        checking.errors.push(FieldError::forbidden("immutable", text));
    }
    for key in ["data", "binaryData"] {
        if change.changed(&[key]) {
            checking.errors.push(FieldError::forbidden(key, text));
        }
    }
}
