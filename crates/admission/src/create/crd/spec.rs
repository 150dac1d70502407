//! The validation of a CRD outside of its schemas (`validateCustomResourceDefinitionSpec`).

use std::collections::BTreeSet;

use palisade_cel::Minor;
use serde_json::{Value as Json, json};

use super::{
    existing::{Existing, MAX_SELECTABLE, REVIEWS},
    flag,
    parts::{Parts, schema_of},
    structural, validation,
};
use crate::{
    create::webhooks,
    validation::{
        Checking, FieldError as Error, IMMUTABLE, NOT_SHOWN, any_schema, list, names as forms, part, selectable_field,
        shown, text,
    },
};

const COLUMN_TYPES: &str = "boolean,date,integer,number,string";
const COLUMN_FORMATS: &str = "byte,date,date-time,double,float,int32,int64,password";

pub(super) fn check(checking: &mut Checking<'_>, parts: &Parts<'_>, existing: &Existing) {
    let spec = parts.spec;
    group(checking, text(spec, "group"));
    one_of(checking, "spec.scope", text(spec, "scope"), &["Cluster", "Namespaced"]);
    schemas(checking, parts, existing);
    let preserves = flag(spec, "preserveUnknownFields");
    let has_default = |of: &Json| any_schema(of, &|of| part(of, "default").is_some());
    if preserves && parts.schemas().flatten().any(has_default) {
        let detail = "must be false in order to use defaults in the schema";
        checking.errors.push(Error::invalid_value(
            checking.minor,
            "spec.preserveUnknownFields",
            &Json::Bool(true),
            detail,
        ));
    }
    let mut existing = existing.clone();
    existing.structural |= Existing::requires_structure(spec);
    for (index, version) in parts.versions.iter().enumerate() {
        self::version(checking, parts, index, version, &mut existing);
    }
    unique(checking, parts);
    if let Some(first) = parts.versions.first().map(|version| text(version, "name")).filter(|name| !name.is_empty()) {
        labelled(checking, "spec.version", first, "");
    }
    let none = json!({});
    let of = part(spec, "names").unwrap_or(&none);
    for key in ["plural", "singular", "kind", "listKind"] {
        if text(of, key).is_empty() {
            checking.errors.push(Error::required(format!("spec.names.{key}"), ""));
        }
    }
    names(checking, of, "spec.names");
    if let Some((schema, field)) = parts.shared("schema") {
        existing.at_version(parts.versions.first().map_or("", |version| text(version, "name")));
        if let Some(schema) = part(schema, "openAPIV3Schema") {
            validation(checking, schema, &format!("{field}.openAPIV3Schema"), parts.any_has_status(), &existing);
        }
    }
    if let Some((of, field)) = parts.shared("subresources") {
        scale(checking, of, &field);
    }
    if let Some((of, field)) = parts.shared("additionalPrinterColumns") {
        columns(checking, of, &field);
    }
    if let Some((of, field)) = parts.shared("selectableFields") {
        let schema = parts.shared("schema").map(|(schema, _)| part(schema, "openAPIV3Schema"));
        selectable(checking, of, &field, schema, (None, &existing));
    }
    conversion(checking, spec, &existing);
}

/// Fields that may not change once objects of the kind are stored.
pub(super) fn immutable(checking: &mut Checking<'_>, old: &Json, new: &Json) {
    let existing = Existing::of(checking.minor, old, new);
    let kept: &[&str] = if existing.established { &["scope", "names.kind"] } else { &[] };
    for path in kept.iter().chain(&["group", "names.plural"]) {
        let pointer = format!("/spec/{}", path.replace('.', "/"));
        let of = |object: &Json| object.pointer(&pointer).and_then(Json::as_str).unwrap_or_default().to_owned();
        let (before, now) = (of(old), of(new));
        if before != now {
            checking.errors.push(Error::invalid(format!("spec.{path}"), &now, IMMUTABLE));
        }
    }
}

fn group(checking: &mut Checking<'_>, group: &str) {
    let wrong = forms::subdomain(group);
    let field = "spec.group";
    checking.errors.extend(if group.is_empty() {
        Some(Error::required(field, ""))
    } else if !wrong.is_empty() {
        Some(Error::invalid(field, group, &wrong.join(",")))
    } else if !group.contains('.') {
        Some(Error::invalid(field, group, "should be a domain with at least one dot"))
    } else {
        None
    });
}

fn one_of(checking: &mut Checking<'_>, field: &str, found: &str, known: &[&str]) {
    if found.is_empty() {
        checking.errors.push(Error::required(field, ""));
    } else if !known.contains(&found) {
        checking.errors.push(Error::not_supported(checking.minor, field, found, known));
    }
}

