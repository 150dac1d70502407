//! Structs as the API server shows them in errors: as JSON with all fields, named as in Go. Until 1.33 it shows them in
//! the syntax of Go with memory addresses, which are unpredictable; this module then returns the texts of 1.34.

use std::fmt::Write as _;

use palisade_cel::Minor;
use serde_json::Value;

use super::node::Node;
use crate::validation::html_escaped;

/// The type of a field, which determines how the field is shown if it is set and if it is unset.
enum Of {
    /// The value as JSON, or null.
    Pointer,
    Text,
    Number,
    Struct(Fields),
    Selector,
}

/// The name in Go, and the name in JSON.
type Fields = &'static [(&'static str, &'static str, Of)];

const SELINUX: Fields =
    &[("User", "user", Of::Text), ("Role", "role", Of::Text), ("Type", "type", Of::Text), ("Level", "level", Of::Text)];
const WINDOWS: Fields = &[
    ("GMSACredentialSpecName", "gmsaCredentialSpecName", Of::Pointer),
    ("GMSACredentialSpec", "gmsaCredentialSpec", Of::Pointer),
    ("RunAsUserName", "runAsUserName", Of::Pointer),
    ("HostProcess", "hostProcess", Of::Pointer),
];
const PROFILE: Fields = &[("Type", "type", Of::Text), ("LocalhostProfile", "localhostProfile", Of::Pointer)];
const CAPABILITIES: Fields = &[("Add", "add", Of::Pointer), ("Drop", "drop", Of::Pointer)];
const SECURITY_CONTEXT: Fields = &[
    ("Capabilities", "capabilities", Of::Struct(CAPABILITIES)),
    ("Privileged", "privileged", Of::Pointer),
    ("SELinuxOptions", "seLinuxOptions", Of::Struct(SELINUX)),
    ("WindowsOptions", "windowsOptions", Of::Struct(WINDOWS)),
    ("RunAsUser", "runAsUser", Of::Pointer),
    ("RunAsGroup", "runAsGroup", Of::Pointer),
    ("RunAsNonRoot", "runAsNonRoot", Of::Pointer),
    ("ReadOnlyRootFilesystem", "readOnlyRootFilesystem", Of::Pointer),
    ("AllowPrivilegeEscalation", "allowPrivilegeEscalation", Of::Pointer),
    ("ProcMount", "procMount", Of::Pointer),
    ("SeccompProfile", "seccompProfile", Of::Struct(PROFILE)),
    ("AppArmorProfile", "appArmorProfile", Of::Struct(PROFILE)),
];
const TRUST_BUNDLE: Fields = &[
    ("Name", "name", Of::Pointer),
    ("SignerName", "signerName", Of::Pointer),
    ("LabelSelector", "labelSelector", Of::Selector),
    ("Optional", "optional", Of::Pointer),
    ("Path", "path", Of::Text),
];
const TRUST_BUNDLE_37: Fields = &[
    ("Name", "name", Of::Pointer),
    ("SignerName", "signerName", Of::Pointer),
    ("LabelSelector", "labelSelector", Of::Selector),
    ("Optional", "optional", Of::Pointer),
    ("Path", "path", Of::Text),
    ("User", "user", Of::Pointer),
];
const RESOURCE_CLAIM: Fields = &[
    ("Name", "name", Of::Text),
    ("ResourceClaimName", "resourceClaimName", Of::Pointer),
    ("ResourceClaimTemplateName", "resourceClaimTemplateName", Of::Pointer),
];
/// The fields that distinguish ports of a service; other fields are shown as unset.
const SERVICE_PORT: Fields = &[
    ("Name", "-", Of::Text),
    ("Protocol", "protocol", Of::Text),
    ("AppProtocol", "-", Of::Pointer),
    ("Port", "port", Of::Number),
    ("TargetPort", "-", Of::Number),
    ("NodePort", "-", Of::Number),
];
const ROLLING: Fields = &[("MaxUnavailable", "maxUnavailable", Of::Number), ("MaxSurge", "maxSurge", Of::Number)];
const STRATEGY: Fields = &[("Type", "type", Of::Text), ("RollingUpdate", "rollingUpdate", Of::Struct(ROLLING))];
const ROLLING_SET: Fields =
    &[("Partition", "partition", Of::Number), ("MaxUnavailable", "maxUnavailable", Of::Pointer)];
