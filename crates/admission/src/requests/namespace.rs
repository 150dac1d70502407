//! The variable `namespaceObject`.

use palisade_kube_json::json::Change as _;
use serde_json::{Map, Value as Json, json};

/// The metadata of a namespace that expressions see (`CreateNamespaceObject` in apiserver
/// `pkg/admission/plugin/cel/condition.go`).
const METADATA: &[&str] = &[
    "name",
    "generateName",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "labels",
    "annotations",
    "finalizers",
];

/// The label that every namespace has, with its name as value.
pub(super) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// A namespace as expressions see it.
pub(crate) fn variable(namespace: &Json) -> Json {
    let metadata: Map<String, Json> = METADATA
        .iter()
        .filter_map(|&field| Some((field.to_owned(), namespace.get("metadata")?.get(field)?.clone())))
        .collect();
    let part = |name: &str| namespace.get(name).cloned().unwrap_or_else(|| json!({}));
    json!({"metadata": metadata, "spec": part("spec"), "status": part("status")})
}

/// A namespace as the API server creates it, with its label, its finalizer and its phase.
pub fn completed(mut namespace: Json) -> Json {
    let name = namespace["metadata"]["name"].clone();
    if !namespace["metadata"]["labels"].is_object() {
        *namespace.at_mut(&["metadata", "labels"]) = json!({});
    }
    *namespace.at_mut(&["metadata", "labels", NAME_LABEL]) = name;
    if namespace["spec"]["finalizers"].is_null() {
        *namespace.at_mut(&["spec", "finalizers"]) = json!(["kubernetes"]);
    }
    if namespace["status"]["phase"].is_null() {
        *namespace.at_mut(&["status", "phase"]) = json!("Active");
    }
    namespace
}
