//! # fsGroup
//!
//! `fsGroup` is the group that owns the files of the pod's volumes. All processes of the pod are members of it. The
//! kubelet changes the group of all files of a volume, if the volume supports it. With the group of another tenant, a
//! pod could access that tenant's files.
//!
//! ## If your pod was denied
//!
//! Set `fsGroup` in the pod's `securityContext` to an id in the message. Containers have no such field.

use serde_json::json;

use crate::settings::GroupRule;
use crate::shared::{
    ids::{self, HIGHEST},
    ranges::{first, outside},
};
use crate::{Check, DefaultValue, Field, FieldDefault, Rule, Subject, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "fsGroup",
    title: "Group of volumes",
    settings: &["users.fsGroup"],
    psp: Some("fsGroup"),
    pss: &[],
    fields: &[Field::Pod("securityContext.fsGroup")],
    fixtures: include_str!("fs_group.yaml"),
    compile: |settings, cx| {
        let rules = settings.users.fs_group.as_ref().filter(|rules| rules.rule != GroupRule::RunAsAny)?;
        let required = rules.rule == GroupRule::MustRunAs;
        let finding = ids::of_pod(cx, "fsGroup", required, "spec.users.fsGroup", &rules.ranges);
        Some(Rule { findings: vec![finding], ..Rule::default() })
    },
    defaults: |settings, _| {
        let id = ids::demanded_group(settings, settings.users.fs_group.as_ref());
        let default =
            |id| FieldDefault::new(Subject::Pod, &["securityContext", "fsGroup"], DefaultValue::Integer(id), vec![]);
        id.map(default).into_iter().collect()
    },
    comply: |settings, values, pod| {
        if let Some(rules) = &settings.users.fs_group
            && let Some(id) = first(&rules.ranges, values)
        {
            pod::set(pod, &["securityContext", "fsGroup"], json!(id));
        }
    },
    violate: |settings, values, pod| {
        let rules = settings.users.fs_group.as_ref().filter(|rules| rules.rule != GroupRule::RunAsAny);
        let id = rules.and_then(|rules| outside(&rules.ranges, values, HIGHEST));
        if let Some(id) = id {
            pod::set(pod, &["securityContext", "fsGroup"], json!(id));
        }
        id.is_some()
    },
};
