//! What is checked of each kind besides its metadata.

use serde_json::{Value, json};

use super::{super::Resource, pods};
use crate::create::{Checking, FieldError, list, meta, part, quote, shown, text};

pub(super) fn check(checking: &mut Checking<'_>, r: &Resource, object: &Value) {
    let nothing = json!({});
    let spec = part(object, "spec").unwrap_or(&nothing);
    match (r.group.as_str(), r.plural.as_str()) {
        ("", "pods") => pods::pod(checking, object),
        ("", "services") => service(checking, spec),
        ("", "replicationcontrollers") => controller(checking, spec),
        ("", "podtemplates") => pods::template(checking, &object["template"], "template"),
        ("", "persistentvolumeclaims") => claim(checking, spec),
        ("", "secrets" | "configmaps") => data(checking, object),
        ("apps", "deployments" | "daemonsets" | "statefulsets" | "replicasets") => {
            numbers(
                checking,
                spec,
                "spec",
                &["replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds"],
            );
            workload(checking, spec);
        }
        ("batch", "jobs") => job(checking, spec, "spec"),
        ("batch", "cronjobs") => cron_job(checking, spec),
        ("policy", "poddisruptionbudgets") => budget(checking, spec),
        ("networking.k8s.io", "ingresses") => ingress(checking, spec),
        ("rbac.authorization.k8s.io", "roles" | "clusterroles") => role(checking, object, r.kind == "Role"),
        ("rbac.authorization.k8s.io", "rolebindings" | "clusterrolebindings") => binding(checking, object),
        ("autoscaling", "horizontalpodautoscalers") => autoscaler(checking, spec),
        _ => {}
    }
}

fn numbers(checking: &mut Checking<'_>, of: &Value, path: &str, keys: &[&str]) {
    for key in keys {
        if of[key].as_i64().is_some_and(|number| number < 0) {
            let field = format!("{path}.{key}");
            checking.errors.push(FieldError::invalid_value(field, &of[key], "must be greater than or equal to 0"));
        }
    }
}

/// Does the selector match the labels?
fn selects(selector: &Value, labels: &Value) -> bool {
    let exact =
        selector["matchLabels"].as_object().into_iter().flatten().all(|(key, value)| labels.get(key) == Some(value));
    exact
        && list(selector, "matchExpressions").iter().all(|requirement| {
            let value = labels.get(text(requirement, "key"));
            let listed = value.is_some_and(|value| list(requirement, "values").contains(value));
            match text(requirement, "operator") {
                "In" => listed,
                "NotIn" => !listed,
                "Exists" => value.is_some(),
                _ => value.is_none(),
            }
        })
}

fn is_empty(selector: &Value) -> bool {
    selector["matchLabels"].as_object().is_none_or(serde_json::Map::is_empty)
        && list(selector, "matchExpressions").is_empty()
}

/// Selector and template of what keeps pods running.
fn workload(checking: &mut Checking<'_>, spec: &Value) {
    match part(spec, "selector") {
        None => checking.errors.push(FieldError::required("spec.selector", "")),
        Some(selector) => {
            meta::selector(checking, selector, "spec.selector");
            if is_empty(selector) {
                let text = "empty selector is invalid for deployment";
                checking.errors.push(FieldError::invalid_value("spec.selector", selector, text));
            }
        }
    }
    let nothing = json!({});
    let template = part(spec, "template").unwrap_or(&nothing);
    let labels = template.pointer("/metadata/labels").cloned().unwrap_or_default();
    let selected = part(spec, "selector").is_some_and(|selector| !is_empty(selector) && selects(selector, &labels));
    if !selected {
        checking.errors.push(mismatch(checking.minor, &labels));
    }
    pods::template(checking, template, "spec.template");
    restart_policy(checking, template, "spec.template.spec", &["Always"]);
}

/// The labels of a template that its selector does not match; in Go they are a map of texts.
fn mismatch(minor: u8, labels: &Value) -> FieldError {
    let shown = match (minor, labels) {
        (..34, Value::Null) => "map[string]string(nil)".to_owned(),
        (..34, _) => shown(minor, labels).replacen("interface {}", "string", 1),
        _ => shown(minor, labels),
    };
    let text = "`selector` does not match template `labels`";
    FieldError::invalid_shown("spec.template.metadata.labels", &shown, text)
}

fn restart_policy(checking: &mut Checking<'_>, template: &Value, path: &str, allowed: &[&str]) {
    let policy = text(&template["spec"], "restartPolicy");
    if !allowed.contains(&policy) {
        checking.errors.push(FieldError::not_supported(format!("{path}.restartPolicy"), policy, allowed));
    }
}

