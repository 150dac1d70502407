//! CustomResourceDefinitions (`k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`): their names, their
//! schemas, and the rules in these, with their highest cost.
//!
//! Defaults inside of metadata are not checked.

mod cost;
mod defaults;
mod existing;
mod parts;
mod rules;
mod schema;
mod spec;
mod structural;

use palisade_cel::Minor;
use serde_json::{Value as Json, json};

use self::{defaults::UNPRUNED, existing::Existing, parts::Parts};
use crate::validation::{Checking, FieldError as Error, NOT_SHOWN, any_schema, list, meta, names, part, shown, text};

/// The fields of a schema, by the names that errors have, that its root may have if there is a subresource `status`.
const AT_ROOT: &[(&str, &str)] = &[
    ("description", "Description"),
    ("type", "Type"),
    ("format", "Format"),
    ("title", "Title"),
    ("maximum", "Maximum"),
    ("exclusiveMaximum", "ExclusiveMaximum"),
    ("minimum", "Minimum"),
    ("exclusiveMinimum", "ExclusiveMinimum"),
    ("maxLength", "MaxLength"),
    ("minLength", "MinLength"),
    ("pattern", "Pattern"),
    ("maxItems", "MaxItems"),
    ("minItems", "MinItems"),
    ("uniqueItems", "UniqueItems"),
    ("multipleOf", "MultipleOf"),
    ("required", "Required"),
    ("items", "Items"),
    ("properties", "Properties"),
    ("externalDocs", "ExternalDocs"),
    ("example", "Example"),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields"),
    ("x-kubernetes-validations", "XValidations"),
];

/// The other fields of a schema. Go drops what is none of either.
const ELSEWHERE: [&str; 22] = [
    "id",
    "$schema",
    "$ref",
    "nullable",
    "default",
    "enum",
    "allOf",
    "oneOf",
    "anyOf",
    "not",
    "additionalProperties",
    "patternProperties",
    "dependencies",
    "additionalItems",
    "definitions",
    "maxProperties",
    "minProperties",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-int-or-string",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// The fields of a schema that are booleans in Go and no pointers: false is the same as an omitted field.
const FLAGS: [&str; 6] = [
    "nullable",
    "uniqueItems",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "x-kubernetes-int-or-string",
    "x-kubernetes-embedded-resource",
];

/// Whether Go drops a field of a schema when it decodes it.
fn is_dropped(key: &str) -> bool {
    !ELSEWHERE.contains(&key) && AT_ROOT.iter().all(|(known, _)| *known != key)
}

/// Checks a `CustomResourceDefinition` (`ValidateCustomResourceDefinition`, `ValidateCustomResourceDefinitionUpdate`).
pub(super) fn definition(checking: &mut Checking<'_>, object: &Json) {
    let object = &defaulted(object);
    let old = checking.old.map(defaulted);
    let spec = object.get("spec").unwrap_or(&Json::Null);
    let required = format!("{}.{}", text(spec.get("names").unwrap_or(&Json::Null), "plural"), text(spec, "group"));
    match &old {
        Some(old) => {
            meta::check(checking, object, |_| Vec::new());
            // An update compares names, and does not look at finalizers.
            let of_creation = |error: &Error| {
                error.field == "metadata.finalizers"
                    || error.field == "metadata.name" && error.body.starts_with("Required value")
            };
            checking.errors.retain(|error| !of_creation(error));
            meta::update(checking, old, object);
        }
        None => meta::check(checking, object, |name| {
            let mut wrong = names::subdomain(name);
            if name != required {
                wrong.push("must be spec.names.plural+\".\"+spec.group".to_owned());
            }
            wrong
        }),
    }
    let existing = old.as_ref().map_or_else(Existing::default, |old| Existing::of(checking.minor, old, object));
    let parts = Parts::new(spec);
    spec::check(checking, &parts, &existing);
    if let Some(old) = &old {
        spec::immutable(checking, old, object);
    }
    stored_versions(checking, old.as_ref(), spec);
    approval(checking, object, text(spec, "group"));
    if flag(spec, "preserveUnknownFields")
        && !old.as_ref().is_some_and(|old| flag(&old["spec"], "preserveUnknownFields"))
    {
        let detail = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in \
                      spec.versions[*].schema instead";
        checking.errors.push(Error::invalid_value(
            checking.minor,
            "spec.preserveUnknownFields",
            &Json::Bool(true),
            detail,
        ));
    }
}

/// Why a schema within the schemas of a definition cannot be decoded (`JSONSchemaPropsOrBool`, `JSONSchemaPropsOrArray` and
/// `JSONSchemaPropsOrStringArray` in `pkg/apis/apiextensions/v1/marshal.go`).
pub(super) fn undecodable(minor: Minor, object: &Json) -> Option<String> {
    let found = std::cell::RefCell::new(None);
    let is_wrong = |schema: &Json| {
        *found.borrow_mut() = within(minor, schema);
        found.borrow().is_some()
    };
    let _ = Parts::new(object.get("spec")?).schemas().flatten().any(|schema| any_schema(schema, &is_wrong));
    found.into_inner()
}

fn within(minor: Minor, schema: &Json) -> Option<String> {
    for key in ["items", "additionalProperties", "additionalItems"] {
        let decoded = match (key, part(schema, key)) {
            (_, Some(inner @ Json::Object(_))) => crate::objects::undecodable_schema(minor, inner),
            // Go ignores what is neither a schema nor a list of schemas.
            ("items", _) | (_, None | Some(Json::Bool(_))) => None,
            (_, Some(_)) => Some("boolean or JSON schema expected".to_owned()),
        };
        if decoded.is_some() {
            return decoded;
        }
    }
    let several = list(schema, "items")
        .iter()
        .chain(part(schema, "dependencies").and_then(Json::as_object).into_iter().flat_map(|of| of.values()));
    several.filter(|inner| inner.is_object()).find_map(|inner| crate::objects::undecodable_schema(minor, inner))
}

/// With defaults (`pkg/apis/apiextensions/v1/defaults.go`).
fn defaulted(object: &Json) -> Json {
    let mut object = object.clone();
    let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) else { return object };
    if let Some(names) = spec.entry("names").or_insert_with(|| json!({})).as_object_mut() {
        let kind = names.get("kind").and_then(Json::as_str).unwrap_or_default().to_owned();
        let is_empty = |names: &serde_json::Map<String, Json>, key: &str| {
            names.get(key).and_then(Json::as_str).unwrap_or_default().is_empty()
        };
        if !kind.is_empty() && is_empty(names, "singular") {
            names.insert("singular".to_owned(), kind.to_lowercase().into());
        }
        if !kind.is_empty() && is_empty(names, "listKind") {
            names.insert("listKind".to_owned(), format!("{kind}List").into());
        }
    }
    if part(&Json::Object(spec.clone()), "conversion").is_none() {
        spec.insert("conversion".to_owned(), json!({"strategy": "None"}));
    }
    for version in spec.get_mut("versions").and_then(Json::as_array_mut).into_iter().flatten() {
        version.pointer_mut("/schema/openAPIV3Schema").into_iter().for_each(decoded);
    }
    object
}

