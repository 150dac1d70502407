//! The errors in `spec.generate`.

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::{Diagnostic, ObjectTemplate, ParameterName, ParameterType, names};
use palisade_checks::{Piece, pieces};
use palisade_kube_json::field_path::FieldPath;
use serde_json::Value as Json;

use super::{ObjectType, object_type};

/// The most templates of a profile.
const MAX_TEMPLATES: usize = 16;
/// The longest template, in bytes of JSON.
const MAX_TEMPLATE: usize = 16 * 1024;
/// The fields of `metadata` that a template may set.
const METADATA: [&str; 3] = ["name", "labels", "annotations"];
/// Kinds of Kubernetes without a namespace.
const CLUSTER_SCOPED: [(&str, &[&str]); 9] = [
    ("", &["Namespace", "Node", "PersistentVolume"]),
    (
        "admissionregistration.k8s.io",
        &[
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "ValidatingWebhookConfiguration",
        ],
    ),
    ("apiextensions.k8s.io", &["CustomResourceDefinition"]),
    ("apiregistration.k8s.io", &["APIService"]),
    ("certificates.k8s.io", &["CertificateSigningRequest"]),
    ("networking.k8s.io", &["IngressClass"]),
    ("rbac.authorization.k8s.io", &["ClusterRole", "ClusterRoleBinding"]),
    ("scheduling.k8s.io", &["PriorityClass"]),
    ("storage.k8s.io", &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"]),
];
/// Kinds that are not generated, and why.
const FORBIDDEN: [(&str, &str, &str); 4] = [
    ("", "Secret", "its data would be readable in the profile"),
    ("", "Pod", "it cannot be updated: use a workload such as a Deployment"),
    ("", "Binding", "it is a request and not an object"),
    ("authorization.k8s.io", "LocalSubjectAccessReview", "it is a request and not an object"),
];

/// The errors, each with its place.
pub(super) fn of(templates: &[ObjectTemplate], parameters: &BTreeMap<ParameterName, ParameterType>) -> Vec<Diagnostic> {
    let root = FieldPath::from("spec.generate");
    let mut found = Vec::new();
    if templates.len() > MAX_TEMPLATES {
        found.push(Diagnostic::new(
            root.clone(),
            format!("has {} templates, more than {MAX_TEMPLATES}", templates.len()),
        ));
    }
    let mut names = BTreeSet::new();
    let mut objects = BTreeMap::new();
    for (index, one) in templates.iter().enumerate() {
        let at = root.index(index);
        if !is_label(&one.name) {
            let message = format!("{:?} is not a valid name", one.name);
            found.push(Diagnostic::new(at.child("name"), message).help("use lower-case letters, digits and hyphens"));
        }
        if !names.insert(&one.name) {
            found.push(Diagnostic::new(at.child("name"), format!("{:?} is used twice", one.name)));
        }
        let before = found.len();
        of_template(one, &at.child("template"), parameters, &mut found);
        if found.len() > before || one.namespace_selector.is_some() {
            continue;
        }
        // Templates with selectors may be for different namespaces. Whether they are, each namespace shows.
        let name = one.template.get("metadata").and_then(|metadata| metadata["name"].as_str()).unwrap_or_default();
        if let Some(other) = objects.insert((object_type(&one.template), name), index) {
            let message = format!("is the name of the same object as in spec.generate[{other}]");
            let at = at.child("template").child("metadata").child("name");
            found.push(Diagnostic::new(at, message).help("use another name, or different namespaceSelectors"));
        }
    }
    found
}

fn of_template(
    one: &ObjectTemplate,
    at: &FieldPath,
    parameters: &BTreeMap<ParameterName, ParameterType>,
    found: &mut Vec<Diagnostic>,
) {
    let object = Json::Object(one.template.clone());
    let length = object.to_string().len();
    if length > MAX_TEMPLATE {
        found.push(Diagnostic::new(at.clone(), format!("has {length} bytes as JSON, more than {MAX_TEMPLATE}")));
    }
    of_kind(&object_type(&one.template), at, found);
    if one.template.contains_key("status") {
        let message = "must not be set: controllers write it";
        found.push(Diagnostic::new(at.child("status"), message).help("remove it"));
    }
    of_metadata(&object["metadata"], &at.child("metadata"), found);
    for (key, value) in one.template.iter().filter(|(key, _)| !["apiVersion", "kind"].contains(&key.as_str())) {
        of_value(value, &at.child(key), parameters, key != "metadata", found);
    }
}

fn of_kind(of: &ObjectType, at: &FieldPath, found: &mut Vec<Diagnostic>) {
    let ObjectType { api_version, kind } = of;
    for (field, value, example) in [("apiVersion", api_version, "v1"), ("kind", kind, "ResourceQuota")] {
        let valid = match field {
            "kind" => {
                value.starts_with(|c: char| c.is_ascii_uppercase()) && value.chars().all(|c| c.is_ascii_alphanumeric())
            }
            _ => value.split('/').count() <= 2 && value.split(['/', '.']).all(is_label),
        };
        if !valid {
            let message = if value.is_empty() { "is required".to_owned() } else { format!("{value:?} is not valid") };
            found.push(Diagnostic::new(at.child(field), message).help(format!("write a value such as {example}")));
        }
    }
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let kind = kind.as_str();
    let why = FORBIDDEN.iter().find(|(of, name, _)| (*of, *name) == (group, kind)).map(|(_, _, why)| *why);
    if group == names::GROUP {
        found.push(Diagnostic::new(at.child("kind"), format!("{kind} cannot be generated: Palisade reads this kind")));
    } else if let Some(why) = why {
        found.push(Diagnostic::new(at.child("kind"), format!("{kind} cannot be generated: {why}")));
    } else if CLUSTER_SCOPED.iter().any(|(of, kinds)| *of == group && kinds.contains(&kind)) {
        found.push(Diagnostic::new(at.child("kind"), format!("{kind} cannot be generated: it has no namespace")));
    }
}

fn of_metadata(metadata: &Json, at: &FieldPath, found: &mut Vec<Diagnostic>) {
    let fields = metadata.as_object().into_iter().flatten();
    for (key, _) in fields.filter(|(key, _)| !METADATA.contains(&key.as_str())) {
        let message = "must not be set in a template";
        found.push(Diagnostic::new(at.child(key), message).help("metadata may have name, labels and annotations"));
    }
    match metadata["name"].as_str() {
        None => found.push(Diagnostic::new(at.child("name"), "is required")),
        // With parameters, each namespace shows it.
        Some(name) if !name.contains('$') && !is_name(name) => {
            found.push(Diagnostic::new(at.child("name"), format!("{name:?} is not a valid name")));
        }
        Some(_) => {}
    }
    for field in ["labels", "annotations"] {
        let at = at.child(field);
        match &metadata[field] {
            Json::Null => {}
            Json::Object(fields) => {
                for (key, value) in fields {
                    let own = key == names::MANAGED_BY_LABEL
                        || key.split_once('/').is_some_and(|(prefix, _)| prefix.ends_with(names::GROUP));
                    if own {
                        found.push(Diagnostic::new(at.key(key), "must not be set: the controller sets it"));
                    }
                    if !value.is_string() {
                        found.push(
                            Diagnostic::new(at.key(key), format!("{value} is not a string")).help("write it in quotes"),
                        );
                    }
                }
            }
            _ => found.push(Diagnostic::new(at, "must be an object with strings")),
        }
    }
}

fn of_value(
    value: &Json,
    at: &FieldPath,
    parameters: &BTreeMap<ParameterName, ParameterType>,
    typed: bool,
    found: &mut Vec<Diagnostic>,
) {
    match value {
        Json::Null => found.push(Diagnostic::new(at.clone(), "must not be null").help("remove the field")),
        Json::Bool(_) | Json::Number(_) => {}
        Json::String(text) => of_string(text, at, parameters, typed, found),
        Json::Array(elements) => {
            for (index, element) in elements.iter().enumerate() {
                of_value(element, &at.index(index), parameters, typed, found);
            }
        }
        Json::Object(fields) => {
            for (key, value) in fields {
                let references = pieces(key).unwrap_or_default();
                if references
                    .iter()
                    .any(|piece| matches!(piece, Piece::Reference(name) if parameters.contains_key(*name)))
                {
                    let message = "names of fields cannot contain parameters";
                    found.push(Diagnostic::new(at.key(key), message).help("use parameters in values only"));
                }
                of_value(value, &at.child(key), parameters, typed, found);
            }
        }
    }
}

fn of_string(
    text: &str,
    at: &FieldPath,
    parameters: &BTreeMap<ParameterName, ParameterType>,
    typed: bool,
    found: &mut Vec<Diagnostic>,
) {
    let pieces = match pieces(text) {
        Ok(pieces) => pieces,
        Err(problem) => {
            found.push(Diagnostic::new(at.clone(), problem).help("write $$ for a dollar sign"));
            return;
        }
    };
    let whole = typed && matches!(pieces.as_slice(), [Piece::Reference(_)]);
    for piece in &pieces {
        let Piece::Reference(name) = piece else { continue };
        match parameters.get(*name) {
            None => {
                let help = "declare it in spec.parameters, or write $$ for a dollar sign";
                found.push(Diagnostic::new(at.clone(), format!("${name} is not a declared parameter")).help(help));
            }
            Some(ParameterType::StringList) if !whole => {
                let message = format!("${name} is a list, and cannot be part of a string");
                found.push(
                    Diagnostic::new(at.clone(), message).help(format!("write exactly ${name}, outside of metadata")),
                );
            }
            Some(_) => {}
        }
    }
}

/// Whether a text can be the name of an object: an RFC 1123 subdomain.
pub(super) fn is_name(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label)
}

/// Whether a text is an RFC 1123 label.
fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    !text.is_empty() && text.len() <= 63 && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
