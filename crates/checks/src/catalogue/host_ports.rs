//! # hostPorts
//!
//! A host port binds a port of the node. The container can impersonate a service of the node and bypass network
//! policies. In a pod with `hostNetwork`, all ports are ports of the node: the API server then defaults `hostPort`.
//!
//! ## If your pod was denied
//!
//! Remove `hostPort`. A Service connects to the pod by its `containerPort`. If the manifest has no `hostPort`, it has
//! `hostNetwork: true`, which makes every port a host port.

use serde_json::json;

use crate::shared::ranges::{Ranges, outside};
use crate::{Check, Field, FindingScope, Level, Pss, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "hostPorts",
    title: "Host ports",
    settings: &["host.ports"],
    psp: Some("hostPorts"),
    pss: &[Pss { level: Level::Baseline, id: "hostPorts", since: 0 }],
    fields: &[Field::Container("ports[*].hostPort")],
    fixtures: include_str!("host_ports.yaml"),
    compile: |settings, cx| {
        let ranges = Ranges::lower(cx, "spec.host.ports", settings.host.ports.as_ref()?);
        let bad = format!("p.?hostPort.orValue(0) != 0 && !({})", ranges.contain("p.hostPort"));
        Some(Rule::one(
            FindingScope::Containers,
            format!("c.?ports.orValue([]).exists(p, {bad})"),
            format!(
                "'hostPort ' + c.ports.filter(p, {bad}).map(p, string(p.hostPort)).join(', ') \
                 + ' is not allowed, allowed: ' + {}",
                ranges.says()
            ),
        ))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let port = settings.host.ports.as_ref().and_then(|ranges| outside(ranges, values, 65535));
        if let Some(port) = port {
            pod::set_container(pod, &["ports"], json!([{"containerPort": port, "hostPort": port}]));
        }
        port.is_some()
    },
};