fn controller(checking: &mut Checking<'_>, spec: &Value) {
    numbers(checking, spec, "spec", &["minReadySeconds", "replicas"]);
    let selector = &spec["selector"];
    if selector.as_object().is_none_or(serde_json::Map::is_empty) {
        checking.errors.push(FieldError::required("spec.selector", ""));
    }
    let Some(template) = part(spec, "template") else {
        checking.errors.push(FieldError::required("spec.template", ""));
        return;
    };
    let labels = template.pointer("/metadata/labels").cloned().unwrap_or_default();
    if !selects(&json!({"matchLabels": selector}), &labels) {
        checking.errors.push(mismatch(checking.minor, &labels));
    }
    pods::template(checking, template, "spec.template");
    restart_policy(checking, template, "spec.template.spec", &["Always"]);
}

fn job(checking: &mut Checking<'_>, spec: &Value, path: &str) {
    numbers(
        checking,
        spec,
        path,
        &["parallelism", "completions", "activeDeadlineSeconds", "backoffLimit", "ttlSecondsAfterFinished"],
    );
    let nothing = json!({});
    let template = part(spec, "template").unwrap_or(&nothing);
    pods::template(checking, template, &format!("{path}.template"));
    let policy = text(&template["spec"], "restartPolicy");
    if !matches!(policy, "OnFailure" | "Never") {
        let field = format!("{path}.template.spec.restartPolicy");
        checking.errors.push(match policy {
            "" | "Always" => FieldError::required(field, "valid values: \"OnFailure\", \"Never\""),
            other => FieldError::not_supported(field, other, &["OnFailure", "Never"]),
        });
    }
}

fn cron_job(checking: &mut Checking<'_>, spec: &Value) {
    if text(spec, "schedule").is_empty() {
        checking.errors.push(FieldError::required("spec.schedule", ""));
    }
    numbers(
        checking,
        spec,
        "spec",
        &["startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit"],
    );
    let policy = text(spec, "concurrencyPolicy");
    if !matches!(policy, "Allow" | "Forbid" | "Replace") {
        let allowed = ["Allow", "Forbid", "Replace"];
        checking.errors.push(FieldError::not_supported("spec.concurrencyPolicy", policy, &allowed));
    }
    let nothing = json!({});
    job(checking, part(&spec["jobTemplate"], "spec").unwrap_or(&nothing), "spec.jobTemplate.spec");
}

fn service(checking: &mut Checking<'_>, spec: &Value) {
    let kind = text(spec, "type");
    let ports = list(spec, "ports");
    if ports.is_empty() && kind != "ExternalName" && spec["clusterIP"] != "None" {
        checking.errors.push(FieldError::required("spec.ports", ""));
    }
    if kind == "ExternalName" && text(spec, "externalName").is_empty() {
        checking.errors.push(FieldError::required("spec.externalName", ""));
    }
    let types = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];
    if !types.contains(&kind) {
        checking.errors.push(FieldError::not_supported("spec.type", kind, &types));
    }
    for (i, port) in ports.iter().enumerate() {
        let path = format!("spec.ports[{i}]");
        if ports.len() > 1 && text(port, "name").is_empty() {
            checking.errors.push(FieldError::required(format!("{path}.name"), ""));
        }
        pods::port_number(checking, &port["port"], &format!("{path}.port"));
        if port["targetPort"].is_number() {
            pods::port_number(checking, &port["targetPort"], &format!("{path}.targetPort"));
        }
        let protocol = text(port, "protocol");
        if !["SCTP", "TCP", "UDP"].contains(&protocol) {
            let field = format!("{path}.protocol");
            checking.errors.push(FieldError::not_supported(field, protocol, &["SCTP", "TCP", "UDP"]));
        }
        if kind == "ClusterIP" && port["nodePort"].as_i64().is_some_and(|port| port != 0) {
            let text = "may not be used when `type` is 'ClusterIP'";
            checking.errors.push(FieldError::forbidden(format!("{path}.nodePort"), text));
        }
    }
}

fn claim(checking: &mut Checking<'_>, spec: &Value) {
    if list(spec, "accessModes").is_empty() {
        checking.errors.push(FieldError::required("spec.accessModes", "at least 1 access mode is required"));
    }
    if spec.pointer("/resources/requests/storage").is_none() {
        checking.errors.push(FieldError::required("spec.resources[storage]", ""));
    }
}

fn data(checking: &mut Checking<'_>, object: &Value) {
    for map in ["data", "binaryData"] {
        for key in object[map].as_object().into_iter().flatten().map(|(key, _)| key) {
            let valid = !key.is_empty()
                && key.len() <= 253
                && key != "."
                && !key.starts_with("..")
                && key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b));
            if !valid {
                let text = "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. \
                            'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')";
                checking.errors.push(FieldError::invalid(format!("{map}[{key}]"), key, text));
            }
        }
    }
}

