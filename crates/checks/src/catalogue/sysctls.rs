//! # sysctls
//!
//! A pod can set a sysctl that the kernel keeps for each namespace. Other sysctls, and some of these, affect more than
//! the pod. By default, the kubelet rejects unsafe sysctls; the profile determines which ones a tenant may set. A name
//! may end in `*`, which matches any suffix.
//!
//! The kernel also accepts `/` instead of `.` in a name. Allowed names are compared as written. Forbidden names are
//! compared in both spellings, so that `kernel/msgmax` does not pass as `kernel.msg*`.
//!
//! ## If your pod was denied
//!
//! Remove the sysctl from the pod's `securityContext.sysctls`, or ask an administrator to allow it. A program can set
//! many of these values for its own sockets instead, such as keepalive and buffer sizes.

use serde_json::json;

use crate::settings::any;
use crate::{Check, Field, FindingScope, Level, Meaning, Pss, Resolve, Rule, Text, Wildcard, matches, pod};

/// The kernel's other spelling of a name.
fn dotted(name: &str) -> String {
    name.replace('/', ".")
}

/// CEL of the kernel's other spelling of a name.
fn dotted_cel(name: &str) -> String {
    format!("{name}.replace('/', '.')")
}

/// The check.
pub static CHECK: Check = Check {
    id: "sysctls",
    title: "Sysctls",
    settings: &["privileges.sysctls"],
    psp: Some("allowedUnsafeSysctls, forbiddenSysctls"),
    pss: &[Pss { level: Level::Baseline, id: "sysctls", since: 0 }],
    fields: &[Field::Pod("securityContext.sysctls[*].name")],
    fixtures: include_str!("sysctls.yaml"),
    compile: |settings, cx| {
        let setting = settings.privileges.sysctls.as_ref()?;
        let path = "spec.privileges.sysctls";
        let mut terms = Vec::new();
        let mut says = "'any'".to_owned();
        if !any(&setting.allowed) {
            let allowed = cx.patterns(&format!("{path}.allowed"), &setting.allowed, Meaning::Pattern, Wildcard::End);
            terms.push(format!("!({})", allowed.matches("s.name")));
            says = allowed.says();
        }
        if !setting.forbidden.is_empty() {
            let path = format!("{path}.forbidden");
            let forbidden = cx.patterns(&path, &setting.forbidden, Meaning::Pattern, Wildcard::End);
            terms.push(forbidden.clone().map(dotted, dotted_cel).matches(&dotted_cel("s.name")));
            says = format!("{says} + ', except: ' + {}", forbidden.says());
        }
        if terms.is_empty() {
            return None;
        }
        let bad = format!(
            "variables.podSecurityContext.?sysctls.orValue([]).filter(s, {}).map(s, string(s.name))",
            terms.join(" || ")
        );
        Some(Rule {
            variables: vec![("forbiddenSysctls", bad)],
            ..Rule::one(
                FindingScope::Pod,
                "variables.forbiddenSysctls.size() > 0",
                format!("'forbidden sysctls: ' + variables.forbiddenSysctls.join(', ') + ', allowed: ' + {says}"),
            )
        })
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let Some(setting) = &settings.privileges.sysctls else { return false };
        let covers = |list: &[Text], name: &str| matches(list, Wildcard::End, values, name);
        // Names that the API server accepts whatever namespaces of the node the pod uses.
        let bad = ["fs.mqueue.msg_max", "fs.mqueue.queues_max", "user.max_user_namespaces"]
            .into_iter()
            .map(str::to_owned)
            .chain(setting.forbidden.resolve(values).iter().map(|f| f.replace('*', "violation")))
            .find(|name| !covers(&setting.allowed, name) || covers(&setting.forbidden, name));
        let Some(bad) = bad else { return false };
        pod::set(pod, &["securityContext", "sysctls"], json!([{"name": bad, "value": "1"}]));
        true
    },
};
