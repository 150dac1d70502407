//! # seccompProfile
//!
//! Seccomp limits the system calls that a container can make. A container takes the pod's profile unless it
//! sets its own; without either it runs unconfined on most nodes.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::any;
use crate::{Check, Field, Finding, Flag, Level, Over, Pss, Resolve, Rule, Text, cel, pod};

/// Seccomp profiles that containers run under.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Seccomp {
    /// Allowed types: RuntimeDefault, Localhost, Unconfined, * for all, or $name. If absent: RuntimeDefault and
    /// Localhost.
    #[serde(default = "default_allowed")]
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(validation = ("self.all(x, x in ['RuntimeDefault', 'Localhost', 'Unconfined', '*'] || x.startsWith('$'))",
        "a type of seccomp profile is RuntimeDefault, Localhost, Unconfined, * or $name (not runtime/default)"))]
    pub allowed: Vec<Text>,
    /// Profiles that type Localhost may name, relative to the kubelet's profile directory; * for all, or
    /// $name. If absent: all.
    #[serde(default = "default_localhost")]
    #[schemars(length(max = 64))]
    pub localhost_profiles: Vec<Text>,
    /// Whether the pod or each container must set a profile. true, false or $name. If absent: true.
    #[serde(default = "default_required")]
    pub required: Flag,
}

impl Default for Seccomp {
    fn default() -> Self {
        Self { allowed: default_allowed(), localhost_profiles: default_localhost(), required: default_required() }
    }
}

fn default_allowed() -> Vec<Text> {
    vec!["RuntimeDefault".into(), "Localhost".into()]
}

fn default_localhost() -> Vec<Text> {
    vec!["*".into()]
}

fn default_required() -> Flag {
    Flag::Constant(true)
}

const OF_POD: &str = "variables.podSecurityContext.seccompProfile";
const OF_CONTAINER: &str = "c.securityContext.seccompProfile";

/// From the CEL of a profile to the CEL of one way in which it is wrong.
type Term = Box<dyn Fn(&str) -> String>;

/// The check.
pub static CHECK: Check = Check {
    id: "seccompProfile",
    title: "Seccomp profiles",
    setting: "privileges.seccomp",
    psp: Some("annotation seccomp.security.alpha.kubernetes.io/allowedProfileNames"),
    pss: Some(Pss { level: Level::Restricted, id: "seccompProfile_restricted" }),
    fields: &[
        Field::Pod("securityContext.seccompProfile.type"),
        Field::Pod("securityContext.seccompProfile.localhostProfile"),
        Field::Container("securityContext.seccompProfile.type"),
        Field::Container("securityContext.seccompProfile.localhostProfile"),
    ],
    fixtures: include_str!("seccomp_profile.yaml"),
    compile: |settings, cx| {
        let seccomp = settings.privileges.seccomp.as_ref()?;
        let path = "spec.privileges.seccomp";
        let mut terms: Vec<Term> = Vec::new();
        let mut allowed_says = cel::quote("any");
        if !any(&seccomp.allowed) {
            let allowed = cx.texts(&format!("{path}.allowed"), &seccomp.allowed);
            allowed_says = allowed.says();
            terms.push(Box::new(move |profile| format!("!({profile}.type in {})", allowed.cel())));
        }
        if !any(&seccomp.localhost_profiles) {
            let profiles = cx.texts(&format!("{path}.localhostProfiles"), &seccomp.localhost_profiles);
            allowed_says = format!("{allowed_says} + ', Localhost profiles: ' + {}", profiles.says());
            terms.push(Box::new(move |profile| {
                format!(
                    "({profile}.type == 'Localhost' && !({profile}.?localhostProfile.orValue('') in {}))",
                    profiles.cel()
                )
            }));
        }
        let bad = |profile: &str| cel::any(&terms.iter().map(|term| term(profile)).collect::<Vec<_>>());
        let says = |profile: &str| {
            format!(
                "'securityContext.seccompProfile is ' + {profile}.type \
                 + ({profile}.?localhostProfile.orValue('') == '' ? '' : ' ' + {profile}.localhostProfile) \
                 + ', allowed: ' + {allowed_says}"
            )
        };
        let mut findings = Vec::new();
        if !terms.is_empty() {
            findings.push(Finding::new(Over::Pod, format!("has({OF_POD}) && {}", bad(OF_POD)), says(OF_POD)));
            findings.push(Finding::new(
                Over::Containers,
                format!("c.?securityContext.?seccompProfile.hasValue() && {}", bad(OF_CONTAINER)),
                says(OF_CONTAINER),
            ));
        }
        let unset = format!("!c.?securityContext.?seccompProfile.hasValue() && !has({OF_POD})");
        if let Some(violated) = cx.when(&format!("{path}.required"), &seccomp.required, &unset) {
            findings.push(Finding::new(
                Over::Containers,
                violated,
                format!("'securityContext.seccompProfile is unset here and in the pod, allowed: ' + {allowed_says}"),
            ));
        }
        (!findings.is_empty()).then_some(Rule { findings, ..Rule::default() })
    },
    comply: |settings, values, pod| {
        let Some(seccomp) = &settings.privileges.seccomp else { return };
        let allowed = seccomp.allowed.resolve(values);
        let profile = match allowed.first().map_or("RuntimeDefault", String::as_str) {
            "*" => json!({"type": "RuntimeDefault"}),
            "Localhost" => {
                let profiles = seccomp.localhost_profiles.resolve(values);
                let profile = profiles.first().map_or("probe.json", String::as_str).replace('*', "probe.json");
                json!({"type": "Localhost", "localhostProfile": profile})
            }
            other => json!({"type": other}),
        };
        pod::set(pod, &["securityContext", "seccompProfile"], profile);
    },
    violate: |settings, values, pod| {
        let allowed = settings.privileges.seccomp.as_ref().map(|seccomp| seccomp.allowed.resolve(values));
        let forbidden = allowed.is_some_and(|allowed| !allowed.iter().any(|a| a == "*" || a == "Unconfined"));
        if forbidden {
            pod::set_container(pod, &["securityContext", "seccompProfile"], json!({"type": "Unconfined"}));
        }
        forbidden
    },
};
