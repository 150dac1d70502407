//! Defaults of workloads and autoscalers.

use palisade_cel::Minor;
use serde_json::{Value, json};

use super::{Object, child, is_empty_list, set, text};

pub(super) fn deployment(deployment: &mut Object) {
    let spec = child(deployment, "spec");
    set(spec, "replicas", 1);
    rolling_update(child(spec, "strategy"), "25%".into(), "25%".into());
    set(spec, "revisionHistoryLimit", 10);
    set(spec, "progressDeadlineSeconds", 600);
}

pub(super) fn daemon_set(set_of_pods: &mut Object) {
    let spec = child(set_of_pods, "spec");
    rolling_update(child(spec, "updateStrategy"), 1.into(), 0.into());
    set(spec, "revisionHistoryLimit", 10);
}

fn rolling_update(strategy: &mut Object, max_unavailable: Value, max_surge: Value) {
    set(strategy, "type", "RollingUpdate");
    if text(strategy, "type") == "RollingUpdate" {
        let rolling = child(strategy, "rollingUpdate");
        set(rolling, "maxUnavailable", max_unavailable);
        set(rolling, "maxSurge", max_surge);
    }
}

pub(super) fn stateful_set(minor: Minor, set_of_pods: &mut Object) {
    let spec = child(set_of_pods, "spec");
    set(spec, "podManagementPolicy", "OrderedReady");
    let strategy = child(spec, "updateStrategy");
    if text(strategy, "type").is_empty() {
        set(strategy, "type", "RollingUpdate");
        child(strategy, "rollingUpdate");
    }
    if text(strategy, "type") == "RollingUpdate"
        && let Some(rolling) = strategy.get_mut("rollingUpdate").and_then(Value::as_object_mut)
    {
        set(rolling, "partition", 0);
        // The feature MaxUnavailableStatefulSet is on by default since then.
        if minor >= Minor::V1_37 {
            set(rolling, "maxUnavailable", 1);
        }
    }
    let retention = child(spec, "persistentVolumeClaimRetentionPolicy");
    set(retention, "whenDeleted", "Retain");
    set(retention, "whenScaled", "Retain");
    set(spec, "replicas", 1);
    set(spec, "revisionHistoryLimit", 10);
}

/// The labels of the template are those of the object and its selector, where these have none.
pub(super) fn replication_controller(controller: &mut Object) {
    let spec = child(controller, "spec");
    set(spec, "replicas", 1);
    let Some(labels) = spec.get("template").and_then(|t| t.pointer("/metadata/labels")).cloned() else { return };
    if spec.get("selector").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty) {
        spec.insert("selector".to_owned(), labels.clone());
    }
    own_labels(controller, labels);
}

fn own_labels(object: &mut Object, labels: Value) {
    let metadata = child(object, "metadata");
    if metadata.get("labels").and_then(Value::as_object).is_none_or(serde_json::Map::is_empty) {
        metadata.insert("labels".to_owned(), labels);
    }
}

pub(super) fn job(job: &mut Object) {
    let spec = child(job, "spec");
    if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
        set(spec, "completions", 1);
    }
    set(spec, "parallelism", 1);
    let limit = if spec.contains_key("backoffLimitPerIndex") { i64::from(i32::MAX) } else { 6 };
    set(spec, "backoffLimit", limit);
    set(spec, "completionMode", "NonIndexed");
    set(spec, "suspend", false);
    let replacement = if spec.contains_key("podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
    set(spec, "podReplacementPolicy", replacement);
    set(spec, "manualSelector", false);
    if let Some(labels) = spec.get("template").and_then(|t| t.pointer("/metadata/labels")).cloned() {
        own_labels(job, labels);
    }
}

pub(super) fn autoscaler(autoscaler: &mut Object) {
    let spec = child(autoscaler, "spec");
    set(spec, "minReplicas", 1);
    if is_empty_list(spec, "metrics") {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        spec.insert("metrics".to_owned(), json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]));
    }
    let Some(behavior) = spec.get_mut("behavior").and_then(Value::as_object_mut) else { return };
    let up = child(behavior, "scaleUp");
    set(up, "stabilizationWindowSeconds", 0);
    set(up, "selectPolicy", "Max");
    set(
        up,
        "policies",
        json!([
            {"type": "Pods", "value": 4, "periodSeconds": 15},
            {"type": "Percent", "value": 100, "periodSeconds": 15},
        ]),
    );
    let down = child(behavior, "scaleDown");
    set(down, "selectPolicy", "Max");
    set(down, "policies", json!([{"type": "Percent", "value": 100, "periodSeconds": 15}]));
}
