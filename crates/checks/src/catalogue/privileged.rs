//! # privileged
//!
//! A privileged container has nearly all the power of a root process on the node: all capabilities, all
//! devices, no seccomp or AppArmor confinement. No tenant's container may be privileged.

use serde_json::json;

use crate::{Check, Field, Level, Over, Pss, Resolve, Rule, pod};

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
        Some(Rule::one(Over::Containers, violated, "'securityContext.privileged is true, must be false or unset'"))
    },
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let forbidden = settings.privileges.privileged.as_ref().is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            // The API server refuses a privileged container that says allowPrivilegeEscalation: false.
            pod::set_container(pod, &["securityContext"], json!({"privileged": true}));
        }
        forbidden
    },
};
