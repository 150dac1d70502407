//! Metadata and label selectors (`k8s.io/apimachinery/pkg/api/validation`, `pkg/apis/meta/v1/validation`).

use palisade_cel::Minor;
use serde_json::Value as Json;

use super::{Checking, FieldError as Error, IMMUTABLE, NOT_SHOWN, html_escaped, list, names, part, quote, shown, text};

/// The most bytes of all annotations together.
const MAX_ANNOTATIONS: usize = 256 << 10;

/// The name of an object, or one such as the API server would make for it.
pub(crate) fn name(object: &Json) -> String {
    let Some(metadata) = object.get("metadata") else { return String::new() };
    match (text(metadata, "name"), text(metadata, "generateName")) {
        ("", "") => String::new(),
        ("", prefix) => format!("{prefix}xxxxx"),
        (name, _) => name.to_owned(),
    }
}

/// Checks `metadata` of an object that is created or updated; `form` returns the errors in a name.
pub(crate) fn check(checking: &mut Checking<'_>, object: &Json, form: impl Fn(&str) -> Vec<String>) {
    let empty = Json::Null;
    let metadata = object.get("metadata").unwrap_or(&empty);
    let errors = &mut checking.errors;
    let generate = text(metadata, "generateName");
    if !generate.is_empty() {
        // What is appended may end a name that a prefix may not.
        let masked = names::masked(generate);
        errors.extend(form(&masked).iter().map(|wrong| Error::invalid("metadata.generateName", generate, wrong)));
    }
    let name = name(object);
    if name.is_empty() {
        errors.push(Error::required("metadata.name", "name or generateName is required"));
    } else {
        errors.extend(form(&name).iter().map(|wrong| Error::invalid("metadata.name", &name, wrong)));
    }
    labels(checking, metadata.get("labels"), "metadata.labels");
    annotations(checking, metadata.get("annotations"), "metadata.annotations");
    owners(checking, metadata);
    for finalizer in list(metadata, "finalizers").iter().filter_map(Json::as_str) {
        let wrong = names::qualified(checking.minor, finalizer);
        let wrong = wrong.iter().map(|wrong| Error::invalid("metadata.finalizers", finalizer, wrong));
        checking.errors.extend(wrong);
    }
    let finalizers = list(metadata, "finalizers");
    if ["orphan", "foregroundDeletion"].iter().all(|one| finalizers.iter().any(|found| found == one)) {
        let value = shown(checking.minor, &metadata["finalizers"]);
        let text = "finalizer orphan and foregroundDeletion cannot be both set";
        checking.errors.push(Error::invalid_shown("metadata.finalizers", &value, text));
    }
}

fn owners(checking: &mut Checking<'_>, metadata: &Json) {
    let owners = list(metadata, "ownerReferences");
    let mut controller: Option<String> = None;
    for (index, owner) in owners.iter().enumerate() {
        one_owner(checking, index, owner);
        if owner["controller"] != true {
            continue;
        }
        let name = format!("{}/{}", text(owner, "kind"), text(owner, "name"));
        match &controller {
            None => controller = Some(name),
            Some(first) => {
                let text = format!(
                    "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {name}"
                );
                let shown: Vec<_> = owners.iter().map(shown_owner).collect();
                let shown = format!("[{}]", shown.join(","));
                let value = if checking.minor >= Minor::V1_34 { shown.as_str() } else { NOT_SHOWN };
                checking.errors.push(Error::invalid_shown("metadata.ownerReferences", value, &text));
            }
        }
    }
}

/// An owner as Go writes it in JSON: the fields in the order of the struct.
fn shown_owner(owner: &Json) -> String {
    let required = ["apiVersion", "kind", "name", "uid"].map(|key| (key, Json::from(text(owner, key))));
    let optional = ["controller", "blockOwnerDeletion"].map(|key| (key, owner[key].clone()));
    let fields = required.into_iter().chain(optional.into_iter().filter(|(_, value)| !value.is_null()));
    let fields: Vec<_> = fields.map(|(key, value)| format!("\"{key}\":{value}")).collect();
    html_escaped(&format!("{{{}}}", fields.join(",")))
}

fn one_owner(checking: &mut Checking<'_>, index: usize, owner: &Json) {
    let field = "metadata.ownerReferences";
    let version = text(owner, "apiVersion");
    let no_version = version.rsplit('/').next().unwrap_or_default().is_empty();
    let missing = ["kind", "name", "uid"].into_iter().filter(|key| text(owner, key).is_empty());
    let empty = "must not be empty";
    if checking.minor >= Minor::V1_37 {
        let field = format!("{field}[{index}]");
        if version.is_empty() {
            checking.errors.push(Error::required(format!("{field}.apiVersion"), empty));
        } else if no_version || version.matches('/').count() > 1 {
            let text = "must be <group>/<version> or <version>";
            checking.errors.push(Error::invalid(format!("{field}.apiVersion"), version, text));
        }
        checking.errors.extend(missing.map(|key| Error::required(format!("{field}.{key}"), empty)));
    } else {
        if no_version {
            checking.errors.push(Error::invalid(format!("{field}.apiVersion"), version, "version must not be empty"));
        }
        for key in missing {
            let text = if checking.minor < Minor::V1_34 { format!("{key} {empty}") } else { empty.to_owned() };
            checking.errors.push(Error::invalid(format!("{field}.{key}"), "", &text));
        }
    }
    // `BannedOwners`
    if (version, text(owner, "kind")) == ("v1", "Event") {
        let value = if checking.minor >= Minor::V1_34 { shown_owner(owner) } else { NOT_SHOWN.to_owned() };
        checking.errors.push(Error::invalid_shown(field, &value, "/v1, Kind=Event is disallowed from being an owner"));
    }
}

