//! # networkAnnotations
//!
//! Controllers of Ingresses, Services and Gateways read settings from annotations that the API server does not validate. Some
//! Ingress controllers copy an annotation into the configuration of a proxy that serves all tenants
//! (`nginx.ingress.kubernetes.io/server-snippet`), add hosts (`nginx.ingress.kubernetes.io/server-alias`), or send the
//! requests of one tenant to another. Controllers of load balancers read addresses, networks and prices from annotations.
//!
//! The check reads only the keys. `kubectl.kubernetes.io/last-applied-configuration`, which kubectl writes, is always
//! allowed. An update is evaluated if it changes an annotation.
//!
//! ## If your object was denied
//!
//! Remove the annotations that the message names.

use super::{
    BY_KUBECTL,
    kinds::{
        EXPERIMENTAL_LISTENER_SET, GATEWAY, GRPC_ROUTE, HTTP_ROUTE, INGRESS, LISTENER_SET, SERVICE, TCP_ROUTE,
        TLS_ROUTE, UDP_ROUTE,
    },
};
use crate::{Meaning, ObjectCheck, ObjectResource, ObjectRule, cel, settings::any, texts::Wildcard};

const KINDS: &[ObjectResource] = &[
    INGRESS,
    SERVICE,
    GATEWAY,
    LISTENER_SET,
    EXPERIMENTAL_LISTENER_SET,
    HTTP_ROUTE,
    GRPC_ROUTE,
    TLS_ROUTE,
    TCP_ROUTE,
    UDP_ROUTE,
];
/// The most annotations that are evaluated.
const MOST: usize = 256;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkAnnotations",
    title: "Annotations of Ingresses, Services, routes and Gateways",
    settings: &["network.annotations"],
    kinds: KINDS,
    fields: &["metadata.annotations"],
    exempt: None,
    fixtures: include_str!("network_annotations.yaml"),
    compile: |settings, cx| {
        let mut rule = ObjectRule::default();
        let keys = settings.network.annotations.as_ref()?;
        if keys.denied.is_empty() || any(&keys.allowed) {
            return None;
        }
        let denied = cx.patterns("spec.network.annotations.denied", &keys.denied, Meaning::Pattern, Wildcard::End);
        let allowed = cx.patterns("spec.network.annotations.allowed", &keys.allowed, Meaning::Pattern, Wildcard::End);
        let found = "variables.object.metadata.?annotations.orValue({})";
        rule.limit(KINDS, "metadata.annotations", found, MOST);
        let bad = format!(
            "{found}.map(k, string(k)).filter(k, k != {} && {} && !({}))",
            cel::quote(BY_KUBECTL),
            denied.matches("k"),
            allowed.matches("k")
        );
        rule.finding(
            KINDS,
            format!("{bad}.size() > 0"),
            format!(
                "'metadata.annotations: forbidden keys: ' + {bad}.join(', ') + ', denied: ' + {} + ', except: ' + {}",
                denied.says(),
                allowed.says()
            ),
        );
        rule.unless_empty()
    },
};
