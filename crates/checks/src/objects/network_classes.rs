//! # networkClasses
//!
//! The class of an Ingress or a Gateway selects the controller that serves it. A platform can have controllers that are
//! not for tenants, for example one with an address in an internal network. Every controller can serve an Ingress
//! without a class.
//!
//! The API server sets the default class of the cluster, if there is one, before policies run.
//!
//! ## If your object was denied
//!
//! Set `spec.ingressClassName` of an Ingress, or `spec.gatewayClassName` of a Gateway, to a class that the message lists,
//! and remove the annotation `kubernetes.io/ingress.class`.

use super::{
    classes,
    kinds::{GATEWAY, INGRESS},
};
use crate::{ObjectCheck, ObjectRule};

/// The annotation that had the class before the field existed. Controllers still read it, and it takes precedence.
const ANNOTATION: &str = "kubernetes.io/ingress.class";

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkClasses",
    title: "Classes of Ingresses and Gateways",
    settings: &["network.allowedIngressClasses", "network.allowedGatewayClasses"],
    kinds: &[INGRESS, GATEWAY],
    fields: &["spec.ingressClassName", "metadata.annotations['kubernetes.io/ingress.class']", "spec.gatewayClassName"],
    exempt: None,
    fixtures: include_str!("network_classes.yaml"),
    compile: |settings, cx| {
        let network = &settings.network;
        let mut rule = ObjectRule::default();
        if let Some(allowed) = &network.allowed_ingress_classes {
            let found = classes::by_annotation_or_field(ANNOTATION, "ingressClassName");
            let at = ("spec.network.allowedIngressClasses", "spec.ingressClassName");
            classes::only(&[INGRESS], at, &found, allowed, cx, &mut rule);
        }
        if let Some(allowed) = &network.allowed_gateway_classes {
            let found = "[string(variables.object.?spec.?gatewayClassName.orValue(''))]";
            let at = ("spec.network.allowedGatewayClasses", "spec.gatewayClassName");
            classes::only(&[GATEWAY], at, found, allowed, cx, &mut rule);
        }
        rule.unless_empty()
    },
};
