//! # mountPropagation
//!
//! With `HostToContainer`, a container sees file systems that the node mounts below a volume later. With
//! `Bidirectional`, the node and all pods that mount the same volume see file systems that the container mounts. The
//! API server accepts `Bidirectional` only in privileged containers.
//!
//! ## If your pod was denied
//!
//! Remove `mountPropagation` from the container's `volumeMounts`, unless the message lists its value.

use serde_json::json;

use crate::settings::{any, kind_allowed};
use crate::{Check, Field, FindingScope, Meaning, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "mountPropagation",
    title: "Mount propagation",
    settings: &["volumes.mountPropagation", "volumes.allowed"],
    psp: None,
    pss: &[],
    fields: &[Field::Container("volumeMounts[*].mountPropagation")],
    fixtures: include_str!("mount_propagation.yaml"),
    compile: |settings, cx| {
        let propagation = settings.volumes.mount_propagation.as_ref().filter(|allowed| !any(allowed))?;
        let mut allowed = cx.texts("spec.volumes.mountPropagation", propagation, Meaning::Word);
        if !allowed.constants.iter().any(|one| one == "None") {
            allowed.constants.insert(0, "None".to_owned());
        }
        let bad = format!("!(m.?mountPropagation.orValue('None') in {})", allowed.cel());
        Some(Rule::one(
            FindingScope::Containers,
            format!("c.?volumeMounts.orValue([]).exists(m, {bad})"),
            format!(
                "'mountPropagation ' + c.volumeMounts.filter(m, {bad})\
                 .map(m, m.mountPropagation + ' of ' + m.mountPath).join(', ') + ' is not allowed, allowed: ' + {}",
                allowed.says()
            ),
        ))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let Some(allowed) = settings.volumes.mount_propagation.as_ref().map(|allowed| allowed.resolve(values)) else {
            return false;
        };
        // Bidirectional would need a privileged container besides.
        let forbidden = !allowed.iter().any(|one| one == "HostToContainer" || one == "*");
        let kinds = [
            ("emptyDir", json!({})),
            ("configMap", json!({"name": "violation"})),
            ("persistentVolumeClaim", json!({"claimName": "violation"})),
        ];
        let kind = kinds.into_iter().find(|(kind, _)| kind_allowed(settings, values, kind));
        let Some((kind, source)) = kind.filter(|_| forbidden) else { return false };
        pod::set(pod, &["volumes"], json!([{"name": "violation", kind: source}]));
        let mount = json!({"name": "violation", "mountPath": "/violation", "mountPropagation": "HostToContainer"});
        pod::set_container(pod, &["volumeMounts"], json!([mount]));
        true
    },
};
