//! # hostProbesAndHostLifecycle
//!
//! The kubelet sends the requests of probes and lifecycle handlers from the node. With the field `host`, a pod could
//! make the kubelet send requests to any address that the node can reach. Without it, the kubelet calls the pod.
//!
//! ## If your pod was denied
//!
//! Remove `host` from the probe or the handler: the kubelet then calls the pod. To select a virtual host, set the
//! header `Host` in `httpHeaders`. To check another service, use an `exec` probe, which runs in the container.

use serde_json::json;

use crate::{Check, Field, FindingScope, Level, Pss, Resolve, Rule, pod};

/// The places of a host in a container.
const HOSTS: [&str; 10] = [
    "livenessProbe.httpGet.host",
    "livenessProbe.tcpSocket.host",
    "readinessProbe.httpGet.host",
    "readinessProbe.tcpSocket.host",
    "startupProbe.httpGet.host",
    "startupProbe.tcpSocket.host",
    "lifecycle.postStart.httpGet.host",
    "lifecycle.postStart.tcpSocket.host",
    "lifecycle.preStop.httpGet.host",
    "lifecycle.preStop.tcpSocket.host",
];

/// The check.
pub static CHECK: Check = Check {
    id: "hostProbesAndHostLifecycle",
    title: "Hosts of probes and lifecycle handlers",
    settings: &["host.probeHosts"],
    psp: None,
    pss: &[Pss { level: Level::Baseline, id: "hostProbesAndHostLifecycle", since: 34 }],
    fields: &[
        Field::Container(HOSTS[0]),
        Field::Container(HOSTS[1]),
        Field::Container(HOSTS[2]),
        Field::Container(HOSTS[3]),
        Field::Container(HOSTS[4]),
        Field::Container(HOSTS[5]),
        Field::Container(HOSTS[6]),
        Field::Container(HOSTS[7]),
        Field::Container(HOSTS[8]),
        Field::Container(HOSTS[9]),
    ],
    fixtures: include_str!("host_probes_and_host_lifecycle.yaml"),
    compile: |settings, cx| {
        let hosts = HOSTS.map(|path| (path, format!("c.?{}.orValue('')", path.replace('.', ".?"))));
        let set: Vec<_> = hosts.iter().map(|(_, host)| format!("{host} != ''")).collect();
        let found: Vec<_> =
            hosts.iter().map(|(path, host)| format!("({host} != '' ? ['{path} is ' + {host}] : [])")).collect();
        let violated =
            cx.unless("spec.host.probeHosts", settings.host.probe_hosts.as_ref()?, &format!("({})", set.join(" || ")))?;
        Some(Rule::one(
            FindingScope::Containers,
            violated,
            format!("'probe or lifecycle host: ' + ({}).join(', ') + ', must be unset'", found.join(" + ")),
        ))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let forbidden = settings.host.probe_hosts.as_ref().is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            let probe = json!({"tcpSocket": {"host": "palisade.invalid", "port": 80}});
            pod::set_container(pod, &["readinessProbe"], probe);
        }
        forbidden
    },
};
