//! # windowsHostProcess
//!
//! A HostProcess container runs directly on a Windows node, like a privileged container on a Linux node.
//!
//! ## If your pod was denied
//!
//! Remove `hostProcess`, and `hostNetwork` if it was set only for it. Tasks that need a HostProcess container on a node
//! are for administrators.

use serde_json::json;

use crate::{Check, Field, Finding, FindingScope, Level, Pss, Resolve, Rule, pod};

/// The check.
pub static CHECK: Check = Check {
    id: "windowsHostProcess",
    title: "Windows HostProcess containers",
    settings: &["privileges.windowsHostProcess"],
    psp: None,
    pss: &[Pss { level: Level::Baseline, id: "windowsHostProcess", since: 0 }],
    fields: &[
        Field::Pod("securityContext.windowsOptions.hostProcess"),
        Field::Container("securityContext.windowsOptions.hostProcess"),
    ],
    fixtures: include_str!("windows_host_process.yaml"),
    compile: |settings, cx| {
        let allowed = settings.privileges.windows_host_process.as_ref()?;
        let path = "spec.privileges.windowsHostProcess";
        let of_pod = "variables.podSecurityContext.?windowsOptions.?hostProcess.orValue(false)";
        let of_container = "c.?securityContext.?windowsOptions.?hostProcess.orValue(false)";
        let says = "'securityContext.windowsOptions.hostProcess is true, must be false or unset'";
        Some(Rule {
            findings: vec![
                Finding::new(FindingScope::Pod, cx.unless(path, allowed, of_pod)?, says),
                Finding::new(FindingScope::Containers, cx.unless(path, allowed, of_container)?, says),
            ],
            ..Rule::default()
        })
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let allowed = settings.privileges.windows_host_process.as_ref();
        let forbidden = allowed.is_some_and(|allowed| !allowed.resolve(values))
            // The API server wants hostNetwork for it, and refuses that in a user namespace.
            && pod["spec"]["hostUsers"] != json!(false);
        if forbidden {
            pod::set(pod, &["hostNetwork"], json!(true));
            pod::set(pod, &["securityContext", "windowsOptions"], json!({"hostProcess": true}));
        }
        forbidden
    },
};
