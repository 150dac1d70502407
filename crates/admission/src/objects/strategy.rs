//! The common parts of the strategies of creation and of updates (`pkg/registry/*/*/strategy.go`).

use palisade_cel::Minor;
use serde_json::{Map, Value, json};

use super::gates::Gate;

type Object = Map<String, Value>;

/// Kinds whose `metadata.generation` counts changes of their content.
const GENERATED: &[&str] = &[
    "core/v1.Pod",
    "core/v1.PodTemplate",
    "core/v1.ReplicationController",
    "apps/v1.DaemonSet",
    "apps/v1.Deployment",
    "apps/v1.ReplicaSet",
    "apps/v1.StatefulSet",
    "batch/v1.CronJob",
    "batch/v1.Job",
    "discovery/v1.EndpointSlice",
    "networking/v1.Ingress",
    "networking/v1.IngressClass",
    "networking/v1.NetworkPolicy",
    "policy/v1.PodDisruptionBudget",
    "scheduling/v1.PriorityClass",
    "apiextensions/v1.CustomResourceDefinition",
    "flowcontrol/v1.FlowSchema",
    "flowcontrol/v1.PriorityLevelConfiguration",
];

/// Whether `metadata.generation` counts the changes of a kind.
pub(super) fn is_generated(minor: Minor, name: &str) -> bool {
    (GENERATED.contains(&name) && (name != "core/v1.Pod" || minor >= Minor::V1_33))
        || (Gate::HPAGeneration.is_on(minor)
            && name.starts_with("autoscaling/")
            && name.ends_with("HorizontalPodAutoscaler"))
        || name.starts_with("admissionregistration/")
        || (name.starts_with("resource/")
            && ["DeviceClass", "ResourceSlice", "DeviceTaintRule"].iter().any(|kind| name.ends_with(kind)))
}

/// The metadata of an object, which gets some if it has none.
pub(super) fn metadata(object: &mut Object) -> &mut Object {
    let value = object.entry("metadata").or_insert_with(|| json!({}));
    if !value.is_object() {
        *value = json!({});
    }
    match value {
        Value::Object(metadata) => metadata,
        _ => unreachable!("made an object above"),
    }
}

/// Of secrets nothing counts but their names.
pub(super) fn clean_secrets(account: &mut Object) {
    for secret in account.get_mut("secrets").and_then(Value::as_array_mut).into_iter().flatten() {
        *secret = json!({"name": secret["name"]});
    }
}

/// Copies `dataSource` and `dataSourceRef` to each other, if one is absent.
pub(super) fn claim(minor: Minor, claim: &mut Object) {
    let Some(spec) = claim.get_mut("spec").and_then(Value::as_object_mut) else { return };
    if !Gate::CrossNamespaceVolumeDataSource.is_on(minor)
        && spec
            .get("dataSourceRef")
            .is_some_and(|source| source["namespace"].as_str().is_some_and(|name| !name.is_empty()))
    {
        spec.remove("dataSourceRef");
    }
    if !spec.contains_key("dataSourceRef")
        && let Some(source) = spec.get("dataSource")
    {
        let known = matches!(
            (source["kind"].as_str(), source["apiGroup"].as_str().unwrap_or_default()),
            (Some("PersistentVolumeClaim"), "") | (Some("VolumeSnapshot"), "snapshot.storage.k8s.io")
        );
        if !known {
            spec.remove("dataSource");
        }
    }
    match (spec.get("dataSource").cloned(), spec.get("dataSourceRef").cloned()) {
        (Some(source), None) => {
            spec.insert("dataSourceRef".to_owned(), source);
        }
        (None, Some(mut source)) if source["namespace"].as_str().is_none_or(str::is_empty) => {
            if let Some(source) = source.as_object_mut() {
                source.remove("namespace");
            }
            spec.insert("dataSource".to_owned(), source);
        }
        _ => {}
    }
}
