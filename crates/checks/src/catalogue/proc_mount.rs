//! # procMount
//!
//! Container runtimes mask parts of `/proc` that expose the node or can change it (`Default`). `Unmasked` exposes them.
//! The value is `Default`, as in the API, not `DefaultProcMount` (the name of the Go constant).
//!
//! ## If your pod was denied
//!
//! Remove `procMount`. A container that has to run containers can use `Unmasked` only if the profile allows it, and
//! only in a user namespace (`hostUsers: false`).

use serde_json::json;

use crate::settings::any;
use crate::shared::exempt::{is_relaxed, unless_user_namespace};
use crate::{Check, Field, FindingScope, Level, Meaning, Pss, Resolve, Rule, pod};

const FIELD: &str = "c.?securityContext.?procMount.orValue('Default')";

/// The check.
pub static CHECK: Check = Check {
    id: "procMount",
    title: "Proc mount types",
    settings: &["privileges.procMount", "privileges.unmaskedInUserNamespaces"],
    psp: Some("allowedProcMountTypes"),
    pss: &[
        Pss { level: Level::Baseline, id: "procMount", since: 0 },
        Pss { level: Level::Restricted, id: "procMount_restricted", since: 35 },
    ],
    fields: &[Field::Container("securityContext.procMount")],
    fixtures: include_str!("proc_mount.yaml"),
    compile: |settings, cx| {
        let allowed = settings.privileges.proc_mount.as_ref().filter(|allowed| !any(allowed))?;
        let allowed = cx.texts("spec.privileges.procMount", allowed, Meaning::Word);
        let relax = settings.privileges.unmasked_in_user_namespaces.as_ref();
        let violated = format!("!({FIELD} in {})", allowed.cel());
        let violated = unless_user_namespace(cx, "spec.privileges.unmaskedInUserNamespaces", relax, &violated);
        Some(Rule::one(
            FindingScope::Containers,
            violated,
            format!("'securityContext.procMount is ' + {FIELD} + ', must be ' + {}", allowed.says()),
        ))
    },
    defaults: |_, _| vec![],
    comply: |settings, values, pod| {
        let allowed = settings.privileges.proc_mount.as_ref().map(|allowed| allowed.resolve(values));
        let allowed = allowed.unwrap_or_default();
        if let Some(first) = allowed.first()
            && !allowed.iter().any(|allowed| allowed == "Default" || allowed == "*")
        {
            pod::set(pod, &["hostUsers"], json!(false));
            pod::set_containers(pod, &["securityContext", "procMount"], &json!(first));
        }
    },
    violate: |settings, values, pod| {
        let allowed = settings.privileges.proc_mount.as_ref().map(|allowed| allowed.resolve(values));
        let in_user_namespace = json!({"spec": {"hostUsers": false}});
        let relax = settings.privileges.unmasked_in_user_namespaces.as_ref();
        let forbidden =
            allowed.is_some_and(|allowed| allowed == ["Default"]) && !is_relaxed(relax, values, &in_user_namespace);
        if forbidden {
            // The API server accepts Unmasked in a user namespace only.
            pod::set(pod, &["hostUsers"], json!(false));
            pod::set_container(pod, &["securityContext", "procMount"], json!("Unmasked"));
        }
        forbidden
    },
};
