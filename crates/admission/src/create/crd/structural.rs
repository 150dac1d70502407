//! Whether a schema is structural (`pkg/apiserver/schema/validation.go`, `convert.go`).

use palisade_cel::{Minor, Regex};
use serde_json::Value as Json;

use super::{FLAGS, flag};
use crate::validation::{FieldError as Error, list, part, text};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Level {
    Root,
    Item,
    Field,
}

/// Why a schema cannot be structural, whatever is in it.
pub(super) fn unsupported(schema: &Json) -> Option<&'static str> {
    let filled = |key: &str| match part(schema, key) {
        Some(Json::String(text)) => !text.is_empty(),
        Some(Json::Object(of)) => !of.is_empty(),
        other => other.is_some(),
    };
    for (key, message) in [
        ("id", "OpenAPIV3Schema 'id' is not supported"),
        ("$schema", "OpenAPIV3Schema 'schema' is not supported"),
        ("$ref", "OpenAPIV3Schema '$ref' is not supported"),
        ("patternProperties", "OpenAPIV3Schema 'patternProperties' is not supported"),
        ("dependencies", "OpenAPIV3Schema 'dependencies' is not supported"),
        ("additionalItems", "OpenAPIV3Schema 'additionalItems' is not supported"),
        ("definitions", "OpenAPIV3Schema 'definitions' is not supported"),
    ] {
        if filled(key) {
            return Some(message);
        }
    }
    if part(schema, "x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(false)) {
        return Some("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined");
    }
    if !list(schema, "items").is_empty() {
        return Some("OpenAPIV3Schema 'items' must be a schema, but is an array");
    }
    let alternatives = ["allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key));
    let inner = ["not", "items", "additionalProperties"].into_iter().filter_map(|key| part(schema, key));
    alternatives.chain(inner).chain(properties(schema).map(|(_, property)| property)).find_map(unsupported)
}

fn properties(schema: &Json) -> impl Iterator<Item = (&String, &Json)> {
    schema.get("properties").and_then(Json::as_object).into_iter().flatten()
}

/// The reasons why a schema is not structural.
pub(super) fn check(minor: Minor, schema: &Json, field: &str) -> Vec<Error> {
    let mut errors = Vec::new();
    invariants(minor, (schema, Level::Root), field, &mut errors);
    completeness(schema, schema, (field, field), &mut errors);
    errors.sort_by_key(|error| format!("{}: {}", error.field, error.body));
    errors
}

fn invariants(minor: Minor, (schema, level): (&Json, Level), field: &str, errors: &mut Vec<Error>) {
    let of = text(schema, "type");
    let (embedded, preserves) =
        (flag(schema, "x-kubernetes-embedded-resource"), flag(schema, "x-kubernetes-preserve-unknown-fields"));
    let int_or_string = flag(schema, "x-kubernetes-int-or-string");
    let items = part(schema, "items").filter(|items| items.is_object());
    if of == "array" && items.is_none() {
        errors.push(Error::required(format!("{field}.items"), "must be specified"));
    }
    if let Some(items) = items {
        invariants(minor, (items, Level::Item), &format!("{field}.items"), errors);
    }
    for (name, property) in properties(schema) {
        invariants(minor, (property, Level::Field), &format!("{field}.properties[{name}]"), errors);
    }
    let values = part(schema, "additionalProperties");
    if let Some(values) = values {
        if level == Level::Root {
            errors.push(Error::forbidden(format!("{field}.additionalProperties"), "must not be used at the root"));
        }
        if values.is_object() {
            invariants(minor, (values, Level::Field), &format!("{field}.additionalProperties"), errors);
        }
    }
    for (key, set) in
        [("x-kubernetes-preserve-unknown-fields", preserves), ("x-kubernetes-embedded-resource", embedded)]
    {
        if int_or_string && set {
            let detail = "must be false if x-kubernetes-int-or-string is true";
            errors.push(Error::invalid_value(minor, format!("{field}.{key}"), &Json::Bool(true), detail));
        }
    }
    let skips = (is_int_or_string(minor, list(schema, "anyOf")), first_is_int_or_string(minor, list(schema, "allOf")));
    validations(schema, skips, field, errors);
    metadata(minor, (schema, level), field, errors);
    if embedded && of != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        let at = format!("{field}.type");
        errors.push(if of.is_empty() { Error::required(at, detail) } else { Error::invalid(at, of, detail) });
    } else if of.is_empty() && !int_or_string && !preserves {
        let detail = match level {
            Level::Root => "must not be empty at the root",
            Level::Item => "must not be empty for specified array items",
            Level::Field => "must not be empty for specified object fields",
        };
        errors.push(Error::required(format!("{field}.type"), detail));
    }
    if embedded && values.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(Error::forbidden(format!("{field}.additionalProperties"), detail));
    }
    if level == Level::Root && !of.is_empty() && of != "object" {
        errors.push(Error::invalid(format!("{field}.type"), of, "must be object at the root"));
    }
    if embedded && !preserves && properties(schema).next().is_none() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(Error::required(format!("{field}.properties"), detail));
    }
}

