//! # sysctls
//!
//! A sysctl that the kernel keeps for each namespace can be set for a pod; others, and some of these, reach
//! beyond the pod. The kubelet refuses unsafe ones unless it is told otherwise; here it is the profile that
//! says what a tenant may ask for. A name may end in `*`, which stands for any rest.
//!
//! The kernel also takes `/` for `.` in a name. Allowed names are compared as written. Forbidden ones are
//! compared in either spelling, so that `kernel/msgmax` does not pass by `kernel.msg*`.
//!
//! ## If your pod was denied
//!
//! Remove the sysctl from the pod's `securityContext.sysctls`, or have an admin allow it. Much of what a sysctl sets
//! for a pod, a program can set for its own sockets, such as keepalive and buffer sizes.

use serde_json::json;

use crate::settings::any;
use crate::{Check, Field, Level, Meaning, Over, Pss, Resolve, Rule, pod};

/// CEL of type bool: whether the string `name` is `f`, or begins with what comes before a `*` at its end.
fn matches(name: &str, f: &str) -> String {
    format!("({f} == {name} || ({f}.endsWith('*') && {name}.startsWith({f}.substring(0, {f}.size() - 1))))")
}

/// The check.
pub static CHECK: Check = Check {
    id: "sysctls",
    title: "Kernel parameters",
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
            let allowed = cx.texts(&format!("{path}.allowed"), &setting.allowed, Meaning::Pattern);
            terms.push(format!("!{}.exists(f, {})", allowed.cel(), matches("s.name", "f")));
            says = allowed.says();
        }
        if !setting.forbidden.is_empty() {
            let forbidden = cx.texts(&format!("{path}.forbidden"), &setting.forbidden, Meaning::Pattern);
            let (name, f) = ("s.name.replace('/', '.')", "f.replace('/', '.')");
            terms.push(format!("{}.exists(f, {})", forbidden.cel(), matches(name, f)));
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
                Over::Pod,
                "variables.forbiddenSysctls.size() > 0",
                format!("'forbidden sysctls: ' + variables.forbiddenSysctls.join(', ') + ', allowed: ' + {says}"),
            )
        })
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let Some(setting) = &settings.privileges.sysctls else { return false };
        let (allowed, forbidden) = (setting.allowed.resolve(values), setting.forbidden.resolve(values));
        let covers = |list: &[String], name: &str| {
            list.iter().any(|f| f == name || f.strip_suffix('*').is_some_and(|start| name.starts_with(start)))
        };
        // Names that the API server accepts whatever namespaces of the node the pod uses.
        let bad = ["fs.mqueue.msg_max", "fs.mqueue.queues_max", "user.max_user_namespaces"]
            .into_iter()
            .map(str::to_owned)
            .chain(forbidden.iter().map(|f| f.replace('*', "violation")))
            .find(|name| !covers(&allowed, name) || covers(&forbidden, name));
        let Some(bad) = bad else { return false };
        pod::set(pod, &["securityContext", "sysctls"], json!([{"name": bad, "value": "1"}]));
        true
    },
};