const STRATEGY_SET: Fields = &[("Type", "type", Of::Text), ("RollingUpdate", "rollingUpdate", Of::Struct(ROLLING_SET))];
const BUDGET: Fields = &[
    ("MinAvailable", "minAvailable", Of::Pointer),
    ("Selector", "selector", Of::Selector),
    ("MaxUnavailable", "maxUnavailable", Of::Pointer),
    ("UnhealthyPodEvictionPolicy", "unhealthyPodEvictionPolicy", Of::Pointer),
];
const SUCCESS_RULE: Fields =
    &[("SucceededIndexes", "succeededIndexes", Of::Pointer), ("SucceededCount", "succeededCount", Of::Pointer)];

fn show(of: &Value, fields: Fields) -> String {
    if of.is_null() {
        return "null".to_owned();
    }
    let mut out = String::from("{");
    for (i, (name, key, kind)) in fields.iter().enumerate() {
        let comma = if i == 0 { "" } else { "," };
        let value = of.get(key).unwrap_or(&Value::Null);
        let shown = match kind {
            Of::Struct(inner) => show(value, inner),
            Of::Selector if !value.is_null() => selector(value),
            Of::Text if value.is_null() => "\"\"".to_owned(),
            Of::Number if value.is_null() => "0".to_owned(),
            _ => html_escaped(&value.to_string()),
        };
        let _ = write!(out, "{comma}\"{name}\":{shown}");
    }
    out.push('}');
    out
}

/// A label selector; its type has names for JSON, in this order.
pub(super) fn selector(of: &Value) -> String {
    let fields = |of: &Value, keys: &[(&str, bool)]| {
        let shown = keys.iter().filter(|(key, always)| *always || of.get(key).is_some_and(|value| !value.is_null()));
        let shown = shown.map(|(key, _)| {
            let value = of.get(key).cloned().unwrap_or_else(|| Value::from(""));
            format!("\"{key}\":{}", html_escaped(&value.to_string()))
        });
        shown.collect::<Vec<_>>()
    };
    let mut out = fields(of, &[("matchLabels", false)]);
    if let Some(Value::Array(list)) = of.get("matchExpressions") {
        let one =
            |one| format!("{{{}}}", fields(one, &[("key", true), ("operator", true), ("values", false)]).join(","));
        out.push(format!("\"matchExpressions\":[{}]", list.iter().map(one).collect::<Vec<_>>().join(",")));
    }
    format!("{{{}}}", out.join(","))
}

pub(super) fn security_context(node: &Node<'_>) -> String {
    show(node.value, SECURITY_CONTEXT)
}

pub(super) fn seccomp(node: &Node<'_>) -> String {
    show(node.value, PROFILE)
}

pub(super) fn trust_bundle(minor: Minor, node: &Node<'_>) -> String {
    show(node.value, if minor < Minor::V1_37 { TRUST_BUNDLE } else { TRUST_BUNDLE_37 })
}

pub(super) fn resource_claim(node: &Node<'_>) -> String {
    show(node.value, RESOURCE_CLAIM)
}

pub(super) fn service_port(node: &Node<'_>) -> String {
    show(node.value, SERVICE_PORT)
}

pub(super) fn strategy(node: &Node<'_>) -> String {
    show(node.value, STRATEGY)
}

pub(super) fn strategy_of_set(node: &Node<'_>) -> String {
    show(node.value, STRATEGY_SET)
}

pub(super) fn rolling_update_of_set(node: &Node<'_>) -> String {
    show(node.value, ROLLING_SET)
}

pub(super) fn budget(node: &Node<'_>) -> String {
    show(node.value, BUDGET)
}

pub(super) fn success_policy(node: &Node<'_>) -> String {
    let rules: Vec<_> = node.elements("rules").iter().map(|rule| show(rule, SUCCESS_RULE)).collect();
    if node.has("rules") { format!("{{\"Rules\":[{}]}}", rules.join(",")) } else { "{\"Rules\":null}".to_owned() }
}