/// Checks the schemas of `kind`, `apiVersion` and `metadata`, which every object has.
fn metadata(minor: Minor, (schema, level): (&Json, Level), field: &str, errors: &mut Vec<Error>) {
    let checks = level == Level::Root || flag(schema, "x-kubernetes-embedded-resource");
    let property = |name: &str| schema.get("properties").and_then(|of| of.get(name));
    for name in ["kind", "apiVersion"] {
        if let Some(of) = property(name).map(|of| text(of, "type")).filter(|of| checks && *of != "string") {
            errors.push(Error::invalid(format!("{field}.properties[{name}].type"), of, "must be string"));
        }
    }
    let Some(metadata) = property("metadata") else { return };
    let at = format!("{field}.properties[metadata]");
    let of = text(metadata, "type");
    if checks && of != "object" {
        errors.push(Error::invalid(format!("{at}.type"), of, "must be object"));
    }
    if level == Level::Root {
        let names_only = properties(metadata).all(|(name, _)| ["name", "generateName"].contains(&name.as_str()));
        let other = |(key, value): (&String, &Json)| {
            !["type", "default", "properties"].contains(&key.as_str()) && !is_unset(minor, key, value)
        };
        if !names_only || metadata.as_object().into_iter().flatten().any(other) {
            let detail =
                "must not specify anything other than name and generateName, but metadata is implicitly specified";
            errors.push(Error::forbidden(at, detail));
        }
    }
}

/// Whether `NewStructural` keeps nothing of a field, so that its zero value compares equal to an omitted field.
fn is_unset(minor: Minor, key: &str, value: &Json) -> bool {
    match key {
        "externalDocs" | "example" if minor < Minor::V1_36 => true,
        _ if FLAGS.contains(&key) => value.is_null() || *value == false,
        "type" | "format" | "pattern" | "title" | "description" => value.is_null() || *value == "",
        // Only a list of items with schemas in it is something.
        "enum" | "allOf" | "anyOf" | "oneOf" | "items" => {
            value.is_null() || value.as_array().is_some_and(Vec::is_empty)
        }
        // A schema with any of these is not converted.
        "id" | "$schema" | "$ref" | "patternProperties" | "dependencies" | "definitions" => true,
        _ => value.is_null(),
    }
}

/// `anyOf` of an integer and a string, which is how such fields are described (`isIntOrStringAnyOfPattern`).
fn is_int_or_string(minor: Minor, any_of: &[Json]) -> bool {
    let unset = |key: &str, value: &Json| match key {
        // Only true counts in an alternative.
        "additionalProperties" if *value == false => true,
        _ => is_unset(minor, key, value),
    };
    let is = |of: &Json, name: &str| {
        text(of, "type") == name
            && of.as_object().into_iter().flatten().all(|(key, value)| key == "type" || unset(key, value))
    };
    matches!(any_of, [first, second] if is(first, "integer") && is(second, "string"))
}

/// `isIntOrStringAllOfPattern`.
fn first_is_int_or_string(minor: Minor, all_of: &[Json]) -> bool {
    all_of.first().is_some_and(|first| is_int_or_string(minor, list(first, "anyOf")))
}

