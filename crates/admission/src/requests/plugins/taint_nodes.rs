//! `TaintNodesByCondition`: a new Node gets the taint of nodes that are not ready (`plugin/pkg/admission/nodetaint`).

use serde_json::{Value as Json, json};

use super::Attributes;
use crate::objects::Refused;

pub(super) fn mutate(attributes: &Attributes<'_>, node: &mut Json) -> Result<(), Refused> {
    if !attributes.creates() || !attributes.is("", "nodes", "") {
        return Ok(());
    }
    let Some(spec) = node.get_mut("spec").and_then(Json::as_object_mut) else { return Ok(()) };
    let taints = spec.entry("taints").or_insert_with(|| json!([]));
    if let Some(taints) = taints.as_array_mut() {
        let key = "node.kubernetes.io/not-ready";
        if !taints.iter().any(|taint| taint["key"] == key && taint["effect"] == "NoSchedule") {
            taints.push(json!({"key": key, "effect": "NoSchedule"}));
        }
    }
    Ok(())
}
