//! # capabilities
//!
//! Linux capabilities divide the privileges of root. A container may add only allowed capabilities and must drop the
//! required ones. Dropping `ALL` drops all of them. Names are compared exactly: write `ALL` and `NET_BIND_SERVICE`,
//! without `CAP_`.
//!
//! ## If your pod was denied
//!
//! Set `securityContext.capabilities.drop` in each container to the value in the message, usually `[ALL]`. Remove
//! capabilities that are not allowed from `add`. A server that needs `NET_BIND_SERVICE` for a port below 1024 can
//! listen on a higher port, and its Service maps the port.

use serde_json::json;

use crate::settings::any;
use crate::shared::defaulted::{is_secure, may_be_empty};
use crate::shared::exempt::unless_windows;
use crate::{
    Check, Condition, DefaultValue, Field, FieldDefault, Finding, FindingScope, Level, Meaning, Pss, Resolve, Rule,
    Subject, Text, pod,
};

const ADD: &str = "c.?securityContext.?capabilities.?add.orValue([])";
const DROP: &str = "c.?securityContext.?capabilities.?drop.orValue([])";
const PATH_OF_DROP: &[&str] = &["securityContext", "capabilities", "drop"];

/// The check.
pub static CHECK: Check = Check {
    id: "capabilities",
    title: "Linux capabilities",
    settings: &["privileges.capabilities", "privileges.windows"],
    psp: Some("allowedCapabilities, requiredDropCapabilities, defaultAddCapabilities"),
    pss: &[
        Pss { level: Level::Baseline, id: "capabilities_baseline", since: 0 },
        Pss { level: Level::Restricted, id: "capabilities_restricted", since: 22 },
    ],
    fields: &[
        Field::Container("securityContext.capabilities.add"),
        Field::Container("securityContext.capabilities.drop"),
    ],
    fixtures: include_str!("capabilities.yaml"),
    compile: |settings, cx| {
        let capabilities = settings.privileges.capabilities.as_ref()?;
        let mut findings = Vec::new();
        if !any(&capabilities.allowed_add) {
            let mut allowed =
                cx.texts("spec.privileges.capabilities.allowedAdd", &capabilities.allowed_add, Meaning::Word);
            allowed.append(cx.texts(
                "spec.privileges.capabilities.defaultAdd",
                &capabilities.default_add,
                Meaning::Word,
            ));
            let bad = format!("!(x in {})", allowed.cel());
            findings.push(Finding::new(
                FindingScope::Containers,
                format!("{ADD}.exists(x, {bad})"),
                format!(
                    "'unrestricted capabilities: securityContext.capabilities.add has ' \
                     + {ADD}.filter(x, {bad}).join(', ') + ', allowed: ' + {}",
                    allowed.says()
                ),
            ));
        }
        if !capabilities.required_drop.is_empty() {
            let required =
                cx.texts("spec.privileges.capabilities.requiredDrop", &capabilities.required_drop, Meaning::Word);
            findings.push(Finding::new(
                FindingScope::Containers,
                unless_windows(
                    settings,
                    &format!("!('ALL' in {DROP}) && {}.exists(x, !(x in {DROP}))", required.cel()),
                ),
                format!(
                    "'unrestricted capabilities: securityContext.capabilities.drop is [' \
                     + {DROP}.join(', ') + '], must include ' + {}",
                    required.says()
                ),
            ));
        }
        (!findings.is_empty()).then_some(Rule { findings, ..Rule::default() })
    },
    defaults: |settings, declared| {
        let Some(capabilities) = &settings.privileges.capabilities else { return vec![] };
        let mut defaults = Vec::new();
        let mut default = |path: &[&str], texts: &[Text], mut when: Vec<Condition>| {
            if may_be_empty(texts, declared) {
                when.push(Condition::NotEmpty(texts.to_vec()));
            }
            defaults.push(FieldDefault::new(Subject::Container, path, DefaultValue::Texts(texts.to_vec()), when));
        };
        if !capabilities.required_drop.is_empty() && is_secure(settings) {
            default(PATH_OF_DROP, &capabilities.required_drop, vec![]);
        }
        if !capabilities.default_add.is_empty() {
            let kept = Condition::ContainerLacks(PATH_OF_DROP, capabilities.default_add.clone());
            default(&["securityContext", "capabilities", "add"], &capabilities.default_add, vec![kept]);
        }
        defaults
    },
    comply: |settings, values, pod| {
        if let Some(capabilities) = &settings.privileges.capabilities {
            let drop = capabilities.required_drop.resolve(values);
            if !drop.is_empty() {
                pod::set_containers(pod, &["securityContext", "capabilities", "drop"], &json!(drop));
            }
        }
    },
    violate: |settings, values, pod| {
        let Some(capabilities) = &settings.privileges.capabilities else { return false };
        let mut allowed = capabilities.allowed_add.resolve(values);
        allowed.extend(capabilities.default_add.resolve(values));
        // Not SYS_ADMIN: the API server rejects it together with allowPrivilegeEscalation: false.
        let bad = ["NET_RAW", "SYS_TIME"].into_iter().find(|bad| !allowed.iter().any(|a| a == bad || a == "*"));
        if let Some(bad) = bad {
            pod::set_container(pod, &["securityContext", "capabilities", "add"], json!([bad]));
        }
        bad.is_some()
    },
};