/// Removes from a schema the fields that Go drops when it decodes it.
fn decoded(schema: &mut Json) {
    let Some(fields) = schema.as_object_mut() else { return };
    fields.retain(|key, _| !is_dropped(key));
    for (key, value) in fields {
        match (key.as_str(), value) {
            ("items" | "not" | "additionalProperties" | "additionalItems", value @ Json::Object(_)) => decoded(value),
            ("items" | "allOf" | "anyOf" | "oneOf", Json::Array(schemas)) => schemas.iter_mut().for_each(decoded),
            ("properties" | "patternProperties" | "definitions" | "dependencies", Json::Object(schemas)) => {
                schemas.values_mut().for_each(decoded);
            }
            _ => {}
        }
    }
}

/// The versions that objects are stored in (`ValidateCustomResourceDefinitionStoredVersions`): those that were stored,
/// and the one that is now.
fn stored_versions(checking: &mut Checking<'_>, old: Option<&Json>, spec: &Json) {
    let versions = list(spec, "versions");
    let storage = |versions: &[Json]| {
        versions.iter().find(|version| flag(version, "storage")).map(|version| text(version, "name").to_owned())
    };
    let mut stored: Vec<String> = Vec::new();
    if let Some(old) = old {
        let known = old.pointer("/status/storedVersions").and_then(Json::as_array);
        stored.extend(known.into_iter().flatten().filter_map(Json::as_str).map(str::to_owned));
        if stored.is_empty() {
            stored.extend(storage(list(&old["spec"], "versions")));
        }
        spec::names(checking, old.pointer("/status/acceptedNames").unwrap_or(&Json::Null), "status.acceptedNames");
    }
    stored.extend(storage(versions).filter(|one| !stored.contains(one)));
    let field = "status.storedVersions";
    if stored.is_empty() {
        let none = if checking.minor >= Minor::V1_34 { "null" } else { "[]string(nil)" };
        checking.errors.push(Error::invalid_shown(field, none, "must have at least one stored version"));
        return;
    }
    let shown = shown(checking.minor, &stored.clone().into());
    for version in versions.iter().filter(|version| flag(version, "storage")) {
        let name = text(version, "name");
        if !stored.iter().any(|stored| stored == name) {
            let detail = format!("must have the storage version {name}");
            checking.errors.push(Error::invalid_shown(field, &shown, &detail));
        }
    }
    for (index, stored) in stored.iter().enumerate() {
        if versions.iter().all(|version| text(version, "name") != stored) {
            let detail = format!(
                "missing from spec.versions; {stored} was previously a storage version, and must remain in \
                 spec.versions until a storage migration ensures no data remains persisted in {stored} and removes \
                 {stored} from status.storedVersions"
            );
            checking.errors.push(Error::invalid(format!("{field}[{index}]"), stored, &detail));
        }
    }
}

