//! # restrictedVolumes
//!
//! Pods may use only the listed types of volumes. A volume is evaluated by its fields, so a type that a later version
//! of Kubernetes adds is denied until an administrator lists it.
//!
//! ## If your pod was denied
//!
//! Use a type that the message lists: `emptyDir` for temporary data, `persistentVolumeClaim` for data that must
//! persist, `configMap` and `secret` for configuration. For a network share such as NFS, use a claim for a volume that
//! an administrator creates.

use serde_json::json;

use crate::settings::any;
use crate::{Check, Field, FindingScope, Level, Meaning, Pss, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "restrictedVolumes",
    title: "Volume types",
    settings: &["volumes.allowed"],
    psp: Some("volumes"),
    pss: &[Pss { level: Level::Restricted, id: "restrictedVolumes", since: 0 }],
    fields: &[Field::Volume("*")],
    fixtures: include_str!("restricted_volumes.yaml"),
    compile: |settings, cx| {
        let allowed = settings.volumes.allowed.as_ref().filter(|allowed| !any(allowed))?;
        let allowed = cx.texts("spec.volumes.allowed", allowed, Meaning::Word);
        let bad = format!("k != 'name' && !(k in {})", allowed.cel());
        Some(Rule::one(
            FindingScope::Volumes,
            format!("v.exists(k, {bad})"),
            format!("'restricted volume types: ' + v.filter(k, {bad}).join(', ') + ', allowed: ' + {}", allowed.says()),
        ))
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let Some(allowed) = settings.volumes.allowed.as_ref().map(|allowed| allowed.resolve(values)) else {
            return false;
        };
        // hostPath last: another check may forbid it as well.
        let source = [
            ("nfs", json!({"server": "palisade.invalid", "path": "/"})),
            ("emptyDir", json!({})),
            ("persistentVolumeClaim", json!({"claimName": "violation"})),
            ("hostPath", json!({"path": "/"})),
        ]
        .into_iter()
        .find(|(kind, _)| !allowed.iter().any(|a| a == kind || a == "*"));
        let Some((kind, source)) = source else { return false };
        pod::set(pod, &["volumes"], json!([{"name": "violation", kind: source}]));
        true
    },
};
