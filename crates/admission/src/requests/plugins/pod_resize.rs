//! `PodResizeValidator`: a pod on a node requests no more than the node has (`plugin/pkg/admission/podresize`).

use std::cmp::Ordering;

use palisade_cel::Quantity;
use serde_json::Value as Json;

use super::{
    Attributes, Found, PluginRemarks,
    resources::{Level, amounts},
};
use crate::{objects::Refused, validation::quote};

pub(super) fn validate(attributes: &Attributes<'_>, pod: Option<&Json>, _: &mut PluginRemarks) -> Result<(), Refused> {
    let concerned = attributes.updates() && attributes.is("", "pods", "resize");
    let (true, Some(pod), Some(old)) = (concerned, pod, attributes.old) else { return Ok(()) };
    let name = pod["spec"]["nodeName"].as_str().unwrap_or_default();
    if name.is_empty() || pod["spec"] == old["spec"] {
        return Ok(());
    }
    let node = match attributes.find("", "Node", "", name) {
        Found::Object(node) => node,
        Found::Missing => return Err(attributes.forbidden(format!("node {} not found", quote(name)))),
        Found::Unknown => {
            let depends = ", and else compares what it has with what the pod asks for";
            return Err(Attributes::unknown("PodResizeValidator", "Node", name, depends));
        }
    };
    if let Some(system) = node["metadata"]["labels"]["kubernetes.io/os"].as_str().filter(|system| *system != "linux") {
        let (name, system) = (quote(name), quote(system));
        let why = format!("pod resize is only supported on linux nodes, node {name} is {system}");
        return Err(attributes.forbidden(why));
    }
    let requests = amounts(&pod["spec"], "requests", Level::WithOverhead);
    let mut lacking = Vec::new();
    for (resource, decimals) in [("cpu", 3), ("memory", 0)] {
        let wanted = requests.get(resource).cloned().unwrap_or_else(|| Quantity::count(0));
        let has = node["status"]["allocatable"][resource].as_str().unwrap_or("0");
        let has = Quantity::parse(has).unwrap_or_else(|_| Quantity::count(0));
        if wanted.compare(&has) == Ordering::Greater {
            let shown = |amount: &Quantity| amount.scaled_up(decimals).unwrap_or_else(|| amount.to_string());
            lacking.push(format!("{resource}, requested: {}, allocatable: {}", shown(&wanted), shown(&has)));
        }
    }
    if lacking.is_empty() {
        return Ok(());
    }
    let why = format!("node didn't have enough allocatable resources: {}", lacking.join("; "));
    Err(attributes.forbidden(why))
}