const APPROVED: &str = "api-approved.kubernetes.io";

/// The state of the annotation that approves a group of the Kubernetes project (`apihelpers.GetAPIApprovalState`).
#[derive(PartialEq, Eq)]
enum Approval {
    Missing,
    Given,
    Invalid,
}

fn approval_of(object: &Json) -> Approval {
    let annotations = object.pointer("/metadata/annotations").unwrap_or(&Json::Null);
    let said = text(annotations, APPROVED);
    let is_url = said.split_once("://").is_some_and(|(scheme, rest)| {
        let host = rest.split(['/', '?']).next().unwrap_or_default();
        let host = host.rsplit('@').next().unwrap_or_default();
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.bytes().all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
            && !host.is_empty()
            && !rest.contains(|c: char| c.is_ascii_control() || c == ' ')
    });
    match said {
        "" => Approval::Missing,
        _ if said.starts_with("unapproved") || is_url => Approval::Given,
        _ => Approval::Invalid,
    }
}

/// `validateAPIApproval`.
fn approval(checking: &mut Checking<'_>, object: &Json, group: &str) {
    let is_protected = ["k8s.io", "kubernetes.io"]
        .iter()
        .any(|suffix| group.strip_suffix(suffix).is_some_and(|before| before.is_empty() || before.ends_with('.')));
    let state = approval_of(object);
    if !is_protected || checking.old.is_some_and(|old| approval_of(old) == state) {
        return;
    }
    let field = format!("metadata.annotations[{APPROVED}]");
    let need = format!("protected groups must have approval annotation \"{APPROVED}\"");
    let see = "see https://github.com/kubernetes/enhancements/pull/1111";
    match state {
        Approval::Given => {}
        Approval::Missing => checking.errors.push(Error::required(field, &format!("{need}, {see}"))),
        Approval::Invalid => {
            let annotations = object.pointer("/metadata/annotations").unwrap_or(&Json::Null);
            let detail = format!("{need} with either a URL or a reason starting with \"unapproved\", {see}");
            checking.errors.push(Error::invalid(field, text(annotations, APPROVED), &detail));
        }
    }
}

/// Checks the schema of a version (`validateCustomResourceDefinitionValidation`).
fn validation(checking: &mut Checking<'_>, schema: &Json, field: &str, status: bool, existing: &Existing) {
    let before = checking.errors.len();
    if status {
        at_root(checking, schema, field);
    }
    if schema.get("nullable") == Some(&Json::Bool(true)) {
        checking.errors.push(Error::forbidden(format!("{field}.nullable"), "nullable cannot be true at the root"));
    }
    let unsupported = structural::unsupported(schema).filter(|_| existing.structural);
    let mut is_structural = unsupported.is_none() && existing.structural;
    if is_structural {
        let mut wrong = structural::check(checking.minor, schema, field);
        if wrong.is_empty() {
            wrong = defaults::check(checking.minor, schema, field, true);
            wrong.retain(|error| existing.pruned || !error.body.ends_with(UNPRUNED));
        }
        is_structural = wrong.is_empty();
        checking.errors.extend(wrong);
    }
    let mut walk = schema::Walk::new(checking, existing);
    let found = walk.root(schema, field, is_structural);
    let costs = walk.into_costs();
    checking.errors.extend(found);
    if let Some(message) = unsupported.filter(|_| checking.errors.len() == before) {
        checking.errors.push(Error::invalid(field, "", message));
    }
    if is_structural {
        checking.errors.extend(costs.errors(field));
    }
}

/// The schema of the status is taken out of a schema, so that there must not be much around it.
fn at_root(checking: &mut Checking<'_>, schema: &Json, field: &str) {
    let is_set = |value: &Json| match value {
        Json::Null | Json::Bool(false) => false,
        Json::String(text) => !text.is_empty(),
        _ => true,
    };
    let of = text(schema, "type");
    // The first field that is wrong is reported, in the order of Go's fields.
    let before_type = ["id", "$schema", "$ref"].iter().any(|key| part(schema, key).is_some_and(is_set));
    if !of.is_empty() && of != "object" && !before_type {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        checking.errors.push(Error::invalid(format!("{field}.type"), of, detail));
        return;
    }
    if ELSEWHERE.iter().any(|key| part(schema, key).is_some_and(is_set)) {
        let allowed: Vec<_> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            allowed.join(" ")
        );
        // The API server shows the whole schema, in the words of its internal type.
        checking.errors.push(Error::invalid_shown(field, NOT_SHOWN, &detail));
    }
}

/// Whether a part of an object is on.
fn flag(of: &Json, key: &str) -> bool {
    part(of, key) == Some(&Json::Bool(true))
}
