//! Updates of the subresource `status` (`Validate*StatusUpdate` in `pkg/apis/*/validation/validation.go`).

use std::net::IpAddr;

use palisade_cel::{Minor, Quantity};
use serde_json::Value;

use super::{
    super::super::{Submission, gates::Gate},
    Change, IMMUTABLE, pods, unknown,
};
use crate::validation::{Checking, FieldError, list, names, part, text};

const NOT_NEGATIVE: &str = "must be greater than or equal to 0";

/// The numbers of a status: those that are not negative, those that are not greater than `replicas`, and what the text
/// calls those that are ready.
type Numbers = (&'static [&'static str], &'static [&'static str], &'static str);

const DEPLOYMENT: Numbers = (
    &[
        "observedGeneration",
        "replicas",
        "updatedReplicas",
        "readyReplicas",
        "availableReplicas",
        "unavailableReplicas",
        "terminatingReplicas",
        "collisionCount",
    ],
    &["updatedReplicas", "readyReplicas", "availableReplicas"],
    "readyReplicas",
);
const REPLICA_SET: Numbers = (
    &[
        "replicas",
        "fullyLabeledReplicas",
        "readyReplicas",
        "availableReplicas",
        "observedGeneration",
        "terminatingReplicas",
    ],
    &["fullyLabeledReplicas", "readyReplicas", "availableReplicas"],
    "readyReplicas",
);
const STATEFUL_SET: Numbers = (
    &[
        "replicas",
        "readyReplicas",
        "currentReplicas",
        "updatedReplicas",
        "availableReplicas",
        "observedGeneration",
        "collisionCount",
    ],
    &["readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas"],
    "status.readyReplicas",
);
const DAEMON_SET: Numbers = (
    &[
        "currentNumberScheduled",
        "numberMisscheduled",
        "desiredNumberScheduled",
        "numberReady",
        "observedGeneration",
        "updatedNumberScheduled",
        "numberAvailable",
        "numberUnavailable",
        "collisionCount",
    ],
    &[],
    "",
);
const AUTOSCALER: Numbers = (&["currentReplicas", "desiredReplicas"], &[], "");

pub(super) fn check(checking: &mut Checking<'_>, sent: Submission<'_>, change: Change<'_>) {
    let r = sent.resource;
    let what = format!("{}/status", r.plural);
    match (r.group.as_str(), r.plural.as_str()) {
        ("", "pods") => pod(checking, change),
        ("", "namespaces") => namespace(checking, change),
        ("", "persistentvolumeclaims") => claim(checking, change),
        ("", "replicationcontrollers") | ("apps", "replicasets") => numbers(checking, change, REPLICA_SET),
        ("apps", "deployments") => numbers(checking, change, DEPLOYMENT),
        ("apps", "statefulsets") => numbers(checking, change, STATEFUL_SET),
        ("apps", "daemonsets") => numbers(checking, change, DAEMON_SET),
        ("autoscaling", "horizontalpodautoscalers") => numbers(checking, change, AUTOSCALER),
        ("batch", "cronjobs") => {}
        _ if change.changed(&["status"]) => unknown(checking, &what, "the status"),
        _ => {}
    }
}

fn numbers(checking: &mut Checking<'_>, change: Change<'_>, (positive, bounded, ready): Numbers) {
    let (status, before) = (&change.new["status"], &change.old["status"]);
    let number = |of: &Value, key: &str| of[key].as_i64().unwrap_or(0);
    let mut wrong = |key: &str, text: &str| {
        let value = Value::from(number(status, key));
        checking.errors.push(FieldError::invalid_value(checking.minor, format!("status.{key}"), &value, text));
    };
    for key in positive.iter().filter(|key| number(status, key) < 0) {
        wrong(key, NOT_NEGATIVE);
    }
    for key in bounded.iter().filter(|key| number(status, key) > number(status, "replicas")) {
        wrong(key, "cannot be greater than status.replicas");
    }
    if bounded.contains(&"availableReplicas") && number(status, "availableReplicas") > number(status, "readyReplicas") {
        wrong("availableReplicas", &format!("cannot be greater than {ready}"));
    }
    if positive.contains(&"collisionCount") {
        let (now, before) = (part(status, "collisionCount"), part(before, "collisionCount"));
        let count = |of: Option<&Value>| of.and_then(Value::as_i64);
        // `IsDecremented`
        if before.is_some() && count(now).is_none_or(|now| count(before).is_some_and(|before| now < before)) {
            wrong("collisionCount", "cannot be decremented");
        }
    }
}

/// `ValidateNamespaceStatusUpdate`
fn namespace(checking: &mut Checking<'_>, change: Change<'_>) {
    let ends = !change.new["metadata"]["deletionTimestamp"].is_null();
    let (wanted, how) = if ends { ("Terminating", "not ") } else { ("Active", "") };
    let phase = text(&change.new["status"], "phase");
    if phase != wanted {
        let text = format!("may only be '{wanted}' if `deletionTimestamp` is {how}empty");
        checking.errors.push(FieldError::invalid("status.Phase", phase, &text));
    }
}

