//! # seccompProfile
//!
//! Seccomp limits the system calls of a container. A container inherits the profile of the pod, unless it sets a
//! profile itself. With neither, it runs unconfined on most nodes.
//!
//! ## If your pod was denied
//!
//! Set `seccompProfile: {type: RuntimeDefault}` in the pod's `securityContext`, and remove it from containers, because
//! it would override the value of the pod. If the profile of the runtime blocks the program, it needs a `Localhost`
//! profile. An administrator has to install that on the nodes.

use serde_json::json;

use crate::settings::mutation::AdditionalDefault;
use crate::shared::{
    defaulted::defaulted_when,
    exempt::unless_windows,
    profiles::{self, Profiles},
};
use crate::{
    Check, Condition, DefaultValue, Field, FieldDefault, Finding, FindingScope, Level, Pss, Resolve, Rule, Subject, pod,
};

const ANNOTATION_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const ANNOTATION_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
const OF_POD: &str = "variables.podSecurityContext.seccompProfile";
const OF_CONTAINER: &str = "c.securityContext.seccompProfile";

/// The check.
pub static CHECK: Check = Check {
    id: "seccompProfile",
    title: "Seccomp profiles",
    settings: &["privileges.seccomp", "privileges.windows"],
    psp: Some("annotation seccomp.security.alpha.kubernetes.io/allowedProfileNames"),
    pss: &[
        Pss { level: Level::Baseline, id: "seccompProfile_baseline", since: 0 },
        Pss { level: Level::Restricted, id: "seccompProfile_restricted", since: 19 },
    ],
    fields: &[
        Field::Annotation(ANNOTATION_OF_POD),
        Field::Annotation(ANNOTATION_OF_CONTAINER),
        Field::Pod("securityContext.seccompProfile.type"),
        Field::Pod("securityContext.seccompProfile.localhostProfile"),
        Field::Container("securityContext.seccompProfile.type"),
        Field::Container("securityContext.seccompProfile.localhostProfile"),
    ],
    fixtures: include_str!("seccomp_profile.yaml"),
    compile: |settings, cx| {
        let seccomp = settings.privileges.seccomp.as_ref()?;
        let path = "spec.privileges.seccomp";
        let allowed = Profiles::lower(cx, path, &seccomp.allowed, &seccomp.localhost_profiles);
        let says = |profile: &str| {
            format!(
                "'securityContext.seccompProfile is ' + {} + ', allowed: ' + {}",
                Profiles::found(profile),
                allowed.says()
            )
        };
        let mut variables = Vec::new();
        let mut findings = Vec::new();
        if !allowed.allow_anything() {
            let forbidden = format!("has({OF_POD}) && {}", allowed.forbid(OF_POD));
            findings.push(Finding::new(FindingScope::Pod, forbidden, says(OF_POD)));
            findings.push(Finding::new(
                FindingScope::Containers,
                format!("c.?securityContext.?seccompProfile.hasValue() && {}", allowed.forbid(OF_CONTAINER)),
                says(OF_CONTAINER),
            ));
            let some = "variables.seccompAnnotations.size() > 0";
            if let Some(violated) = cx.when(&format!("{path}.annotations"), &seccomp.annotations, some) {
                let value = "variables.annotations[k]";
                let annotations = format!(
                    "variables.annotations.filter(k, (k == '{ANNOTATION_OF_POD}' \
                     || k.startsWith('{ANNOTATION_OF_CONTAINER}')) && {}).map(k, k + ' is ' + {value})",
                    allowed.forbid_annotation(value, &["runtime/default", "docker/default"]),
                );
                variables.push(("seccompAnnotations", annotations));
                findings.push(Finding::new(
                    FindingScope::Pod,
                    violated,
                    format!(
                        "'seccompProfile: ' + variables.seccompAnnotations.join(', ') + ', allowed: ' + {}",
                        allowed.says()
                    ),
                ));
            }
        }
        let unset =
            unless_windows(settings, &format!("!c.?securityContext.?seccompProfile.hasValue() && !has({OF_POD})"));
        if let Some(violated) = cx.when(&format!("{path}.required"), &seccomp.required, &unset) {
            findings.push(Finding::new(
                FindingScope::Containers,
                violated,
                format!(
                    "'securityContext.seccompProfile is unset here and in the pod, allowed: ' + {}",
                    allowed.says()
                ),
            ));
        }
        (!findings.is_empty()).then_some(Rule { variables, findings })
    },
    defaults: |settings, declared| {
        let seccomp = settings.privileges.seccomp.as_ref();
        let demanded = seccomp.map(|seccomp| &seccomp.required);
        let Some(mut when) = defaulted_when(settings, AdditionalDefault::SeccompProfile, demanded, true) else {
            return vec![];
        };
        let value = seccomp.map_or_else(
            || Some(profiles::of_runtime()),
            |seccomp| profiles::defaulted(&seccomp.allowed, &seccomp.localhost_profiles, declared),
        );
        let Some(fields) = value else { return vec![] };
        // The API server rejects a field that differs from the annotation, although nothing reads that any more.
        when.push(Condition::NotAnnotated(ANNOTATION_OF_POD));
        let path = &["securityContext", "seccompProfile"];
        vec![FieldDefault::new(Subject::PodOrContainer, path, DefaultValue::Fields(fields), when)]
    },
    comply: |settings, values, pod| {
        if let Some(seccomp) = settings.privileges.seccomp.as_ref().filter(|seccomp| seccomp.required.resolve(values))
            && let Some(profile) =
                profiles::first(&seccomp.allowed.resolve(values), &seccomp.localhost_profiles.resolve(values))
        {
            pod::set(pod, &["securityContext", "seccompProfile"], profile);
        }
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
