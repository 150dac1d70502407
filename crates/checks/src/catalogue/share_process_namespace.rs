//! # shareProcessNamespace
//!
//! With `shareProcessNamespace: true`, the containers of a pod see each other's processes, and through `/proc` their
//! files and environment. A less trusted container, such as a sidecar, can then read the secrets of the others. Other
//! pods are not affected.
//!
//! ## If your pod was denied
//!
//! Remove `shareProcessNamespace`. Containers of a pod connect to each other at `localhost`, and share files in an
//! `emptyDir` volume. To inspect a running container, use `kubectl debug --target`: its ephemeral container sees the
//! processes of that container.

use serde_json::json;

use crate::{Check, Field, FindingScope, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "shareProcessNamespace",
    title: "Shared process namespace",
    settings: &["privileges.shareProcessNamespace"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("shareProcessNamespace")],
    fixtures: include_str!("share_process_namespace.yaml"),
    compile: |settings, cx| {
        let violated = cx.unless(
            "spec.privileges.shareProcessNamespace",
            settings.privileges.share_process_namespace.as_ref()?,
            "variables.spec.?shareProcessNamespace.orValue(false)",
        )?;
        Some(Rule::one(FindingScope::Pod, violated, "'spec.shareProcessNamespace is true, must be false or unset'"))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let allowed = settings.privileges.share_process_namespace.as_ref();
        let forbidden = allowed.is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            pod::set(pod, &["shareProcessNamespace"], json!(true));
        }
        forbidden
    },
};
