//! # hostAliases
//!
//! `hostAliases` writes addresses of names into `/etc/hosts` of the pod's containers, before any name server is asked. So
//! a template that looks harmless can send the programs of its image to other addresses than their names say.
//! No other pod is concerned; where a pod may connect to is for network policies.
//!
//! ## If your pod was denied
//!
//! Remove `hostAliases`. A Service gives a name to pods, one with `externalName` to a host outside of the cluster.

use serde_json::json;

use crate::{Check, Field, Over, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "hostAliases",
    title: "Aliases of hosts",
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
        Some(Rule::one(Over::Pod, violated, "'spec.hostAliases is set, must be unset'"))
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