/// `ValidateObjectMetaAccessorUpdate` of apimachinery `pkg/api/validation/objectmeta.go`.
pub(crate) fn update(checking: &mut Checking<'_>, old: &Json, object: &Json) {
    let (now, before) = (&object["metadata"], &old["metadata"]);
    if !before["deletionTimestamp"].is_null() {
        let known = list(before, "finalizers");
        let mut added: Vec<_> =
            list(now, "finalizers").iter().filter(|one| !known.contains(one)).filter_map(Json::as_str).collect();
        added.sort_unstable();
        added.dedup();
        if !added.is_empty() {
            let added: Vec<_> = added.into_iter().map(quote).collect();
            let text = format!(
                "no new finalizers can be added if the object is being deleted, found new finalizers []string{{{}}}",
                added.join(", ")
            );
            checking.errors.push(Error::forbidden("metadata.finalizers", &text));
        }
    }
    for key in ["name", "namespace", "uid"] {
        let (now, before) = (text(now, key), text(before, key));
        // An update that does not say the uid means the one that there is (`rest.BeforeUpdate`).
        if now != before && !(key == "uid" && (before.is_empty() || now.is_empty())) {
            checking.errors.push(Error::invalid(format!("metadata.{key}"), now, IMMUTABLE));
        }
    }
    for key in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
        if now[key] != before[key] {
            let field = format!("metadata.{key}");
            checking.errors.push(match &now[key] {
                Json::String(text) if checking.minor >= Minor::V1_34 => Error::invalid(field, text, IMMUTABLE),
                Json::String(_) => Error::invalid_shown(field, NOT_SHOWN, IMMUTABLE),
                other => Error::invalid_shown(field, &shown(checking.minor, other), IMMUTABLE),
            });
        }
    }
}

/// Checks labels. The API server reports them in any order, this in that of their keys.
pub(crate) fn labels(checking: &mut Checking<'_>, labels: Option<&Json>, field: &str) {
    for (key, value) in labels.and_then(Json::as_object).into_iter().flatten() {
        let minor = checking.minor;
        checking.errors.extend(names::qualified(minor, key).iter().map(|wrong| Error::invalid(field, key, wrong)));
        let value = value.as_str().unwrap_or_default();
        checking
            .errors
            .extend(names::label_value(checking.minor, value).iter().map(|wrong| Error::invalid(field, value, wrong)));
    }
}

/// Checks annotations.
pub(crate) fn annotations(checking: &mut Checking<'_>, annotations: Option<&Json>, field: &str) {
    let mut size = 0;
    for (key, value) in annotations.and_then(Json::as_object).into_iter().flatten() {
        let wrong = names::qualified(checking.minor, &key.to_lowercase());
        checking.errors.extend(wrong.iter().map(|wrong| Error::invalid(field, key, wrong)));
        size += key.len() + value.as_str().map_or(0, str::len);
    }
    if size > MAX_ANNOTATIONS {
        checking.errors.push(Error::too_long_in(checking.minor, field, MAX_ANNOTATIONS));
    }
}

/// Checks a label selector.
pub(crate) fn selector(checking: &mut Checking<'_>, selector: &Json, field: &str) {
    labels(checking, selector.get("matchLabels"), &format!("{field}.matchLabels"));
    for (index, requirement) in list(selector, "matchExpressions").iter().enumerate() {
        let field = format!("{field}.matchExpressions[{index}]");
        let operator = text(requirement, "operator");
        let values = list(requirement, "values");
        match operator {
            "In" | "NotIn" if values.is_empty() => checking.errors.push(Error::required(
                format!("{field}.values"),
                "must be specified when `operator` is 'In' or 'NotIn'",
            )),
            "Exists" | "DoesNotExist" if !values.is_empty() => checking.errors.push(Error::forbidden(
                format!("{field}.values"),
                "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
            )),
            "In" | "NotIn" | "Exists" | "DoesNotExist" => {}
            _ => {
                let value = operator.into();
                let detail = "not a valid selector operator";
                checking.errors.push(Error::invalid_value(checking.minor, format!("{field}.operator"), &value, detail));
            }
        }
        let key = text(requirement, "key");
        let wrong = names::qualified(checking.minor, key);
        checking.errors.extend(wrong.iter().map(|wrong| Error::invalid(format!("{field}.key"), key, wrong)));
        for (index, value) in values.iter().filter_map(Json::as_str).enumerate() {
            let wrong = names::label_value(checking.minor, value);
            let errors = wrong.iter().map(|wrong| Error::invalid(format!("{field}.values[{index}]"), value, wrong));
            checking.errors.extend(errors);
        }
    }
}

/// Checks a label selector that must be there; defaulting sees to that.
pub(crate) fn selector_of(checking: &mut Checking<'_>, of: &Json, key: &str, field: &str) {
    let field = format!("{field}.{key}");
    match part(of, key) {
        Some(found) => selector(checking, found, &field),
        None => checking.errors.push(Error::required(field, "")),
    }
}
