//! `PodTopologyLabels`: a pod that is created on a node, or bound to one, gets the labels of the node's zone and region
//! (`plugin/pkg/admission/podtopologylabels`). A node that is in no file has none.

use serde_json::{Value as Json, json};

use super::{Attributes, Found};
use crate::objects::{Gate, Refused};

const LABELS: [&str; 2] = ["topology.kubernetes.io/zone", "topology.kubernetes.io/region"];

pub(super) fn mutate(attributes: &Attributes<'_>, object: &mut Json) -> Result<(), Refused> {
    let on = Gate::PodTopologyLabelsAdmission.is_on(attributes.cluster.minor());
    if !on || !attributes.creates() {
        return Ok(());
    }
    let node = if attributes.is("", "pods", "") {
        object["spec"]["nodeName"].as_str()
    } else if attributes.is("", "pods", "binding") {
        object["target"]["name"].as_str().filter(|_| object["target"]["kind"] == "Node")
    } else {
        None
    };
    let Some(Found::Object(node)) = node.map(|name| attributes.find("", "Node", "", name)) else { return Ok(()) };
    let Some(object) = object.as_object_mut() else { return Ok(()) };
    for key in LABELS {
        let Some(value) = node["metadata"]["labels"].get(key) else { continue };
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        let Some(metadata) = metadata.as_object_mut() else { return Ok(()) };
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if labels.is_null() {
            *labels = json!({});
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.insert(key.to_owned(), value.clone());
        }
    }
    Ok(())
}
