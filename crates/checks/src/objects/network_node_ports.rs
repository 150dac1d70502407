//! # networkNodePorts
//!
//! A Service can have a port of every node. A tenant can take a port that the firewall of the platform opens for another
//! service, or that other software of a node uses.
//!
//! The API server chooses a port, before policies run, if a Service of the type `NodePort` or `LoadBalancer` has none. The
//! chosen port can be outside the allowed ranges.
//!
//! ## If your object was denied
//!
//! Set `spec.ports[*].nodePort`, and `spec.healthCheckNodePort` if the Service has one, to ports in a range that the message
//! lists. Of a `LoadBalancer`, you can instead set `spec.allocateLoadBalancerNodePorts: false`.

use super::kinds::SERVICE;
use crate::{ObjectCheck, ObjectResource, ObjectRule, shared::ranges::Ranges};

const SERVICES: &[ObjectResource] = &[SERVICE];
/// The most ports that are evaluated.
const MOST: usize = 256;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "networkNodePorts",
    title: "Node ports of Services",
    settings: &["network.allowedNodePorts"],
    kinds: SERVICES,
    fields: &["spec.ports[*].nodePort", "spec.healthCheckNodePort"],
    exempt: None,
    fixtures: include_str!("network_node_ports.yaml"),
    compile: |settings, cx| {
        let ranges = settings.network.allowed_node_ports.as_ref()?;
        let allowed = Ranges::lower(cx, "spec.network.allowedNodePorts", ranges);
        let mut rule = ObjectRule::default();
        let ports = "variables.object.?spec.?ports.orValue([])";
        rule.limit(SERVICES, "spec.ports", ports, MOST);
        let is_other = format!("p != 0 && !({})", allowed.contain("p"));
        let bad = format!("{ports}.map(p, int(p.?nodePort.orValue(0))).filter(p, {is_other}).map(p, string(p))");
        rule.forbid(SERVICES, ("spec.ports[*].nodePort", "ports"), &bad, &allowed.says());
        let bad = format!(
            "[int(variables.object.?spec.?healthCheckNodePort.orValue(0))].filter(p, {is_other}).map(p, string(p))"
        );
        rule.forbid(SERVICES, ("spec.healthCheckNodePort", "ports"), &bad, &allowed.says());
        rule.unless_empty()
    },
};