fn budget(checking: &mut Checking<'_>, spec: &Value) {
    if part(spec, "minAvailable").is_some() && part(spec, "maxUnavailable").is_some() {
        let text = "minAvailable and maxUnavailable cannot be both set";
        checking.errors.push(FieldError::invalid_value("spec", spec, text));
    }
    for key in ["minAvailable", "maxUnavailable"] {
        let field = format!("spec.{key}");
        match part(spec, key) {
            Some(Value::Number(number)) if number.as_i64().is_some_and(|number| number < 0) => {
                let text = "must be greater than or equal to 0";
                checking.errors.push(FieldError::invalid_value(field, &spec[key], text));
            }
            Some(Value::String(share)) => {
                let digits = share.strip_suffix('%').filter(|digits| !digits.is_empty());
                let number = digits.filter(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
                let text = match number.map(str::parse::<u64>) {
                    Some(Ok(..=100)) => continue,
                    Some(_) => "must not be greater than 100%",
                    None => {
                        "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or \
                         '93%', regex used for validation is '[0-9]+%')"
                    }
                };
                checking.errors.push(if checking.minor < 34 {
                    let shown = format!("intstr.IntOrString{{Type:1, IntVal:0, StrVal:{}}}", quote(share));
                    FieldError::invalid_shown(field, &shown, text)
                } else {
                    FieldError::invalid(field, share, text)
                });
            }
            _ => {}
        }
    }
    if let Some(selector) = part(spec, "selector") {
        meta::selector(checking, selector, "spec.selector");
    }
}

fn ingress(checking: &mut Checking<'_>, spec: &Value) {
    if list(spec, "rules").is_empty() && part(spec, "defaultBackend").is_none() {
        let text = "either `defaultBackend` or `rules` must be specified";
        checking.errors.push(FieldError::invalid_value("spec", &Value::Array(vec![]), text));
    }
    for (i, rule) in list(spec, "rules").iter().enumerate() {
        let Some(http) = part(rule, "http") else { continue };
        let path = format!("spec.rules[{i}].http");
        if list(http, "paths").is_empty() {
            checking.errors.push(FieldError::required(format!("{path}.paths"), ""));
        }
        for (j, of) in list(http, "paths").iter().enumerate() {
            if part(of, "pathType").is_none() {
                let field = format!("{path}.paths[{j}].pathType");
                checking.errors.push(FieldError::required(field, "pathType must be specified"));
            }
        }
    }
}

fn role(checking: &mut Checking<'_>, role: &Value, namespaced: bool) {
    for (i, rule) in list(role, "rules").iter().enumerate() {
        let path = format!("rules[{i}]");
        if list(rule, "verbs").is_empty() {
            checking
                .errors
                .push(FieldError::required(format!("{path}.verbs"), "verbs must contain at least one value"));
        }
        if !list(rule, "nonResourceURLs").is_empty() {
            if namespaced {
                let text = "namespaced rules cannot apply to non-resource URLs";
                let field = format!("{path}.nonResourceURLs");
                checking.errors.push(FieldError::invalid_value(field, &rule["nonResourceURLs"], text));
            }
            continue;
        }
        for (key, what) in [("apiGroups", "apiGroups"), ("resources", "resources")] {
            if list(rule, key).is_empty() {
                let text = format!(
                    "resource rules must supply at least one {}",
                    if what == "apiGroups" { "api group" } else { "resource" }
                );
                checking.errors.push(FieldError::required(format!("{path}.{key}"), &text));
            }
        }
    }
}

fn binding(checking: &mut Checking<'_>, binding: &Value) {
    let of = &binding["roleRef"];
    let kinds = if binding["kind"] == "RoleBinding" { &["Role", "ClusterRole"][..] } else { &["ClusterRole"] };
    if !kinds.contains(&text(of, "kind")) {
        checking.errors.push(FieldError::not_supported("roleRef.kind", text(of, "kind"), kinds));
    }
    if text(of, "name").is_empty() {
        checking.errors.push(FieldError::required("roleRef.name", ""));
    }
    for (i, subject) in list(binding, "subjects").iter().enumerate() {
        if text(subject, "name").is_empty() {
            checking.errors.push(FieldError::required(format!("subjects[{i}].name"), ""));
        }
        let kind = text(subject, "kind");
        if !["ServiceAccount", "User", "Group"].contains(&kind) {
            let field = format!("subjects[{i}].kind");
            checking.errors.push(FieldError::not_supported(field, kind, &["ServiceAccount", "User", "Group"]));
        }
        if kind == "ServiceAccount" && text(subject, "namespace").is_empty() && binding["kind"] != "RoleBinding" {
            checking.errors.push(FieldError::required(format!("subjects[{i}].namespace"), ""));
        }
    }
}

fn autoscaler(checking: &mut Checking<'_>, spec: &Value) {
    if spec["maxReplicas"].as_i64().unwrap_or(0) < 1 {
        let text = "must be greater than 0";
        checking.errors.push(FieldError::invalid_value("spec.maxReplicas", &spec["maxReplicas"], text));
    }
    for key in ["kind", "name"] {
        if text(&spec["scaleTargetRef"], key).is_empty() {
            checking.errors.push(FieldError::required(format!("spec.scaleTargetRef.{key}"), ""));
        }
    }
}
