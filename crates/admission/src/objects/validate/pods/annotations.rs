//! Annotations with a meaning for pods, most of them older forms of fields (`ValidatePodSpecificAnnotations` in
//! `pkg/apis/core/validation/validation.go`).

use serde_json::{Map, Value};

use super::{super::node::Node, Pod, paths, scheduling};
use crate::validation::{Checking, quote};

const MIRROR: &str = "kubernetes.io/config.mirror";
const TOLERATIONS: &str = "scheduler.alpha.kubernetes.io/tolerations";
const DELETION_COST: &str = "controller.kubernetes.io/pod-deletion-cost";
const SECCOMP_OF_POD: &str = "seccomp.security.alpha.kubernetes.io/pod";
const SECCOMP_OF_CONTAINER: &str = "container.seccomp.security.alpha.kubernetes.io/";
pub(super) const APP_ARMOR: &str = "container.apparmor.security.beta.kubernetes.io/";

fn pairs(of: Option<&Map<String, Value>>) -> impl Iterator<Item = (&str, &str)> {
    of.into_iter().flatten().map(|(key, value)| (key.as_str(), value.as_str().unwrap_or_default()))
}

/// The annotations of a pod or template at a place.
pub(super) fn check(checking: &mut Checking<'_>, metadata: &Node<'_>, path: &str, pod: &Pod<'_>) {
    let annotations = metadata.map("annotations");
    let value = |key: &str| annotations.and_then(|map| map.get(key)).and_then(Value::as_str);
    if let Some(mirror) = value(MIRROR).filter(|_| pod.spec.text("nodeName").is_empty()) {
        let text = "must set spec.nodeName if mirror pod annotation is set";
        checking.invalid(format!("{path}[{MIRROR}]"), mirror, text);
    }
    if let Some(tolerations) = value(TOLERATIONS).filter(|text| !text.is_empty()) {
        // Its decoder has texts of its own for what is not JSON; that it is refused is certain.
        match serde_json::from_str::<Value>(tolerations) {
            Ok(list @ Value::Array(_)) => {
                let object = serde_json::json!({ TOLERATIONS: list });
                scheduling::tolerations(checking, &Node::new(&object, path), TOLERATIONS);
            }
            Ok(Value::Null) => {}
            Ok(_) | Err(_) => {
                checking.unknown = Some(format!(
                    "the annotation {TOLERATIONS} is not a list of tolerations; the API server refuses it in words that are \
                     not known here"
                ));
            }
        }
    }
    if let Some(cost) = value(DELETION_COST) {
        let digits = cost.strip_prefix('-').unwrap_or(cost);
        let canonical =
            digits == "0" && !cost.starts_with('-') || digits.starts_with(|c: char| ('1'..='9').contains(&c));
        if !canonical || cost.parse::<i32>().is_err() {
            checking.invalid(format!("{path}[{DELETION_COST}]"), cost, "must be a 32bit integer");
        }
    }
    if let Some(profile) = value(SECCOMP_OF_POD) {
        seccomp(checking, &format!("{path}.{SECCOMP_OF_POD}"), profile);
    }
    for (key, profile) in pairs(annotations).filter(|(key, _)| key.starts_with(SECCOMP_OF_CONTAINER)) {
        seccomp(checking, &format!("{path}.{key}"), profile);
    }
    for (key, profile) in pairs(annotations) {
        let Some(container) = key.strip_prefix(APP_ARMOR) else { continue };
        let field = format!("{path}[{key}]");
        if !pod.containers().any(|one| one.text("name") == container) {
            checking.invalid(&field, container, "container not found");
        }
        if !matches!(profile, "" | "runtime/default" | "unconfined") && !profile.starts_with("localhost/") {
            checking.invalid(field, profile, &format!("invalid AppArmor profile name: {}", quote(profile)));
        }
    }
}

fn seccomp(checking: &mut Checking<'_>, field: &str, profile: &str) {
    match profile {
        "runtime/default" | "docker/default" | "unconfined" => {}
        _ => match profile.strip_prefix("localhost/") {
            Some(path) => paths::descending(checking, field, path),
            None => checking.invalid(field, profile, "must be a valid seccomp profile"),
        },
    }
}

/// Annotations must agree with the fields (`validateSeccompAnnotationsAndFields` and
/// `validateAppArmorAnnotationsAndFieldsMatchOnCreate`).
pub(super) fn match_fields(checking: &mut Checking<'_>, metadata: &Node<'_>, pod: &Pod<'_>) {
    let annotations = metadata.map("annotations");
    let value = |key: &str| annotations.and_then(|map| map.get(key)).and_then(Value::as_str);
    let context = pod.spec.get("securityContext");
    let same = |checking: &mut Checking<'_>, what: &str, profile: &Node<'_>, place: &str, said: &str| {
        let wanted = profile.get("localhostProfile");
        let matches = match profile.text("type") {
            "Unconfined" => said == "unconfined",
            "RuntimeDefault" => said == "runtime/default" || (what == "seccomp" && said == "docker/default"),
            "Localhost" => match said.strip_prefix("localhost/") {
                Some(path) if wanted.value.as_str() == Some(path) => true,
                Some(_) => {
                    let text = format!("{what} profile in annotation and field must match");
                    checking.forbidden(format!("{place}.localhostProfile"), &text);
                    true
                }
                None => false,
            },
            _ => true,
        };
        if !matches {
            checking.forbidden(format!("{place}.type"), &format!("{what} type in annotation and field must match"));
        }
    };
    if let (Some(profile), Some(said)) = (context.part("seccompProfile"), value(SECCOMP_OF_POD)) {
        same(checking, "seccomp", &profile, &profile.path, said);
    }
    for container in pod.containers() {
        let profile = container.get("securityContext").get("seccompProfile");
        if let (false, Some(said)) =
            (profile.value.is_null(), value(&format!("{SECCOMP_OF_CONTAINER}{}", container.text("name"))))
        {
            same(checking, "seccomp", &profile, &profile.path, said);
        }
    }
    if pod.os() == Some("windows") {
        return;
    }
    for container in pod.containers() {
        let own = container.get("securityContext").get("appArmorProfile");
        let place = own.path.clone();
        let profile = if own.value.is_null() { context.get("appArmorProfile") } else { own };
        if let (false, Some(said)) = (profile.value.is_null(), value(&format!("{APP_ARMOR}{}", container.text("name"))))
        {
            same(checking, "apparmor", &profile, &place, said);
        }
    }
}