/// Each version has a schema.
fn schemas(checking: &mut Checking<'_>, parts: &Parts<'_>, existing: &Existing) {
    if parts.shared("schema").is_some_and(|(schema, _)| part(schema, "openAPIV3Schema").is_some()) {
        return;
    }
    let preserves = flag(parts.spec, "preserveUnknownFields");
    for (index, version) in parts.versions.iter().enumerate() {
        let detail = match (existing.schemas, checking.minor) {
            (true, Minor::V1_33) => "schemas are required",
            (true, _) => "",
            (false, _) if !preserves && flag(version, "served") => "because otherwise all fields are pruned",
            (false, _) => continue,
        };
        if schema_of(version).is_none() || parts.shared("schema").is_some() {
            checking.errors.push(Error::required(format!("spec.versions[{index}].schema.openAPIV3Schema"), detail));
        }
    }
}

/// Checks the fields of one version.
fn version(checking: &mut Checking<'_>, parts: &Parts<'_>, index: usize, version: &Json, existing: &mut Existing) {
    let at = format!("spec.versions[{index}]");
    let name = text(version, "name");
    labelled(checking, &format!("{at}.name"), name, "");
    deprecation(checking, version, &format!("{at}.deprecationWarning"));
    existing.at_version(name);
    let own = parts.own(index, "schema").map(|(schema, _)| part(schema, "openAPIV3Schema"));
    if let Some(schema) = own.flatten() {
        let status = parts.has_status(version.get("name").unwrap_or(&Json::Null));
        validation(checking, schema, &format!("{at}.schema.openAPIV3Schema"), status, existing);
    }
    if let Some((of, field)) = parts.own(index, "subresources") {
        scale(checking, of, &field);
    }
    if let Some((of, field)) = parts.own(index, "additionalPrinterColumns") {
        columns(checking, of, &field);
    }
    if let Some((of, field)) = parts.own(index, "selectableFields") {
        selectable(checking, of, &field, own, (Some(name), existing));
    }
}

/// The names of versions, and the one that objects are stored in.
fn unique(checking: &mut Checking<'_>, parts: &Parts<'_>) {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    if !parts.versions.iter().all(|version| seen.insert(text(version, "name"))) {
        wrong.push("must contain unique version names");
    }
    if parts.versions.iter().filter(|version| flag(version, "storage")).count() != 1 {
        wrong.push("must have exactly one version marked as storage version");
    }
    if wrong.is_empty() {
        return;
    }
    let shown = shown_versions(checking.minor, parts);
    checking.errors.extend(wrong.into_iter().map(|detail| Error::invalid_shown("spec.versions", &shown, detail)));
}

/// The versions in the words of the API server's own type, of which those of schemas are not known here.
fn shown_versions(minor: Minor, parts: &Parts<'_>) -> String {
    let is_plain = (0..parts.versions.len()).all(|index| {
        ["schema", "subresources", "additionalPrinterColumns", "selectableFields"]
            .iter()
            .all(|key| parts.own(index, key).is_none())
    });
    if parts.versions.is_empty() && minor >= Minor::V1_34 {
        return if parts.spec.get("versions").is_some_and(Json::is_array) { "[]" } else { "null" }.to_owned();
    }
    if !is_plain || minor < Minor::V1_34 {
        return NOT_SHOWN.to_owned();
    }
    let versions = parts.versions.iter().map(|version| {
        let warning = part(version, "deprecationWarning").map_or_else(|| "null".to_owned(), Json::to_string);
        crate::validation::html_escaped(&format!(
            "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{warning},\"Schema\":null,\
             \"Subresources\":null,\"AdditionalPrinterColumns\":null,\"SelectableFields\":null}}",
            Json::from(text(version, "name")),
            flag(version, "served"),
            flag(version, "storage"),
            flag(version, "deprecated"),
        ))
    });
    format!("[{}]", versions.collect::<Vec<_>>().join(","))
}

fn labelled(checking: &mut Checking<'_>, field: &str, value: &str, prefix: &str) {
    let wrong = forms::label_1035(if prefix.is_empty() { value } else { "" });
    let wrong = if prefix.is_empty() { wrong } else { forms::label_1035(&value.to_lowercase()) };
    if !wrong.is_empty() {
        checking.errors.push(Error::invalid(field, value, &format!("{prefix}{}", wrong.join(","))));
    }
}

