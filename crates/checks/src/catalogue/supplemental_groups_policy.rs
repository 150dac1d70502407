//! # supplementalGroupsPolicy
//!
//! Unless a pod sets `supplementalGroupsPolicy: Strict`, its processes are also members of the groups that `/etc/group`
//! of the image gives to their user. The author of the image can so join any group, whatever `supplementalGroups`
//! allows. On a shared file system, the group of another tenant gives access to that tenant's files.
//!
//! A node rejects pods with `Strict` if its container runtime does not support the field (`status.features` of the node
//! reports support).
//!
//! ## If your pod was denied
//!
//! Set `supplementalGroupsPolicy: Strict` in the pod's `securityContext`. Containers have no such field. List the
//! groups that the image needs in `supplementalGroups`.

use serde_json::json;

use crate::settings::{SupplementalGroupsPolicy, mutation::AdditionalDefault};
use crate::shared::{defaulted::defaulted_when, exempt::unless_windows};
use crate::{Check, DefaultValue, Field, FieldDefault, FindingScope, Flag, Rule, Settings, Subject, pod};

fn is_strict(settings: &Settings) -> bool {
    settings.users.supplemental_groups_policy == Some(SupplementalGroupsPolicy::Strict)
}

const FIELD: &str = "variables.podSecurityContext.?supplementalGroupsPolicy";

/// The check.
pub static CHECK: Check = Check {
    id: "supplementalGroupsPolicy",
    title: "Supplemental groups policy",
    settings: &["users.supplementalGroupsPolicy", "privileges.windows"],
    psp: None,
    pss: &[],
    fields: &[Field::Pod("securityContext.supplementalGroupsPolicy")],
    fixtures: include_str!("supplemental_groups_policy.yaml"),
    compile: |settings, _| {
        is_strict(settings).then(|| {
            Rule::one(
                FindingScope::Pod,
                unless_windows(settings, &format!("{FIELD}.orValue('Merge') != 'Strict'")),
                format!(
                    "'securityContext.supplementalGroupsPolicy is ' + {FIELD}.orValue('unset') + ', must be Strict'"
                ),
            )
        })
    },
    defaults: |settings, _| {
        let demanded = Flag::Constant(is_strict(settings));
        let when = defaulted_when(settings, AdditionalDefault::SupplementalGroupsPolicy, Some(&demanded), true);
        let path = &["securityContext", "supplementalGroupsPolicy"];
        when.map(|when| FieldDefault::new(Subject::Pod, path, DefaultValue::Word("Strict"), when)).into_iter().collect()
    },
    comply: |settings, _, pod| {
        if is_strict(settings) {
            pod::set(pod, &["securityContext", "supplementalGroupsPolicy"], json!("Strict"));
        }
    },
    violate: |settings, _, pod| {
        let strict = is_strict(settings);
        if strict {
            pod::set(pod, &["securityContext", "supplementalGroupsPolicy"], json!("Merge"));
        }
        strict
    },
};
