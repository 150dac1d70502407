//! # appArmorProfile
//!
//! AppArmor restricts which files and capabilities a container can use. A container without an AppArmor profile gets
//! the default profile of the container runtime, if the node supports AppArmor. The deprecated annotation is also
//! evaluated: the API server copies it to the field, but only on creation.
//!
//! ## If your pod was denied
//!
//! Remove `appArmorProfile`, or the annotation, so that the container gets the profile of the runtime. Or set a type
//! and a profile that the message lists. An administrator has to load a `Localhost` profile on the nodes.

use serde_json::json;

use crate::shared::profiles::Profiles;
use crate::{Check, Field, Finding, FindingScope, Level, Pss, Resolve, Rule, pod};

const ANNOTATION: &str = "container.apparmor.security.beta.kubernetes.io/";
const OF_POD: &str = "variables.podSecurityContext.appArmorProfile";
const OF_CONTAINER: &str = "c.securityContext.appArmorProfile";

/// The check.
pub static CHECK: Check = Check {
    id: "appArmorProfile",
    title: "AppArmor profiles",
    settings: &["privileges.appArmor"],
    psp: Some("annotation apparmor.security.beta.kubernetes.io/allowedProfileNames"),
    pss: &[Pss { level: Level::Baseline, id: "appArmorProfile", since: 0 }],
    fields: &[
        Field::Annotation(ANNOTATION),
        Field::Pod("securityContext.appArmorProfile.type"),
        Field::Pod("securityContext.appArmorProfile.localhostProfile"),
        Field::Container("securityContext.appArmorProfile.type"),
        Field::Container("securityContext.appArmorProfile.localhostProfile"),
    ],
    fixtures: include_str!("app_armor_profile.yaml"),
    compile: |settings, cx| {
        let setting = settings.privileges.app_armor.as_ref()?;
        let allowed = Profiles::lower(cx, "spec.privileges.appArmor", &setting.allowed, &setting.localhost_profiles);
        if allowed.allow_anything() {
            return None;
        }
        let says = |found: &str, profile: &str| {
            format!("'forbidden AppArmor profile: {found} is ' + {profile} + ', allowed: ' + {}", allowed.says())
        };
        let value = "variables.annotations[k]";
        // The field decides if a container has it; the API server rejects an annotation that differs.
        let annotations = format!(
            "variables.annotations.filter(k, k.startsWith('{ANNOTATION}') && {value} != '' && {} \
             && !variables.containers.exists(c, k == '{ANNOTATION}' + c.name \
             && c.?securityContext.?appArmorProfile.hasValue())).map(k, k + ' is ' + {value})",
            allowed.forbid_annotation(value, &["runtime/default"]),
        );
        let field = "securityContext.appArmorProfile";
        let some = "variables.appArmorAnnotations.size() > 0";
        // Kubernetes 1.33 copies the field of the pod to annotations, which the user did not write. A forbidden field
        // denies the pod, so the annotations are reported only without one.
        let of_pod = format!("has({OF_POD}) && {}", allowed.forbid(OF_POD));
        Some(Rule {
            variables: vec![("appArmorAnnotations", annotations)],
            findings: vec![
                Finding::new(
                    FindingScope::Pod,
                    format!("{some} && !({of_pod})"),
                    format!(
                        "'forbidden AppArmor profile: ' + variables.appArmorAnnotations.join(', ') + ', allowed: ' + {}",
                        allowed.says()
                    ),
                )
                .complies(format!("!({some})")),
                Finding::new(FindingScope::Pod, of_pod, says(field, &Profiles::found(OF_POD))),
                Finding::new(
                    FindingScope::Containers,
                    format!("c.?securityContext.?appArmorProfile.hasValue() && {}", allowed.forbid(OF_CONTAINER)),
                    says(field, &Profiles::found(OF_CONTAINER)),
                ),
            ],
        })
    },
    defaults: |_, _| vec![],
    comply: |_, _, _| {},
    violate: |settings, values, pod| {
        let allowed = settings.privileges.app_armor.as_ref().map(|setting| setting.allowed.resolve(values));
        let forbidden = allowed.is_some_and(|allowed| !allowed.iter().any(|a| a == "*" || a == "Unconfined"));
        if forbidden {
            pod::set_container(pod, &["securityContext", "appArmorProfile"], json!({"type": "Unconfined"}));
        }
        forbidden
    },
};