/// `ValidateCustomResourceDefinitionNames`
pub(super) fn names(checking: &mut Checking<'_>, names: &Json, field: &str) {
    const MIXED: &str = "may have mixed case, but should otherwise match: ";
    for (key, prefix) in [("plural", ""), ("singular", ""), ("kind", MIXED), ("listKind", MIXED)] {
        let name = text(names, key);
        if !name.is_empty() {
            labelled(checking, &format!("{field}.{key}"), name, prefix);
        }
    }
    let each = |checking: &mut Checking<'_>, key: &str| {
        for (index, name) in list(names, key).iter().enumerate() {
            labelled(checking, &format!("{field}.{key}[{index}]"), name.as_str().unwrap_or_default(), "");
        }
    };
    each(checking, "shortNames");
    let (kind, list_kind) = (text(names, "kind"), text(names, "listKind"));
    if !kind.is_empty() && kind == list_kind {
        let detail = "kind and listKind may not be the same";
        checking.errors.push(Error::invalid(format!("{field}.listKind"), list_kind, detail));
    }
    each(checking, "categories");
}

fn deprecation(checking: &mut Checking<'_>, version: &Json, field: &str) {
    let Some(warning) = part(version, "deprecationWarning").and_then(Json::as_str) else { return };
    // The value is a pointer to a string: since 1.34 it is printed as JSON.
    let shown = crate::validation::shown(checking.minor, &Json::from(warning));
    let mut add = |detail: &str| checking.errors.push(Error::invalid_shown(field, &shown, detail));
    if !flag(version, "deprecated") {
        return add("can only be set for deprecated versions");
    }
    if warning.len() > 256 {
        add("must be <= 256 characters long");
    }
    if warning.is_empty() {
        add("must not be an empty string");
    }
    if let Some((at, _)) = warning.char_indices().find(|(_, c)| !palisade_cel::is_printable(*c)) {
        add(&format!("must only contain printable UTF-8 characters; non-printable character found at index {at}"));
    }
}

/// `ValidateCustomResourceDefinitionSubresources`
fn scale(checking: &mut Checking<'_>, of: &Json, field: &str) {
    let Some(scale) = part(of, "scale") else { return };
    for (key, below, detail) in [
        ("specReplicasPath", &[".spec."][..], "should be a json path under .spec"),
        ("statusReplicasPath", &[".status."][..], "should be a json path under .status"),
        ("labelSelectorPath", &[".spec.", ".status."][..], "should be a json path under either .spec or .status"),
    ] {
        let at = format!("{field}.scale.{key}");
        match text(scale, key) {
            "" if key == "labelSelectorPath" => {}
            "" => checking.errors.push(Error::required(at, "")),
            path if !path.starts_with('.') => simple_path(checking, path, &at),
            path if below.iter().all(|below| !path.starts_with(below)) => {
                checking.errors.push(Error::invalid(at, path, detail));
            }
            _ => {}
        }
    }
}

fn simple_path(checking: &mut Checking<'_>, path: &str, field: &str) {
    if !path.starts_with('.') {
        checking.errors.push(Error::invalid(field, path, "must be a simple json path starting with ."));
    }
}

/// `ValidateCustomResourceColumnDefinition`
fn columns(checking: &mut Checking<'_>, of: &Json, field: &str) {
    for (index, column) in of.as_array().into_iter().flatten().enumerate() {
        let at = |key: &str| format!("{field}[{index}].{key}");
        if text(column, "name").is_empty() {
            checking.errors.push(Error::required(at("name"), ""));
        }
        let must = format!("must be one of {COLUMN_TYPES}");
        match text(column, "type") {
            "" => checking.errors.push(Error::required(at("type"), &must)),
            of if !COLUMN_TYPES.split(',').any(|known| known == of) => {
                checking.errors.push(Error::invalid(at("type"), of, &must));
            }
            _ => {}
        }
        let format = text(column, "format");
        if !format.is_empty() && !COLUMN_FORMATS.split(',').any(|known| known == format) {
            let detail = format!("must be one of {COLUMN_FORMATS}");
            checking.errors.push(Error::invalid(at("format"), format, &detail));
        }
        match text(column, "jsonPath") {
            "" => checking.errors.push(Error::required(at("JSONPath"), "")),
            path => simple_path(checking, path, &at("JSONPath")),
        }
    }
}

