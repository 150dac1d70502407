//! Environment variables and their sources (`ValidateEnv` and `ValidateEnvFrom` in
//! `pkg/apis/core/validation/validation.go`).

use palisade_cel::Minor;

use super::{
    super::{super::gates::Gate, formats, node::Node, quantities::quantity},
    paths,
};
use crate::validation::{Checking, names};

/// The fields that the downward API provides for variables.
const FIELDS: &[&str] = &[
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
/// All fields that the API server recognizes, including those that no reference may use
/// (`ConvertDownwardAPIFieldLabel`).
const KNOWN: &[&str] = &[
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.restartPolicy",
    "spec.serviceAccountName",
    "spec.schedulerName",
    "status.phase",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];
const RESOURCES: &[&str] = &[
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
];

pub(super) fn variables(checking: &mut Checking<'_>, container: &Node<'_>) {
    for variable in container.list("env") {
        let name = variable.text("name");
        if name.is_empty() {
            checking.required(variable.field("name"), "");
        } else {
            checking.each(variable.field("name"), name, &formats::variable(name));
        }
        if let Some(source) = variable.part("valueFrom") {
            value_from(checking, &source, variable.text("value"));
        }
    }
}

fn value_from(checking: &mut Checking<'_>, source: &Node<'_>, value: &str) {
    let mut count = 0;
    if let Some(field) = source.part("fieldRef") {
        count += 1;
        object_field(checking, &field, FIELDS);
    }
    if let Some(resource) = source.part("resourceFieldRef") {
        count += 1;
        resource_field(checking, &resource, false);
    }
    for key in ["configMapKeyRef", "secretKeyRef"] {
        if let Some(reference) = source.part(key) {
            count += 1;
            key_of(checking, &reference);
        }
    }
    let files = Gate::EnvFiles.is_on(checking.minor);
    if let Some(file) = source.part("fileKeyRef").filter(|_| checking.minor >= Minor::V1_34) {
        count += 1;
        key_of_file(checking, &file);
    }
    if count == 0 {
        let text = if files {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`"
        } else {
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef` or `secretKeyRef`"
        };
        checking.invalid(&source.path, "", text);
    } else if !value.is_empty() {
        checking.invalid(&source.path, "", "may not be specified when `value` is not empty");
    } else if count > 1 {
        checking.invalid(&source.path, "", "may not have more than one field specified at a time");
    }
}

/// A field of the pod (`validateObjectFieldSelector`).
pub(super) fn object_field(checking: &mut Checking<'_>, of: &Node<'_>, allowed: &[&str]) {
    for key in ["apiVersion", "fieldPath"] {
        if of.text(key).is_empty() {
            checking.required(of.field(key), "");
            return;
        }
    }
    let (version, path) = (of.text("apiVersion"), of.text("fieldPath"));
    let subscripted =
        path.strip_suffix("']").and_then(|path| path.split_once("['")).filter(|(path, _)| !path.is_empty());
    let error = match subscripted {
        _ if version != "v1" => Some(format!("unsupported pod version: {version}")),
        Some(("metadata.annotations" | "metadata.labels", _)) => None,
        Some(_) => Some(format!("field label does not support subscript: {path}")),
        None if KNOWN.contains(&path) || path == "spec.host" => None,
        None => Some(format!("field label not supported: {path}")),
    };
    if let Some(error) = error {
        checking.invalid(of.field("fieldPath"), path, &format!("error converting fieldPath: {error}"));
        return;
    }
    match subscripted {
        Some(("metadata.annotations", key)) => formats::label_key(checking, &of.path, &key.to_lowercase()),
        Some((_, key)) => formats::label_key(checking, &of.path, key),
        None => {
            let path = if path == "spec.host" { "spec.nodeName" } else { path };
            if !allowed.contains(&path) {
                checking.unsupported(of.field("fieldPath"), path, allowed);
            }
        }
    }
}

/// A resource of a container (`validateContainerResourceFieldSelector`).
pub(super) fn resource_field(checking: &mut Checking<'_>, of: &Node<'_>, in_volume: bool) {
    let resource = of.text("resource");
    let pages = resource.starts_with("requests.hugepages-") || resource.starts_with("limits.hugepages-");
    if in_volume && of.text("containerName").is_empty() {
        checking.required(of.field("containerName"), "");
    } else if resource.is_empty() {
        checking.required(of.field("resource"), "");
    } else if !RESOURCES.contains(&resource) && !pages {
        checking.unsupported(of.field("resource"), resource, RESOURCES);
    }
    let Some(divisor) = quantity(of.get("divisor").value).filter(|divisor| divisor.sign() != 0) else {
        return;
    };
    let sizes = "1, 1k, 1M, 1G, 1T, 1P, 1E, 1Ki, 1Mi, 1Gi, 1Ti, 1Pi, 1Ei";
    let (allowed, what) = match resource.split_once('.').map_or("", |(_, resource)| resource) {
        _ if pages => (sizes, "hugepages"),
        "cpu" if RESOURCES.contains(&resource) => ("1m and 1", "cpu"),
        "memory" if RESOURCES.contains(&resource) => (sizes, "memory"),
        "ephemeral-storage" if RESOURCES.contains(&resource) => (sizes, "local ephemeral storage"),
        _ => return,
    };
    let shown = divisor.to_string();
    let is_allowed =
        if what == "cpu" { ["1m", "1"].contains(&shown.as_str()) } else { sizes.split(", ").any(|size| size == shown) };
    if !is_allowed {
        let text = format!("only divisor's values {allowed} are supported with the {what} resource");
        checking.invalid(of.field("divisor"), resource, &text);
    }
}

/// A key of a config map or secret.
fn key_of(checking: &mut Checking<'_>, of: &Node<'_>) {
    let (name, key) = (of.text("name"), of.text("key"));
    formats::subdomain(checking, of.field("name"), name);
    if key.is_empty() {
        checking.required(of.field("key"), "");
    } else {
        checking.each(of.field("key"), key, &formats::config_key(key));
    }
}

fn key_of_file(checking: &mut Checking<'_>, of: &Node<'_>) {
    let (key, volume, path) = (of.text("key"), of.text("volumeName"), of.text("path"));
    if key.is_empty() {
        checking.required(of.field("key"), "");
    } else {
        checking.each(of.field("key"), key, &formats::variable(key));
    }
    if volume.is_empty() {
        checking.required(of.field("volumeName"), "");
    } else {
        formats::label(checking, of.field("volumeName"), volume);
    }
    if path.is_empty() {
        checking.required(of.field("path"), "");
    } else {
        paths::no_backsteps(checking, of.field("path"), path);
    }
}

/// Maps of variables. The error in their number is reported at the list.
pub(super) fn maps(checking: &mut Checking<'_>, container: &Node<'_>) {
    for source in container.list("envFrom") {
        let prefix = source.text("prefix");
        if !prefix.is_empty() {
            checking.each(source.field("prefix"), prefix, &formats::variable(prefix));
        }
        let mut count = 0;
        for key in ["configMapRef", "secretRef"] {
            let Some(reference) = source.part(key) else { continue };
            count += 1;
            let name = reference.text("name");
            if name.is_empty() {
                checking.required(reference.field("name"), "");
            } else {
                // As a prefix, which may end in a dash.
                checking.each(reference.field("name"), name, &names::subdomain(&names::masked(name)));
            }
        }
        let text = match count {
            0 => "must specify one of: `configMapRef` or `secretRef`",
            1 => continue,
            _ => "may not have more than one field specified at a time",
        };
        checking.invalid(container.field("envFrom"), "", text);
    }
}

/// Volumes of which files are read must be there, and empty before (`validateFileKeyRefVolumes`).
pub(super) fn volumes_of_files(checking: &mut Checking<'_>, pod: &super::Pod<'_>) {
    if checking.minor < Minor::V1_34 {
        return;
    }
    for container in pod.containers() {
        for variable in container.list("env") {
            let Some(file) = variable.get("valueFrom").part("fileKeyRef") else { continue };
            let name = file.text("volumeName");
            // Of several volumes of one name the last counts.
            match pod.spec.list("volumes").filter(|volume| volume.text("name") == name).last() {
                None => checking.not_found(file.field("volumeName"), name),
                Some(volume) if !volume.has("emptyDir") => {
                    checking.invalid(file.field("volumeName"), name, "referenced volume must be of type emptyDir");
                }
                Some(_) => {}
            }
        }
    }
}
