//! # runAsUser
//!
//! The user id of a container's processes: from the container, or otherwise from the pod. On a shared file system, the
//! id is the tenant's identity, so `MustRunAs` with one id for each tenant keeps tenants apart. A pod that sets root is
//! denied even if each of its containers sets another user, as in the Restricted level.
//!
//! ## If your pod was denied
//!
//! Set `runAsUser` in the pod's `securityContext` to an id in the message, and remove it from containers, because it
//! would override the value of the pod. If the program then cannot read its files, change their owner or mode when you
//! build the image.

use serde_json::json;

use crate::settings::UserRule;
use crate::shared::exempt::{is_relaxed, unless_user_namespace};
use crate::shared::{
    defaulted::is_secure,
    ids::{self, HIGHEST},
    ranges::{first, outside},
};
use crate::{
    Check, Condition, DefaultValue, Field, FieldDefault, Finding, FindingScope, Flag, Level, Pss, Rule, Subject, pod,
};

/// The check.
pub static CHECK: Check = Check {
    id: "runAsUser",
    title: "User of containers",
    settings: &["users.runAsUser", "users.relaxForUserNamespaces"],
    psp: Some("runAsUser"),
    pss: &[Pss { level: Level::Restricted, id: "runAsUser", since: 23 }],
    fields: &[Field::Pod("securityContext.runAsUser"), Field::Container("securityContext.runAsUser")],
    fixtures: include_str!("run_as_user.yaml"),
    compile: |settings, cx| {
        let rules = settings.users.run_as_user.as_ref()?;
        let path = "spec.users.runAsUser";
        let findings = match rules.rule {
            UserRule::RunAsAny => return None,
            UserRule::MustRunAs => ids::of_user(cx, true, path, &rules.ranges),
            UserRule::MayRunAs => ids::of_user(cx, false, path, &rules.ranges),
            UserRule::MustRunAsNonRoot => [
                (FindingScope::Pod, "variables.podSecurityContext.?runAsUser.orValue(1) == 0"),
                (FindingScope::Containers, "c.?securityContext.?runAsUser.orValue(1) == 0"),
            ]
            .into_iter()
            .map(|(scope, violated)| {
                let relax = settings.users.relax_for_user_namespaces.as_ref();
                let violated = unless_user_namespace(cx, "spec.users.relaxForUserNamespaces", relax, violated);
                Finding::new(scope, violated, "'securityContext.runAsUser is 0, must not be 0'")
            })
            .collect(),
        };
        Some(Rule { findings, ..Rule::default() })
    },
    defaults: |settings, _| {
        let rules = settings.users.run_as_user.as_ref().filter(|rules| rules.rule == UserRule::MustRunAs);
        let Some(range) = rules.and_then(|rules| rules.ranges.first()).filter(|_| is_secure(settings)) else {
            return vec![];
        };
        // If the kubelet must not start root, a container of root would never run.
        let non_root = !matches!(settings.users.require_run_as_non_root, None | Some(Flag::Constant(false)));
        let when = if non_root { vec![Condition::NotZero(range.min.clone())] } else { vec![] };
        let value = DefaultValue::Integer(range.min.clone());
        vec![FieldDefault::new(Subject::PodOrContainer, &["securityContext", "runAsUser"], value, when)]
    },
    comply: |settings, values, pod| {
        if let Some(rules) = &settings.users.run_as_user
            && let Some(id) = first(&rules.ranges, values)
        {
            pod::set(pod, &["securityContext", "runAsUser"], json!(id));
        }
    },
    violate: |settings, values, pod| {
        let id = settings.users.run_as_user.as_ref().and_then(|rules| match rules.rule {
            UserRule::RunAsAny => None,
            UserRule::MustRunAsNonRoot => {
                let relax = settings.users.relax_for_user_namespaces.as_ref();
                (!is_relaxed(relax, values, pod)).then_some(0)
            }
            UserRule::MustRunAs | UserRule::MayRunAs => outside(&rules.ranges, values, HIGHEST),
        });
        if let Some(id) = id {
            pod::set_container(pod, &["securityContext", "runAsUser"], json!(id));
        }
        id.is_some()
    },
};
