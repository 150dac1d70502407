//! # seLinuxOptions
//!
//! The SELinux label of a container determines its access on a node that enforces SELinux. A container inherits all
//! options of the pod, unless it sets `seLinuxOptions` itself. The runtime chooses a safe value for each option that is
//! unset. So an unset option is allowed, and a value must be in the list of its option. By default, the lists contain
//! the types that confine a container, no user, no role and any level, as in the Pod Security Standards.
//!
//! `required` corresponds to `MustRunAs` of PodSecurityPolicy: the pod or each container must set each option that has
//! a list, so that the runtime does not choose it.
//!
//! ## If your pod was denied
//!
//! Remove the option in the message, or set it to an allowed value. If the message reports an unset option, set it in
//! the pod's `securityContext.seLinuxOptions`, and remove `seLinuxOptions` from containers, because it replaces all
//! options of the pod.

use crate::json::Change as _;
use serde_json::{Value as Json, json};

use crate::settings::{SeLinux, any};
use crate::shared::defaulted::{first_text, is_secure, where_flag};
use crate::{
    Check, DefaultValue, Field, FieldDefault, Finding, FindingScope, Level, Meaning, Pss, Resolve, Rule, Subject, Text,
    pod,
};

const OF_POD: &str = "variables.podSecurityContext.?seLinuxOptions";
const OF_CONTAINER: &str = "c.?securityContext.?seLinuxOptions";

/// The parts of a label, with their settings and lists.
fn parts(setting: &SeLinux) -> [(&'static str, &'static str, &[Text]); 4] {
    [
        ("type", "types", &setting.types),
        ("user", "users", &setting.users),
        ("role", "roles", &setting.roles),
        ("level", "levels", &setting.levels),
    ]
}

/// The check.
pub static CHECK: Check = Check {
    id: "seLinuxOptions",
    title: "SELinux options",
    settings: &["privileges.seLinux"],
    psp: Some("seLinux"),
    pss: &[Pss { level: Level::Baseline, id: "seLinuxOptions", since: 0 }],
    fields: &[
        Field::Pod("securityContext.seLinuxOptions.type"),
        Field::Pod("securityContext.seLinuxOptions.user"),
        Field::Pod("securityContext.seLinuxOptions.role"),
        Field::Pod("securityContext.seLinuxOptions.level"),
        Field::Container("securityContext.seLinuxOptions.type"),
        Field::Container("securityContext.seLinuxOptions.user"),
        Field::Container("securityContext.seLinuxOptions.role"),
        Field::Container("securityContext.seLinuxOptions.level"),
    ],
    fixtures: include_str!("se_linux_options.yaml"),
    compile: |settings, cx| {
        let setting = settings.privileges.se_linux.as_ref()?;
        let path = "spec.privileges.seLinux";
        let mut findings = Vec::new();
        for (part, name, texts) in parts(setting) {
            if any(texts) {
                continue;
            }
            let meaning = if part == "level" { Meaning::SeLinuxLevel } else { Meaning::Word };
            let allowed = cx.texts(&format!("{path}.{name}"), texts, meaning);
            for (scope, options) in [(FindingScope::Pod, OF_POD), (FindingScope::Containers, OF_CONTAINER)] {
                let found = format!("{options}.?{part}.orValue('')");
                findings.push(Finding::new(
                    scope,
                    format!("{found} != '' && !({found} in {})", allowed.cel()),
                    format!(
                        "'securityContext.seLinuxOptions.{part} is ' + {found} + ', allowed: ' + {}",
                        allowed.says()
                    ),
                ));
            }
            if texts.is_empty() {
                continue;
            }
            let unset = format!("{OF_CONTAINER}.or({OF_POD}).?{part}.orValue('') == ''");
            if let Some(violated) = cx.when(&format!("{path}.required"), &setting.required, &unset) {
                findings.push(Finding::new(
                    FindingScope::Containers,
                    violated,
                    format!(
                        "'securityContext.seLinuxOptions.{part} is unset here and in the pod, allowed: ' + {}",
                        allowed.says()
                    ),
                ));
            }
        }
        (!findings.is_empty()).then_some(Rule { findings, ..Rule::default() })
    },
    defaults: |settings, declared| {
        let Some(setting) = settings.privileges.se_linux.as_ref().filter(|_| is_secure(settings)) else {
            return vec![];
        };
        let Some(when) = where_flag(Some(&setting.required), true) else { return vec![] };
        let demanded = parts(setting).into_iter().filter(|(_, _, texts)| !any(texts) && !texts.is_empty());
        let fields: Option<Vec<_>> =
            demanded.map(|(part, _, texts)| Some((part, first_text(texts, declared)?))).collect();
        let Some(fields) = fields.filter(|fields| !fields.is_empty()) else { return vec![] };
        let path = &["securityContext", "seLinuxOptions"];
        vec![FieldDefault::new(Subject::PodOrContainer, path, DefaultValue::Fields(fields), when)]
    },
    comply: |settings, values, pod| {
        let Some(setting) = settings.privileges.se_linux.as_ref().filter(|setting| setting.required.resolve(values))
        else {
            return;
        };
        for (part, _, texts) in parts(setting) {
            if !any(texts)
                && let Some(first) = texts.resolve(values).first()
            {
                pod::set(pod, &["securityContext", "seLinuxOptions", part], json!(first));
            }
        }
    },
    violate: |settings, values, pod| {
        let Some(setting) = &settings.privileges.se_linux else { return false };
        let forbidden = parts(setting).into_iter().find_map(|(part, _, texts)| {
            let allowed = texts.resolve(values);
            let value = if part == "level" { "s0:c1022,c1023" } else { "palisade_violation" };
            (!allowed.iter().any(|a| a == "*" || a == value)).then_some((part, value))
        });
        let Some((part, value)) = forbidden else { return false };
        let mut options = pod["spec"]["securityContext"]["seLinuxOptions"].clone();
        if !options.is_object() {
            options = Json::Object(serde_json::Map::new());
        }
        *options.at_mut(&[part]) = json!(value);
        pod::set_container(pod, &["securityContext", "seLinuxOptions"], options);
        true
    },
};
