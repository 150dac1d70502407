//! Labels of nodes that are deprecated (`pkg/api/node/util.go`).

use palisade_cel::Minor;
use serde_json::Value;

use super::Warnings;
use crate::validation::{list, names, text};

/// The warning about a label, if there is one.
pub(super) fn deprecated(key: &str) -> Option<&'static str> {
    Some(match key {
        "beta.kubernetes.io/arch" => r#"deprecated since v1.14; use "kubernetes.io/arch" instead"#,
        "beta.kubernetes.io/os" => r#"deprecated since v1.14; use "kubernetes.io/os" instead"#,
        "failure-domain.beta.kubernetes.io/region" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/region" instead"#
        }
        "failure-domain.beta.kubernetes.io/zone" => {
            r#"deprecated since v1.17; use "topology.kubernetes.io/zone" instead"#
        }
        "beta.kubernetes.io/instance-type" => {
            r#"deprecated since v1.17; use "node.kubernetes.io/instance-type" instead"#
        }
        "app.kubernetes.io/created-by" => "deprecated since v1.9",
        "scheduler.alpha.kubernetes.io/preferAvoidPods" => "deprecated since v1.22; use Taints and Tolerations instead",
        "node-role.kubernetes.io/master" => r#"use "node-role.kubernetes.io/control-plane" instead"#,
        _ => return None,
    })
}

/// The expressions of a `NodeSelectorTerm` or a selector; values are looked at if it says in the words of which
/// minor.
pub(super) fn expressions(path: &str, term: &Value, values: Option<Minor>, out: &mut Warnings) {
    for (i, expression) in list(term, "matchExpressions").iter().enumerate() {
        let key = text(expression, "key");
        if let Some(message) = deprecated(key) {
            out.push(format!("{path}.matchExpressions[{i}].key: {key} is {message}"));
        }
        let Some(minor) = values else { continue };
        for (j, value) in list(expression, "values").iter().filter_map(Value::as_str).enumerate() {
            for wrong in names::label_value(minor, value) {
                out.push(format!("{path}.matchExpressions[{i}].values[{j}]: {value} is invalid, {wrong}"));
            }
        }
    }
}

/// Deprecated keys of a map of labels, with their messages.
pub(super) fn labels(map: &Value) -> impl Iterator<Item = (&str, &'static str)> {
    map.as_object().into_iter().flatten().filter_map(|(key, _)| Some((key.as_str(), deprecated(key)?)))
}

pub(super) fn runtime_class(class: &Value, out: &mut Warnings) {
    let selector = &class["scheduling"]["nodeSelector"];
    out.extend(labels(selector).map(|(_, message)| format!("scheduling.nodeSelector: {message}")));
}

/// `StorageClass` and `CSIStorageCapacity`, each of which has another field (`pkg/api/storage/util.go`).
pub(super) fn topology(object: &Value, out: &mut Warnings) {
    for (i, topology) in list(object, "allowedTopologies").iter().enumerate() {
        for (j, expression) in list(topology, "matchLabelExpressions").iter().enumerate() {
            if let Some(message) = deprecated(text(expression, "key")) {
                out.push(format!("allowedTopologies[{i}].matchLabelExpressions[{j}].key: {message}"));
            }
        }
    }
    let selector = &object["nodeTopology"];
    expressions("nodeTopology", selector, None, out);
    out.extend(labels(&selector["matchLabels"]).map(|(key, text)| format!("nodeTopology.matchLabels.{key}: {text}")));
}
