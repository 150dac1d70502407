//! # hostNamespaces
//!
//! In the network, process and IPC namespaces of the node, a pod sees the processes and the traffic of the node and of
//! other tenants, and can interfere with them. `hostNetwork` also bypasses network policies.
//!
//! ## If your pod was denied
//!
//! Remove `hostNetwork`, `hostPID` and `hostIPC`. Pods connect to each other through Services. The containers of a pod
//! always share their network. With `shareProcessNamespace: true` they also see each other's processes.

use serde_json::json;

use crate::{Check, Field, Finding, FindingScope, Flag, Level, Pss, Resolve, Rule, Settings, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "hostNamespaces",
    title: "Host namespaces",
    settings: &["host.network", "host.pid", "host.ipc"],
    psp: Some("hostNetwork, hostPID, hostIPC"),
    pss: &[Pss { level: Level::Baseline, id: "hostNamespaces", since: 0 }],
    fields: &[Field::Pod("hostNetwork"), Field::Pod("hostPID"), Field::Pod("hostIPC")],
    fixtures: include_str!("host_namespaces.yaml"),
    compile: |settings, cx| {
        let findings: Vec<_> = fields(settings)
            .into_iter()
            .filter_map(|(setting, field, allowed)| {
                let found = format!("variables.spec.?{field}.orValue(false)");
                let violated = cx.unless(&format!("spec.host.{setting}"), allowed?, &found)?;
                Some(Finding::new(
                    FindingScope::Pod,
                    violated,
                    format!("'spec.{field} is true, host namespaces are not allowed'"),
                ))
            })
            .collect();
        (!findings.is_empty()).then_some(Rule { findings, ..Rule::default() })
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        // Not hostNetwork: with it the API server demands that host ports equal container ports.
        let forbidden = fields(settings)
            .into_iter()
            .rev()
            .find(|(_, _, allowed)| allowed.is_some_and(|allowed| !allowed.resolve(values)));
        if let Some((_, field, _)) = forbidden {
            pod::set(pod, &[field], json!(true));
        }
        forbidden.is_some()
    },
};

fn fields(settings: &Settings) -> [(&'static str, &'static str, Option<&Flag>); 3] {
    let host = &settings.host;
    [
        ("network", "hostNetwork", host.network.as_ref()),
        ("pid", "hostPID", host.pid.as_ref()),
        ("ipc", "hostIPC", host.ipc.as_ref()),
    ]
}
