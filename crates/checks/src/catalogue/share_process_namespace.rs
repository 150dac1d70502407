//! # shareProcessNamespace
//!
//! With `shareProcessNamespace: true` the containers of a pod see each other's processes, and through `/proc` their
//! files and environment: a container that one author trusts less, such as a sidecar, reads the secrets of the others.
//! No other pod is concerned.
//!
//! ## If your pod was denied
//!
//! Remove `shareProcessNamespace`. Containers of one pod reach each other at `localhost`, and share files in an `emptyDir`
//! volume. To look into a running container, `kubectl debug --target` shows an ephemeral container the processes of one.

use serde_json::json;

use crate::{Check, Field, Over, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "shareProcessNamespace",
    title: "Sharing of processes between containers",
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
        Some(Rule::one(Over::Pod, violated, "'spec.shareProcessNamespace is true, must be false or unset'"))
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
