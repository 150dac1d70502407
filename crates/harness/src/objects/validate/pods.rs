//! What is checked of pods and of templates of pods (`pkg/apis/core/validation`).

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::create::{Checking, FieldError, list, names, part, text};

pub(super) fn pod(checking: &mut Checking<'_>, pod: &Value) {
    let nothing = json!({});
    let of = part(pod, "spec").unwrap_or(&nothing);
    spec(checking, of, "spec");
    if !list(of, "ephemeralContainers").is_empty() && checking.old.is_none() {
        checking.errors.push(FieldError::forbidden("spec.ephemeralContainers", "cannot be set on create"));
    }
}

/// A template: its labels and annotations, and the specification of the pods.
pub(super) fn template(checking: &mut Checking<'_>, template: &Value, path: &str) {
    for (key, value) in template.pointer("/metadata/labels").and_then(Value::as_object).into_iter().flatten() {
        let field = format!("{path}.labels");
        let mut wrong = names::qualified(checking.minor, key);
        checking.errors.extend(wrong.iter().map(|wrong| FieldError::invalid(&field, key, wrong)));
        let value = value.as_str().unwrap_or_default();
        wrong = names::label_value(value);
        checking.errors.extend(wrong.iter().map(|wrong| FieldError::invalid(&field, value, wrong)));
    }
    let nothing = json!({});
    let of = part(template, "spec").unwrap_or(&nothing);
    spec(checking, of, &format!("{path}.spec"));
    if !list(of, "ephemeralContainers").is_empty() {
        let text = "ephemeral containers not allowed in pod template";
        checking.errors.push(FieldError::forbidden(format!("{path}.spec.ephemeralContainers"), text));
    }
}

fn spec(checking: &mut Checking<'_>, spec: &Value, path: &str) {
    let volumes = volumes(checking, spec, &format!("{path}.volumes"));
    let mut seen = BTreeSet::new();
    if list(spec, "containers").is_empty() {
        checking.errors.push(FieldError::required(format!("{path}.containers"), ""));
    }
    for containers in ["containers", "initContainers"] {
        for (i, container) in list(spec, containers).iter().enumerate() {
            let path = format!("{path}.{containers}[{i}]");
            self::name(checking, container, &path, &mut seen);
            self::container(checking, container, &path, &volumes);
        }
    }
    allowed(checking, spec, path, "restartPolicy", &["Always", "OnFailure", "Never"]);
    allowed(checking, spec, path, "dnsPolicy", &["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"]);
    for key in ["serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"] {
        let name = text(spec, key);
        if !name.is_empty() {
            let wrong = names::subdomain(name);
            let field = format!("{path}.{key}");
            checking.errors.extend(wrong.iter().map(|wrong| FieldError::invalid(&field, name, wrong)));
        }
    }
    let period = &spec["activeDeadlineSeconds"];
    if period.as_i64().is_some_and(|period| period < 1) {
        let text = "must be between 1 and 2147483647, inclusive";
        checking.errors.push(FieldError::invalid_value(format!("{path}.activeDeadlineSeconds"), period, text));
    }
    for (i, toleration) in list(spec, "tolerations").iter().enumerate() {
        self::toleration(checking, toleration, &format!("{path}.tolerations[{i}]"));
    }
}

fn allowed(checking: &mut Checking<'_>, of: &Value, path: &str, key: &str, values: &[&str]) {
    let value = text(of, key);
    if value.is_empty() {
        checking.errors.push(FieldError::required(format!("{path}.{key}"), ""));
    } else if !values.contains(&value) {
        checking.errors.push(FieldError::not_supported(format!("{path}.{key}"), value, values));
    }
}

/// The names of the volumes that are valid.
fn volumes<'a>(checking: &mut Checking<'_>, spec: &'a Value, path: &str) -> BTreeSet<&'a str> {
    let mut known = BTreeSet::new();
    for (i, volume) in list(spec, "volumes").iter().enumerate() {
        let before = checking.errors.len();
        let (name, field) = (text(volume, "name"), format!("{path}[{i}].name"));
        let sources =
            volume.as_object().map_or(0, |volume| volume.iter().filter(|(k, v)| *k != "name" && !v.is_null()).count());
        if sources > 1 {
            let second = volume.as_object().into_iter().flatten().filter(|(k, _)| *k != "name").nth(1);
            let second = second.map_or(String::new(), |(key, _)| key.clone());
            let text = "may not specify more than 1 volume type";
            checking.errors.push(FieldError::forbidden(format!("{path}[{i}].{second}"), text));
        }
        if name.is_empty() {
            checking.errors.push(FieldError::required(field, ""));
        } else {
            let wrong = names::label(name);
            checking.errors.extend(wrong.iter().map(|wrong| FieldError::invalid(&field, name, wrong)));
            if known.contains(name) {
                checking.errors.push(FieldError::duplicate(field, name));
            }
        }
        source(checking, volume, &format!("{path}[{i}]"));
        if checking.errors.len() == before {
            known.insert(name);
        }
    }
    known
}

/// What each source needs to be given.
fn source(checking: &mut Checking<'_>, volume: &Value, path: &str) {
    for (source, keys) in [
        ("hostPath", &["path"][..]),
        ("secret", &["secretName"]),
        ("configMap", &["name"]),
        ("persistentVolumeClaim", &["claimName"]),
        ("nfs", &["server", "path"]),
        ("csi", &["driver"]),
    ] {
        let Some(of) = part(volume, source) else { continue };
        for key in keys {
            if text(of, key).is_empty() {
                checking.errors.push(FieldError::required(format!("{path}.{source}.{key}"), ""));
            }
        }
    }
}

