//! # hostAliases
//!
//! `hostAliases` writes names and addresses into `/etc/hosts` of the pod's containers, which takes precedence over DNS.
//! So a pod template that looks harmless can redirect the connections of its programs to other addresses. Other pods
//! are not affected. Use network policies to restrict the connections of a pod.
//!
//! ## If your pod was denied
//!
//! Remove `hostAliases`. To name pods, use a Service. To name a host outside the cluster, use a Service with
//! `externalName`.

use serde_json::json;

use crate::{Check, Field, FindingScope, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "hostAliases",
    title: "Host aliases",
    settings: &["host.aliases"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("hostAliases")],
    fixtures: include_str!("host_aliases.yaml"),
    compile: |settings, cx| {
        let violated = cx.unless(
            "spec.host.aliases",
            settings.host.aliases.as_ref()?,
            "variables.spec.?hostAliases.orValue([]).size() > 0",
        )?;
        Some(Rule::one(FindingScope::Pod, violated, "'spec.hostAliases is set, must be unset'"))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let forbidden = settings.host.aliases.as_ref().is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            pod::set(pod, &["hostAliases"], json!([{"ip": "192.0.2.1", "hostnames": ["violation.palisade.invalid"]}]));
        }
        forbidden
    },
};