/// Checks the restrictions of a schema. `skip_any` and `skip_first` exclude the alternatives of a field that is an
/// integer or a string.
fn validations(schema: &Json, (skip_any, skip_first): (bool, bool), field: &str, errors: &mut Vec<Error>) {
    if !skip_any {
        for (index, of) in list(schema, "anyOf").iter().enumerate() {
            nested(of, (false, false), &format!("{field}.anyOf[{index}]"), errors);
        }
    }
    for (index, of) in list(schema, "allOf").iter().enumerate() {
        nested(of, (skip_first && index == 0, false), &format!("{field}.allOf[{index}]"), errors);
    }
    for (index, of) in list(schema, "oneOf").iter().enumerate() {
        nested(of, (false, false), &format!("{field}.oneOf[{index}]"), errors);
    }
    if let Some(of) = part(schema, "not") {
        nested(of, (false, false), &format!("{field}.not"), errors);
    }
    let pattern = text(schema, "pattern");
    if let Some(why) = Some(pattern).filter(|of| !of.is_empty()).and_then(|of| Regex::new(of).err()) {
        let detail = format!("must be a valid regular expression, but isn't: {why}");
        errors.push(Error::invalid(format!("{field}.pattern"), pattern, &detail));
    }
}

/// An alternative only restricts.
fn nested(schema: &Json, skips: (bool, bool), field: &str, errors: &mut Vec<Error>) {
    validations(schema, skips, field, errors);
    if let Some(items) = part(schema, "items").filter(|items| items.is_object()) {
        nested(items, (false, false), &format!("{field}.items"), errors);
    }
    for (name, property) in properties(schema) {
        nested(property, (false, false), &format!("{field}.properties[{name}]"), errors);
    }
    let mut forbid = |key: &str, is_set: bool, detail: &str| {
        if is_set {
            errors.push(Error::forbidden(format!("{field}.{key}"), &format!("must be {detail} to be structural")));
        }
    };
    forbid("type", !text(schema, "type").is_empty(), "empty");
    let values = part(schema, "additionalProperties").is_some_and(|values| *values != Json::Bool(false));
    forbid("additionalProperties", values, "undefined");
    forbid("default", part(schema, "default").is_some(), "undefined");
    for key in ["title", "description"] {
        forbid(key, !text(schema, key).is_empty(), "empty");
    }
    for key in [
        "nullable",
        "x-kubernetes-preserve-unknown-fields",
        "x-kubernetes-embedded-resource",
        "x-kubernetes-int-or-string",
    ] {
        forbid(key, flag(schema, key), "false");
    }
    forbid("x-kubernetes-list-map-keys", !list(schema, "x-kubernetes-list-map-keys").is_empty(), "empty");
    for key in ["x-kubernetes-list-type", "x-kubernetes-map-type"] {
        forbid(key, part(schema, key).is_some(), "undefined");
    }
    forbid("x-kubernetes-validations", !list(schema, "x-kubernetes-validations").is_empty(), "empty");
    if schema.get("properties").is_some_and(|of| of.get("metadata").is_some()) {
        let at = format!("{field}.properties[metadata]");
        errors.push(Error::forbidden(at, "must not be specified in a nested context"));
    }
}

/// Checks that fields that the alternatives in `of` restrict are also in the schema outside of them (`complete.go`).
/// Only alternatives at the root are checked.
fn completeness(schema: &Json, of: &Json, (outer, field): (&str, &str), errors: &mut Vec<Error>) {
    if let Some(not) = part(of, "not") {
        complete(schema, not, (outer, &format!("{field}.not")), errors);
    }
    for key in ["allOf", "anyOf", "oneOf"] {
        for (index, alternative) in list(of, key).iter().enumerate() {
            complete(schema, alternative, (outer, &format!("{field}.{key}[{index}]")), errors);
        }
    }
}

fn complete(schema: &Json, of: &Json, (outer, field): (&str, &str), errors: &mut Vec<Error>) {
    completeness(schema, of, (outer, field), errors);
    let items_of = |of| part(of, "items").filter(|items: &&Json| items.is_object());
    let items = items_of(of).map(|items| ("items".to_owned(), items, items_of(schema)));
    let fields = properties(of).map(|(name, property)| {
        let outside = schema.get("properties").and_then(|of| of.get(name));
        (format!("properties[{name}]"), property, outside)
    });
    for (step, inside, outside) in items.into_iter().chain(fields) {
        let (outer, field) = (format!("{outer}.{step}"), format!("{field}.{step}"));
        match outside {
            Some(outside) => complete(outside, inside, (&outer, &field), errors),
            None => errors.push(Error::required(outer, &format!("because it is defined in {field}"))),
        }
    }
}