fn name<'a>(checking: &mut Checking<'_>, container: &'a Value, path: &str, seen: &mut BTreeSet<&'a str>) {
    let (name, field) = (text(container, "name"), format!("{path}.name"));
    if name.is_empty() {
        checking.errors.push(FieldError::required(field, ""));
        return;
    }
    let wrong = names::label(name);
    checking.errors.extend(wrong.iter().map(|wrong| FieldError::invalid(&field, name, wrong)));
    if !seen.insert(name) {
        checking.errors.push(FieldError::duplicate(field, name));
    }
}

fn container(checking: &mut Checking<'_>, container: &Value, path: &str, volumes: &BTreeSet<&str>) {
    let image = text(container, "image");
    if image.is_empty() {
        checking.errors.push(FieldError::required(format!("{path}.image"), ""));
    } else if image.trim() != image {
        let text = "must not have leading or trailing whitespace";
        checking.errors.push(FieldError::invalid(format!("{path}.image"), image, text));
    }
    allowed(checking, container, path, "imagePullPolicy", &["Always", "IfNotPresent", "Never"]);
    for (i, port) in list(container, "ports").iter().enumerate() {
        let path = format!("{path}.ports[{i}]");
        match &port["containerPort"] {
            number if number.as_i64().unwrap_or(0) == 0 => {
                checking.errors.push(FieldError::required(format!("{path}.containerPort"), ""));
            }
            number => port_number(checking, number, &format!("{path}.containerPort")),
        }
        if port["hostPort"].as_i64().is_some_and(|port| port != 0) {
            port_number(checking, &port["hostPort"], &format!("{path}.hostPort"));
        }
        allowed(checking, port, &path, "protocol", &["SCTP", "TCP", "UDP"]);
    }
    for (i, variable) in list(container, "env").iter().enumerate() {
        let name = text(variable, "name");
        if name.is_empty() {
            checking.errors.push(FieldError::required(format!("{path}.env[{i}].name"), ""));
        }
    }
    mounts(checking, container, path, volumes);
    resources(checking, container, path);
    security(checking, container, path);
}

fn mounts(checking: &mut Checking<'_>, container: &Value, path: &str, volumes: &BTreeSet<&str>) {
    let mut paths = BTreeSet::new();
    for (i, mount) in list(container, "volumeMounts").iter().enumerate() {
        let path = format!("{path}.volumeMounts[{i}]");
        let (name, at) = (text(mount, "name"), text(mount, "mountPath"));
        if name.is_empty() {
            checking.errors.push(FieldError::required(format!("{path}.name"), ""));
        } else if !volumes.contains(name) {
            checking.errors.push(FieldError::not_found(format!("{path}.name"), name));
        }
        if at.is_empty() {
            checking.errors.push(FieldError::required(format!("{path}.mountPath"), ""));
        }
        if !paths.insert(at) {
            checking.errors.push(FieldError::invalid(format!("{path}.mountPath"), at, "must be unique"));
        }
    }
}

pub(super) fn port_number(checking: &mut Checking<'_>, number: &Value, field: &str) {
    if !number.as_i64().is_some_and(|number| (1..=65535).contains(&number)) {
        let shown = if number.is_null() { json!(0) } else { number.clone() };
        checking.errors.push(FieldError::invalid_value(field, &shown, "must be between 1 and 65535, inclusive"));
    }
}

fn resources(checking: &mut Checking<'_>, container: &Value, path: &str) {
    let quantity = |value: &Value| palisade_cel::Quantity::parse(value.as_str()?).ok();
    let nothing = json!({});
    let of = part(container, "resources").unwrap_or(&nothing);
    for (key, value) in of["requests"].as_object().into_iter().flatten() {
        let Some((asked, limit)) = quantity(value).zip(of["limits"].get(key).and_then(quantity)) else { continue };
        if asked.compare(&limit).is_gt() {
            let text = format!("must be less than or equal to {key} limit of {limit}");
            let field = format!("{path}.resources.requests");
            checking.errors.push(FieldError::invalid(field, &asked.to_string(), &text));
        }
    }
}

fn security(checking: &mut Checking<'_>, container: &Value, path: &str) {
    let Some(context) = part(container, "securityContext") else { return };
    if context["allowPrivilegeEscalation"] == false {
        let field = format!("{path}.securityContext");
        if context["privileged"] == true {
            let text = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            checking.errors.push(FieldError::invalid_value(field.clone(), context, text));
        }
        let adds = list(&context["capabilities"], "add");
        if adds.iter().any(|capability| capability == "CAP_SYS_ADMIN") {
            let text = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            checking.errors.push(FieldError::invalid_value(field, context, text));
        }
    }
    for key in ["runAsUser", "runAsGroup"] {
        if context[key].as_i64().is_some_and(|id| !(0..=i64::from(i32::MAX)).contains(&id)) {
            let text = "must be between 0 and 2147483647, inclusive";
            checking.errors.push(FieldError::invalid_value(
                format!("{path}.securityContext.{key}"),
                &context[key],
                text,
            ));
        }
    }
}

fn toleration(checking: &mut Checking<'_>, toleration: &Value, path: &str) {
    let (key, operator) = (text(toleration, "key"), text(toleration, "operator"));
    if !key.is_empty() {
        let wrong = names::qualified(checking.minor, key);
        checking.errors.extend(wrong.iter().map(|wrong| FieldError::invalid(format!("{path}.key"), key, wrong)));
    } else if operator != "Exists" {
        let text = "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
        checking.errors.push(FieldError::invalid(format!("{path}.operator"), operator, text));
    }
    if part(toleration, "tolerationSeconds").is_some() && text(toleration, "effect") != "NoExecute" {
        let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
        checking.errors.push(FieldError::invalid(format!("{path}.effect"), text(toleration, "effect"), why));
    }
}
