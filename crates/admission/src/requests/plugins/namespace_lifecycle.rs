//! `NamespaceLifecycle`: nothing new in a namespace that is being deleted, and no deletion of the namespaces that every
//! cluster needs (`k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle`).
//!
//! A namespace that is in no file exists here, if its name is one that a namespace can have.

use serde_json::Value as Json;

use super::Attributes;
use crate::{
    objects::Refused,
    requests::Operation,
    validation::{names, quote},
};

/// `kube-node-lease` is not among them.
const IMMORTAL: [&str; 3] = ["default", "kube-system", "kube-public"];

/// Deletions as well: they have no object, and the plugin looks at none.
pub(super) fn mutate(attributes: &Attributes<'_>, _: &mut Json) -> Result<(), Refused> {
    let request = attributes.request;
    let is_namespace = request.kind.group.is_empty() && request.kind.kind == "Namespace";
    if is_namespace && request.operation == Operation::Delete && IMMORTAL.contains(&request.name.as_str()) {
        let resource = request.resource.group_resource();
        let name = quote(&request.name);
        return Err(Refused::Forbidden(format!("{resource} {name} is forbidden: this namespace may not be deleted")));
    }
    let is_review =
        request.resource.group == "authorization.k8s.io" && request.resource.resource == "localsubjectaccessreviews";
    if is_namespace || request.operation != Operation::Create || is_review {
        return Ok(());
    }
    let name = attributes.namespace();
    if !name.is_empty() && !names::label(name).is_empty() {
        return Err(Refused::NotFound(format!("namespaces {} not found", quote(name))));
    }
    let namespace = attributes.cluster.namespace(name);
    if namespace.is_some_and(|namespace| namespace["status"]["phase"] == "Terminating") {
        let why = format!("unable to create new content in namespace {name} because it is being terminated");
        return Err(attributes.forbidden(why));
    }
    Ok(())
}
