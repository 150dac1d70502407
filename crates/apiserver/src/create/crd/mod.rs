//! CustomResourceDefinitions (`k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation`): their names, their
//! schemas, and the rules in these, with their highest cost.
//!
//! Conversion, printer columns, selectable fields and scaling, and defaults inside of metadata are not checked.

mod cost;
mod defaults;
mod rules;
mod schema;
mod structural;

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::validation::{Checking, FieldError as Error, list, meta, names, part, text};

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

/// Checks a `CustomResourceDefinition`.
pub(super) fn definition(checking: &mut Checking<'_>, object: &Json) {
    meta::check(checking, object, names::subdomain);
    let empty = json!({});
    let spec = object.get("spec").unwrap_or(&empty);
    let (group, plural) =
        (text(spec, "group"), spec.pointer("/names/plural").and_then(Json::as_str).unwrap_or_default());
    let name = meta::name(object);
    if !name.is_empty() && name != format!("{plural}.{group}") {
        let detail = "must be spec.names.plural+\".\"+spec.group";
        checking.errors.push(Error::invalid("metadata.name", &name, detail));
    }
    let versions = list(spec, "versions");
    let schemas: Vec<_> = versions.iter().map(schema_of).collect();
    // The API server keeps a schema that all versions share in one place.
    let shared = schemas.iter().all(|schema| *schema == schemas[0]);
    let old = checking.old;
    let old_versions = old.map(|old| list(old.get("spec").unwrap_or(&empty), "versions")).unwrap_or_default();
    let mut existing = Existing::default();
    old_versions.iter().filter_map(schema_of).for_each(|schema| existing.add(schema));
    let has_status = |version: &Json| version.pointer("/subresources/status").is_some_and(|status| !status.is_null());
    for (index, (version, schema)) in versions.iter().zip(&schemas).enumerate() {
        let Some(schema) = schema else { continue };
        let (field, status) = if shared {
            ("spec.validation".to_owned(), versions.iter().any(has_status))
        } else {
            let per_version = versions.iter().any(|other| other.get("subresources") != version.get("subresources"));
            let status = if per_version { has_status(version) } else { versions.iter().any(has_status) };
            (format!("spec.versions[{index}].schema"), status)
        };
        let same = |old: &&Json| text(old, "name") == text(version, "name") && schema_of(old) == Some(*schema);
        existing.unchanged = old_versions.iter().any(|old| same(&old));
        let field = format!("{field}.openAPIV3Schema");
        validation(checking, schema, &field, status, &existing);
        if shared {
            break;
        }
    }
    approval(checking, object, group);
}

const APPROVED: &str = "api-approved.kubernetes.io";

/// What an annotation says of a group that belongs to the Kubernetes project (`apihelpers.GetAPIApprovalState`).
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

fn schema_of(version: &Json) -> Option<&Json> {
    version.pointer("/schema/openAPIV3Schema").filter(|schema| !schema.is_null())
}

/// What the definition that is updated has already.
#[derive(Debug, Default)]
struct Existing {
    rules: BTreeSet<String>,
    messages: BTreeSet<String>,
    /// The whole schema of the version.
    unchanged: bool,
}

impl Existing {
    fn add(&mut self, schema: &Json) {
        match schema {
            Json::Object(fields) => {
                for rule in list(schema, "x-kubernetes-validations") {
                    self.rules.insert(text(rule, "rule").to_owned());
                    self.messages.insert(text(rule, "messageExpression").to_owned());
                }
                fields.values().for_each(|value| self.add(value));
            }
            Json::Array(elements) => elements.iter().for_each(|element| self.add(element)),
            _ => {}
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
    let unsupported = structural::unsupported(schema);
    let mut is_structural = unsupported.is_none();
    if is_structural {
        let mut wrong = structural::check(schema, field);
        if wrong.is_empty() {
            wrong = defaults::check(checking.minor, schema, field, true);
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
    if !of.is_empty() && of != "object" {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        checking.errors.push(Error::invalid(format!("{field}.type"), of, detail));
        return;
    }
    let other = |(key, value): (&String, &Json)| is_set(value) && !AT_ROOT.iter().any(|(allowed, _)| key == allowed);
    if schema.as_object().into_iter().flatten().any(other) {
        let allowed: Vec<_> = AT_ROOT.iter().map(|(_, name)| *name).collect();
        let detail = format!(
            "only [{}] fields are allowed at the root of the schema if the status subresource is enabled",
            allowed.join(" ")
        );
        // The API server shows the whole schema, in the words of its internal type.
        checking.errors.push(Error::invalid_value(field, schema, &detail));
    }
}

/// Whether a part of an object is on.
fn flag(of: &Json, key: &str) -> bool {
    part(of, key) == Some(&Json::Bool(true))
}
