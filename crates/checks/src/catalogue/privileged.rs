//! # privileged
//!
//! A privileged container has nearly all privileges of a root process on the node: all capabilities, all devices, no
//! seccomp or AppArmor confinement. No container of a tenant should be privileged.
//!
//! ## If your pod was denied
//!
//! Remove `privileged: true`. If the program needs only one privilege of root, add that capability, if the check
//! `capabilities` allows it. To give a device of the node to a container, use a device plugin.

use serde_json::json;

use crate::{Check, Field, FindingScope, Level, Pss, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "privileged",
    title: "Privileged containers",
    settings: &["privileges.privileged"],
    psp: Some("privileged"),
    pss: &[Pss { level: Level::Baseline, id: "privileged", since: 0 }],
    fields: &[Field::Container("securityContext.privileged")],
    fixtures: include_str!("privileged.yaml"),
    compile: |settings, cx| {
        let violated = cx.unless(
            "spec.privileges.privileged",
            settings.privileges.privileged.as_ref()?,
            "c.?securityContext.?privileged.orValue(false)",
        )?;
        Some(Rule::one(
            FindingScope::Containers,
            violated,
            "'securityContext.privileged is true, must be false or unset'",
        ))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let forbidden = settings.privileges.privileged.as_ref().is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            pod::set_container(pod, &["securityContext", "privileged"], json!(true));
            // The API server rejects a privileged container with allowPrivilegeEscalation: false.
            if let Some(context) =
                pod.pointer_mut("/spec/containers/0/securityContext").and_then(serde_json::Value::as_object_mut)
            {
                context.remove("allowPrivilegeEscalation");
            }
        }
        forbidden
    },
};