/// `ValidatePersistentVolumeClaimStatusUpdate`
fn claim(checking: &mut Checking<'_>, change: Change<'_>) {
    let status = &change.new["status"];
    for (key, quantity) in status["capacity"].as_object().into_iter().flatten() {
        let negative = quantity.as_str().and_then(|text| Quantity::parse(text).ok()).filter(|of| of.sign() < 0);
        if let Some(quantity) = negative {
            let text = "must be a valid resource quantity";
            checking.errors.push(FieldError::invalid_shown(
                format!("status.capacity[{key}]"),
                &quantity.to_string(),
                text,
            ));
        }
    }
    for key in ["allocatedResources", "allocatedResourceStatuses"] {
        if change.changed(&["status", key]) {
            unknown(checking, "persistentvolumeclaims/status", &format!("status.{key}"));
        }
    }
}

/// Parts of the status of a pod of which is known what may change.
const OF_PODS: &[&str] = &[
    "conditions",
    "containerStatuses",
    "ephemeralContainerStatuses",
    "initContainerStatuses",
    "hostIP",
    "hostIPs",
    "message",
    "nominatedNodeName",
    "observedGeneration",
    "phase",
    "podIP",
    "podIPs",
    "qosClass",
    "reason",
    "startTime",
];

/// `ValidatePodStatusUpdate`
fn pod(checking: &mut Checking<'_>, change: Change<'_>) {
    pods::annotations(checking, change);
    // All else of a pod is validated when it is changed, and a status is not.
    super::super::pods::own_annotations(checking, change.new);
    let (now, before) = (&change.new["status"], &change.old["status"]);
    for (i, condition) in list(now, "conditions").iter().enumerate() {
        // Until 1.32 it is below the path of metadata.
        let parent = if checking.minor < Minor::V1_33 { "metadata" } else { "status" };
        let field = format!("{parent}.conditions[{i}]");
        let generation = &condition["observedGeneration"];
        if generation.as_i64().is_some_and(|generation| generation < 0) {
            let text = "must be a non-negative integer";
            let field = format!("{field}.observedGeneration");
            checking.errors.push(FieldError::invalid_value(checking.minor, field, generation, text));
        }
        let name = text(condition, "type");
        if !["PodScheduled", "Ready", "Initialized"].contains(&name) {
            let wrong = names::qualified(checking.minor, name);
            let wrong = wrong.iter().map(|wrong| FieldError::invalid(format!("{field}.Type"), name, wrong));
            checking.errors.extend(wrong.collect::<Vec<_>>());
        }
    }
    nominated(checking, change, now, before);
    if now["observedGeneration"].as_i64().is_some_and(|generation| generation < 0) {
        let (field, text) = ("status.observedGeneration", "must be a non-negative integer");
        checking.errors.push(FieldError::invalid_value(checking.minor, field, &now["observedGeneration"], text));
    }
    if text(now, "qosClass") != text(before, "qosClass") {
        checking.errors.push(FieldError::invalid("status.qosClass", text(now, "qosClass"), IMMUTABLE));
    }
    for key in ["containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"] {
        let terminated = list(before, key).iter().any(|status| part(&status["state"], "terminated").is_some());
        let special = list(now, key).iter().any(|status| {
            part(status, "user").is_some()
                || part(status, "allocatedResourcesStatus").is_some()
                || list(status, "volumeMounts").iter().any(|mount| part(mount, "volumeStatus").is_some())
        });
        if change.changed(&["status", key]) && (terminated || special) {
            unknown(checking, "pods/status", &format!("status.{key}"));
        }
    }
    for (key, inner) in [("podIPs", "ip"), ("hostIPs", "ip")] {
        let valid =
            list(now, key).len() < 2 && list(now, key).iter().all(|one| text(one, inner).parse::<IpAddr>().is_ok());
        if change.changed(&["status", key]) && !valid {
            unknown(checking, "pods/status", &format!("status.{key}"));
        }
    }
    if !change.same.below(&["status"]).but(OF_PODS, now, before) {
        unknown(checking, "pods/status", "other fields of the status");
    }
}

fn nominated(checking: &mut Checking<'_>, change: Change<'_>, now: &Value, before: &Value) {
    let (field, name) = ("status.nominatedNodeName", text(now, "nominatedNodeName"));
    if name.is_empty() || name == text(before, "nominatedNodeName") {
        return;
    }
    let wrong = names::subdomain(name);
    checking.errors.extend(wrong.iter().map(|wrong| FieldError::invalid(field, name, wrong)));
    if Gate::ClearingNominatedNodeNameAfterBinding.is_on(checking.minor)
        && !text(&change.old["spec"], "nodeName").is_empty()
    {
        let text = "may not be set on pods that are already bound to a node";
        checking.errors.push(FieldError::forbidden(field, text));
    }
}
