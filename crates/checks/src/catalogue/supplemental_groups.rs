//! # supplementalGroups
//!
//! Additional groups of a pod's processes. On a shared file system, the group of another tenant gives access to that
//! tenant's files.
//!
//! ## If your pod was denied
//!
//! Set `supplementalGroups` in the pod's `securityContext` to ids in the message. Containers have no such field.

use serde_json::json;

use crate::settings::GroupRule;
use crate::shared::{
    ids::{self, HIGHEST},
    ranges::{first, outside},
};
use crate::{Check, DefaultValue, Field, FieldDefault, Rule, Subject, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "supplementalGroups",
    title: "Supplemental groups",
    settings: &["users.supplementalGroups"],
    psp: Some("supplementalGroups"),
    pss: &[],
    fields: &[Field::Pod("securityContext.supplementalGroups")],
    fixtures: include_str!("supplemental_groups.yaml"),
    compile: |settings, cx| {
        let rules = settings.users.supplemental_groups.as_ref().filter(|rules| rules.rule != GroupRule::RunAsAny)?;
        let required = rules.rule == GroupRule::MustRunAs;
        let finding =
            ids::of_pod_list(cx, "supplementalGroups", required, "spec.users.supplementalGroups", &rules.ranges);
        Some(Rule { findings: vec![finding], ..Rule::default() })
    },
    defaults: |settings, _| {
        let id = ids::demanded_group(settings, settings.users.supplemental_groups.as_ref());
        let default = |id| {
            FieldDefault::new(
                Subject::Pod,
                &["securityContext", "supplementalGroups"],
                DefaultValue::Integers(id),
                vec![],
            )
        };
        id.map(default).into_iter().collect()
    },
    comply: |settings, values, pod| {
        if let Some(rules) = &settings.users.supplemental_groups
            && rules.rule == GroupRule::MustRunAs
            && let Some(id) = first(&rules.ranges, values)
        {
            pod::set(pod, &["securityContext", "supplementalGroups"], json!([id]));
        }
    },
    violate: |settings, values, pod| {
        let rules = settings.users.supplemental_groups.as_ref().filter(|rules| rules.rule != GroupRule::RunAsAny);
        let id = rules.and_then(|rules| outside(&rules.ranges, values, HIGHEST));
        if let Some(id) = id {
            pod::set(pod, &["securityContext", "supplementalGroups"], json!([id]));
        }
        id.is_some()
    },
};
