//! # networkGateways
//!
//! A route names the Gateways that it attaches to. Each Gateway can have other listeners, certificates and addresses,
//! and decides itself which namespaces can attach routes: often all. Tenants can also attach routes to the Services of
//! other tenants, in meshes that support it.
//!
//! References to objects in the namespace of the route are always allowed.
//!
//! ## If your object was denied
//!
//! Set `spec.parentRefs[*].namespace` and `spec.parentRefs[*].name` of a route, or `spec.parentRef` of a ListenerSet, to a
//! Gateway that the message lists.

use super::kinds::{
    EXPERIMENTAL_LISTENER_SET, GATEWAY_GROUP, GRPC_ROUTE, HTTP_ROUTE, LISTENER_SET, TCP_ROUTE, TLS_ROUTE, UDP_ROUTE,
};
use crate::{Meaning, ObjectCheck, ObjectResource, ObjectRule, settings::any, texts::Wildcard};

const KINDS: &[ObjectResource] =
    &[HTTP_ROUTE, GRPC_ROUTE, TLS_ROUTE, TCP_ROUTE, UDP_ROUTE, LISTENER_SET, EXPERIMENTAL_LISTENER_SET];

/// The most references that are evaluated. The Gateway API accepts 32.
const MOST: usize = 64;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkGateways",
    title: "Gateways of routes",
    settings: &["network.allowedGateways"],
    kinds: KINDS,
    fields: &["spec.parentRefs", "spec.parentRef"],
    exempt: None,
    fixtures: include_str!("network_gateways.yaml"),
    compile: |settings, cx| {
        let gateways = settings.network.allowed_gateways.as_ref().filter(|gateways| !any(gateways))?;
        let allowed = cx.patterns("spec.network.allowedGateways", gateways, Meaning::Pattern, Wildcard::End);
        let refs = "(variables.object.?spec.?parentRefs.orValue([]) \
                    + variables.object.?spec.?parentRef.optMap(p, [p]).orValue([]))";
        let mut rule = ObjectRule::default();
        rule.limit(KINDS, "spec.parentRefs", refs, MOST);
        let named = "string(p.?namespace.orValue(request.namespace)) + '/' + string(p.?name.orValue(''))";
        let is_gateway = format!(
            "p.?kind.orValue('Gateway') == 'Gateway' && p.?group.orValue('{GATEWAY_GROUP}') == '{GATEWAY_GROUP}'"
        );
        let is_allowed = format!("{is_gateway} && [{named}].exists(g, {})", allowed.matches("g"));
        let bad = format!(
            "{refs}.filter(p, p.?namespace.orValue(request.namespace) != request.namespace && !({is_allowed})) \
             .map(p, (p.?kind.orValue('Gateway') == 'Gateway' ? '' : string(p.kind) + ' ') + {named})"
        );
        rule.forbid(KINDS, ("spec.parentRefs", "references"), &bad, &allowed.says());
        rule.unless_empty()
    },
};