/// `ValidateCustomResourceSelectableFields`. `schema` is none where there is no place for one.
#[expect(clippy::option_option, reason = "a place for a schema, and the schema")]
fn selectable(
    checking: &mut Checking<'_>,
    of: &Json,
    field: &str,
    schema: Option<Option<&Json>>,
    (version, existing): (Option<&str>, &Existing),
) {
    let fields = of.as_array().map(Vec::as_slice).unwrap_or_default();
    if fields.is_empty() {
        return;
    }
    let schema = match (schema, version) {
        (Some(Some(schema)), _) => schema,
        // The API server's own code ends in a panic.
        (Some(None), None) => {
            checking.unknown.get_or_insert_with(|| format!("{field}: the API server fails without a schema"));
            return;
        }
        (_, version) => {
            let what = if version.is_some() {
                "`version.schema.openAPIV3Schema` is not included"
            } else {
                "validations.schema is included"
            };
            let detail = if checking.minor <= Minor::V1_33 {
                format!("selectableFields may only be set when {}", what.replace('`', ""))
            } else {
                format!("may only be set when {what}")
            };
            checking.errors.push(Error::invalid(field, "", &detail));
            return;
        }
    };
    if structural::unsupported(schema).is_some() {
        checking.unknown.get_or_insert_with(|| format!("{field}: the API server fails with such a schema"));
        return;
    }
    let mut seen = BTreeSet::new();
    for (index, one) in fields.iter().enumerate() {
        let at = format!("{field}[{index}].jsonPath");
        let path = text(one, "jsonPath");
        if path.is_empty() {
            checking.errors.push(Error::required(at, ""));
            continue;
        }
        match selectable_field(path, schema) {
            Err(why) => {
                checking.errors.push(Error::invalid(at, path, &format!("is an invalid path: {why}")));
            }
            Ok((name, found)) => {
                if name.split(['.', '[']).next() == Some("metadata") {
                    checking.errors.push(Error::invalid(&at, path, "must not point to fields in metadata"));
                }
                if !["string", "boolean", "integer"].contains(&text(found, "type")) {
                    let detail = "must point to a field of type string, boolean or integer. Enum string fields and \
                                  strings with formats are allowed.";
                    checking.errors.push(Error::invalid(&at, path, detail));
                }
                if !seen.insert(name) {
                    checking.errors.push(Error::duplicate(at, path));
                }
            }
        }
    }
    if seen.len() > MAX_SELECTABLE && !existing.may_have_too_many(version) {
        checking.errors.push(Error::too_many(field, seen.len(), MAX_SELECTABLE));
    }
}

/// `validateCustomResourceConversion`
fn conversion(checking: &mut Checking<'_>, spec: &Json, existing: &Existing) {
    let field = "spec.conversion";
    let Some(conversion) = part(spec, "conversion") else { return };
    let strategy = text(conversion, "strategy");
    if strategy != "None" && flag(spec, "preserveUnknownFields") {
        let detail = "must be None if spec.preserveUnknownFields is true";
        checking.errors.push(Error::invalid(format!("{field}.strategy"), strategy, detail));
    }
    one_of(checking, &format!("{field}.strategy"), strategy, &["None", "Webhook"]);
    let webhook = part(conversion, "webhook");
    let client = webhook.and_then(|webhook| part(webhook, "clientConfig"));
    let reviews = webhook.map(|webhook| list(webhook, "conversionReviewVersions")).unwrap_or_default();
    let (at_client, at_reviews) = (format!("{field}.webhookClientConfig"), format!("{field}.conversionReviewVersions"));
    if strategy != "Webhook" {
        let detail = "should not be set when strategy is not set to Webhook";
        let set = [(client.is_some(), at_client), (!reviews.is_empty(), at_reviews)];
        checking.errors.extend(set.iter().filter(|(set, _)| *set).map(|(_, at)| Error::forbidden(at, detail)));
        return;
    }
    match client {
        None => checking.errors.push(Error::required(at_client, "required when strategy is set to Webhook")),
        Some(client) => {
            webhooks::client(checking, client, &at_client);
            let bundle = text(client, "caBundle");
            if existing.certificates && !bundle.is_empty() {
                checking.unknown.get_or_insert_with(|| {
                    format!("{at_client}.caBundle: whether these are certificates is not known here")
                });
            }
        }
    }
    conversion_reviews(checking, reviews, &at_reviews, existing.reviews);
}

/// `validateConversionReviewVersions`
fn conversion_reviews(checking: &mut Checking<'_>, versions: &[Json], field: &str, must_be_known: bool) {
    let versions: Vec<_> = versions.iter().map(|version| version.as_str().unwrap_or_default()).collect();
    if versions.is_empty() {
        return checking.errors.push(Error::required(field, ""));
    }
    let mut seen = BTreeSet::new();
    for (index, version) in versions.iter().enumerate() {
        let at = format!("{field}[{index}]");
        if !seen.insert(version) {
            checking.errors.push(Error::invalid(at, version, "duplicate version"));
            continue;
        }
        let wrong = forms::label_1035(version);
        checking.errors.extend(wrong.iter().map(|wrong| Error::invalid(&at, version, wrong)));
    }
    if must_be_known && !versions.iter().any(|version| REVIEWS.contains(version)) {
        let detail = format!("must include at least one of {}", REVIEWS.join(", "));
        let shown = shown(checking.minor, &versions.clone().into());
        checking.errors.push(Error::invalid_shown(field, &shown, &detail));
    }
}
