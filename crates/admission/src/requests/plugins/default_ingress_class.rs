//! `DefaultIngressClass`: a new Ingress that names no class gets the default one
//! (`plugin/pkg/admission/network/defaultingressclass`).

use serde_json::{Value as Json, json};

use super::{Attributes, default_class::default_class};
use crate::objects::Refused;

const DEFAULT: &str = "ingressclass.kubernetes.io/is-default-class";

/// The former way of naming a class.
const ANNOTATION: &str = "kubernetes.io/ingress.class";

pub(super) fn mutate(attributes: &Attributes<'_>, ingress: &mut Json) -> Result<(), Refused> {
    if !attributes.creates() || !attributes.is("networking.k8s.io", "ingresses", "") {
        return Ok(());
    }
    let annotated = !ingress["metadata"]["annotations"][ANNOTATION].is_null();
    if annotated || !ingress["spec"]["ingressClassName"].is_null() {
        return Ok(());
    }
    let class = default_class(attributes, "networking.k8s.io", "IngressClass", &[DEFAULT]);
    if let (Some(class), Some(ingress)) = (class, ingress.as_object_mut()) {
        let spec = ingress.entry("spec").or_insert_with(|| json!({}));
        if let Some(spec) = spec.as_object_mut() {
            spec.insert("ingressClassName".to_owned(), json!(class));
        }
    }
    Ok(())
}
