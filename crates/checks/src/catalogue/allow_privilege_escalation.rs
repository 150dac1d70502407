//! # allowPrivilegeEscalation
//!
//! Unless `allowPrivilegeEscalation: false` is set, a process can gain more privileges than its parent, for example
//! through a setuid binary. The default of Kubernetes is true, so each container has to set the field. A pod for
//! Windows cannot set it.
//!
//! ## If your pod was denied
//!
//! Set `securityContext.allowPrivilegeEscalation: false` in each container, including init containers. The pod itself
//! has no such field. Programs like `sudo` then no longer work: start the container as the right user instead.

use serde_json::json;

use crate::settings::mutation::AdditionalDefault;
use crate::shared::defaulted::defaulted_when;
use crate::shared::exempt::unless_windows;
use crate::{
    Check, Condition, Constant, DefaultValue, Field, FieldDefault, FindingScope, Level, Pss, Resolve, Rule, Subject,
    pod,
};

const FIELD: &str = "c.?securityContext.?allowPrivilegeEscalation";

/// The check.
pub static CHECK: Check = Check {
    id: "allowPrivilegeEscalation",
    title: "Privilege escalation",
    settings: &["privileges.allowPrivilegeEscalation", "privileges.windows"],
    psp: Some("allowPrivilegeEscalation"),
    pss: &[Pss { level: Level::Restricted, id: "allowPrivilegeEscalation", since: 8 }],
    fields: &[Field::Container("securityContext.allowPrivilegeEscalation")],
    fixtures: include_str!("allow_privilege_escalation.yaml"),
    compile: |settings, cx| {
        let violated = cx.unless(
            "spec.privileges.allowPrivilegeEscalation",
            settings.privileges.allow_privilege_escalation.as_ref()?,
            &unless_windows(settings, &format!("{FIELD}.orValue(true)")),
        )?;
        let says = format!(
            "'securityContext.allowPrivilegeEscalation is ' + string({FIELD}.orValue('unset')) + ', must be false'"
        );
        Some(Rule::one(FindingScope::Containers, violated, says))
    },
    defaults: |settings, _| {
        let demanded = settings.privileges.allow_privilege_escalation.as_ref();
        let Some(mut when) = defaulted_when(settings, AdditionalDefault::AllowPrivilegeEscalation, demanded, false)
        else {
            return vec![];
        };
        // The API server rejects the default together with these (`ValidateSecurityContext`).
        when.push(Condition::ContainerIsNot(&["securityContext", "privileged"], Constant::Flag(true)));
        when.push(Condition::ContainerLacks(&["securityContext", "capabilities", "add"], vec!["CAP_SYS_ADMIN".into()]));
        let path = &["securityContext", "allowPrivilegeEscalation"];
        vec![FieldDefault::new(Subject::Container, path, DefaultValue::Flag(false), when)]
    },
    comply: |settings, values, pod| {
        let forbidden =
            settings.privileges.allow_privilege_escalation.as_ref().is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            pod::set_containers(pod, &["securityContext", "allowPrivilegeEscalation"], &json!(false));
        }
    },
    violate: |settings, values, pod| {
        let forbidden =
            settings.privileges.allow_privilege_escalation.as_ref().is_some_and(|allowed| !allowed.resolve(values));
        if forbidden {
            pod::set_container(pod, &["securityContext", "allowPrivilegeEscalation"], json!(true));
        }
        forbidden
    },
};
