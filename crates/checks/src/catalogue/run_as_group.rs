//! # runAsGroup
//!
//! The primary group id of a container's processes: from the container, or otherwise from the pod. If it is unset, the
//! image decides, often 0. On a shared file system, the group of another tenant gives access to that tenant's files.
//!
//! ## If your pod was denied
//!
//! Set `runAsGroup` in the pod's `securityContext` to an id in the message, and remove it from containers, because it
//! would override the value of the pod.

use serde_json::json;

use crate::settings::GroupRule;
use crate::shared::{
    ids::{self, HIGHEST},
    ranges::{first, outside},
};
use crate::{Check, DefaultValue, Field, FieldDefault, Rule, Subject, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "runAsGroup",
    title: "Primary group of containers",
    settings: &["users.runAsGroup"],
    psp: Some("runAsGroup"),
    pss: &[],
    fields: &[Field::Pod("securityContext.runAsGroup"), Field::Container("securityContext.runAsGroup")],
    fixtures: include_str!("run_as_group.yaml"),
    compile: |settings, cx| {
        let rules = settings.users.run_as_group.as_ref().filter(|rules| rules.rule != GroupRule::RunAsAny)?;
        let required = rules.rule == GroupRule::MustRunAs;
        let finding = ids::effective(cx, "runAsGroup", required, "spec.users.runAsGroup", &rules.ranges);
        Some(Rule { findings: vec![finding], ..Rule::default() })
    },
    defaults: |settings, _| {
        let id = ids::demanded_group(settings, settings.users.run_as_group.as_ref());
        let default = |id| {
            FieldDefault::new(
                Subject::PodOrContainer,
                &["securityContext", "runAsGroup"],
                DefaultValue::Integer(id),
                vec![],
            )
        };
        id.map(default).into_iter().collect()
    },
    comply: |settings, values, pod| {
        if let Some(rules) = &settings.users.run_as_group
            && let Some(id) = first(&rules.ranges, values)
        {
            pod::set(pod, &["securityContext", "runAsGroup"], json!(id));
        }
    },
    violate: |settings, values, pod| {
        let rules = settings.users.run_as_group.as_ref().filter(|rules| rules.rule != GroupRule::RunAsAny);
        let id = rules.and_then(|rules| outside(&rules.ranges, values, HIGHEST));
        if let Some(id) = id {
            pod::set_container(pod, &["securityContext", "runAsGroup"], json!(id));
        }
        id.is_some()
    },
};
