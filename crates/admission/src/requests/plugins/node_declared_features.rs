//! `NodeDeclaredFeatureValidator`: a pod on a node is resized only in ways that the node declares
//! (`plugin/pkg/admission/nodedeclaredfeatures`). It is not modelled here which resize needs which feature; other
//! updates of a pod need none.

use serde_json::Value as Json;

use super::{Attributes, PluginRemarks};
use crate::objects::{Gate, Refused};

pub(super) fn validate(attributes: &Attributes<'_>, pod: Option<&Json>, _: &mut PluginRemarks) -> Result<(), Refused> {
    let on = Gate::NodeDeclaredFeatures.is_on(attributes.cluster.minor());
    let concerned = on && attributes.updates() && attributes.is("", "pods", "resize");
    let (true, Some(pod), Some(old)) = (concerned, pod, attributes.old) else { return Ok(()) };
    match pod["spec"]["nodeName"].as_str() {
        Some(node) if !node.is_empty() && pod["spec"] != old["spec"] => Err(Refused::NoVerdict(format!(
            "admission plugin NodeDeclaredFeatureValidator: whether node {node:?} declares the features that this resize \
             needs is not known here"
        ))),
        _ => Ok(()),
    }
}
