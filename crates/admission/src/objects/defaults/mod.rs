//! The defaults of the API server (`pkg/apis/*/v*/defaults.go`), by the type of each struct in an object, outer ones first.

mod constants;
mod image;
pub(super) mod pods;
mod services;
mod workloads;

use palisade_cel::Minor;
use serde_json::{Map, Value};

use super::table::{Own, Table, Type};
use constants::constants;

/// A decoded struct: what is nil or zero is absent.
pub(super) type Object = Map<String, Value>;

/// Sets the defaults of a struct and of all in it.
pub(super) fn fill(table: &Table, minor: Minor, name: &str, object: &mut Object) {
    let Some(of) = table.get(name) else { return };
    for part in &of.parts {
        structural(minor, part, object);
        for (key, value) in constants(minor, part) {
            if !object.contains_key(*key) && of.field(key).is_some() {
                object.insert((*key).to_owned(), value.to_json());
            }
        }
    }
    for field in &of.fields {
        if let Some(default) = &field.default
            && !object.contains_key(&field.name)
            && (!is_nothing(default) || matches!(field.of, Type::Pointer(_)))
        {
            object.insert(field.name.clone(), default.clone());
        }
        // The group of RuntimeClass has no defaults of amounts.
        if name.starts_with("node/") {
            continue;
        }
        if let Some(value) = object.get_mut(&field.name) {
            fill_value(table, minor, &field.of, value);
        }
    }
}

/// Whether a default is the zero value, which an unset field has anyway unless it is a pointer.
fn is_nothing(default: &Value) -> bool {
    match default {
        Value::String(text) => text.is_empty(),
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::Bool(value) => !value,
        _ => false,
    }
}

fn fill_value(table: &Table, minor: Minor, of: &Type, value: &mut Value) {
    match (of, value) {
        (Type::Named(name, _), Value::Object(list)) if &**name == "core/v1.ResourceList" => pods::round_up(list),
        (Type::Named(_, inner) | Type::Pointer(inner), value) => fill_value(table, minor, inner, value),
        (Type::Struct(name), Value::Object(object)) => fill(table, minor, name, object),
        (Type::List(inner), Value::Array(list)) if !matches!(**inner, Type::Own(Own::Any)) => {
            for element in list {
                fill_value(table, minor, inner, element);
            }
        }
        _ => {}
    }
}

/// Defaults that depend on more than their own field. Those of a whole struct come before those of its parts.
fn structural(minor: Minor, part: &str, object: &mut Object) {
    match part {
        "core/v1.Pod" => pods::pod(minor, object),
        "core/v1.Volume" => pods::volume(minor, object),
        "core/v1.Container" | "core/v1.EphemeralContainer" => pods::container(object),
        "core/v1.Service" => services::service(object),
        "core/v1.Endpoints" => services::endpoints(object),
        "core/v1.ReplicationController" => workloads::replication_controller(object),
        "core/v1.PersistentVolume" => {
            let spec = child(object, "spec");
            set(spec, "persistentVolumeReclaimPolicy", "Retain");
            set(spec, "volumeMode", "Filesystem");
        }
        "core/v1.Namespace" => services::namespace(object),
        "core/v1.NodeStatus" => services::node_status(object),
        "core/v1.LimitRangeItem" => services::limit_range_item(object),
        "apps/v1.Deployment" => workloads::deployment(object),
        "apps/v1.DaemonSet" => workloads::daemon_set(object),
        "apps/v1.StatefulSet" => workloads::stateful_set(minor, object),
        "apps/v1.ReplicaSet" => set(child(object, "spec"), "replicas", 1),
        "batch/v1.Job" => workloads::job(object),
        "scheduling/v1beta1.PodGroup" | "scheduling/v1alpha3.PodGroup" | "scheduling/v1alpha3.CompositePodGroup" => {
            set(child(object, "spec"), "disruptionMode", serde_json::json!({"single": {}}));
        }
        "autoscaling/v1.HorizontalPodAutoscaler" => set(child(object, "spec"), "minReplicas", 1),
        "autoscaling/v2.HorizontalPodAutoscaler" => workloads::autoscaler(object),
        "networking/v1.NetworkPolicy" => services::network_policy(child(object, "spec")),
        "networking/v1.IngressClass" => services::ingress_class(child(object, "spec")),
        "rbac/v1.RoleBinding" | "rbac/v1.ClusterRoleBinding" => {
            set(child(object, "roleRef"), "apiGroup", "rbac.authorization.k8s.io");
        }
        "rbac/v1.Subject" => services::subject(object),
        "storage/v1.CSIDriver" | "storage/v1beta1.CSIDriver" => services::csi_driver(minor, child(object, "spec")),
        "apiextensions/v1.CustomResourceDefinition" => services::definition(object),
        _ if part.starts_with("resource/") => services::device(minor, part, object),
        _ => {}
    }
}

/// The struct in a field, which is always there unless it is a pointer.
fn child<'o>(object: &'o mut Object, key: &str) -> &'o mut Object {
    let value = object.entry(key).or_insert_with(|| Value::Object(Map::new()));
    if !value.is_object() {
        *value = Value::Object(Map::new());
    }
    match value {
        Value::Object(object) => object,
        _ => unreachable!("made an object above"),
    }
}

/// Sets a field if it is unset.
fn set(object: &mut Object, key: &str, value: impl Into<Value>) {
    if !object.contains_key(key) {
        object.insert(key.to_owned(), value.into());
    }
}

fn text<'o>(object: &'o Object, key: &str) -> &'o str {
    object.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn objects<'o>(object: &'o mut Object, key: &str) -> impl Iterator<Item = &'o mut Object> {
    object.get_mut(key).and_then(Value::as_array_mut).into_iter().flatten().filter_map(Value::as_object_mut)
}

fn is_empty_list(object: &Object, key: &str) -> bool {
    object.get(key).and_then(Value::as_array).is_none_or(Vec::is_empty)
}
