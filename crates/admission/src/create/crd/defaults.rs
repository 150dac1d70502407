//! Whether defaults are valid themselves (`pkg/apiserver/schema/defaulting/validation.go`). Those inside of metadata
//! are not checked.

use palisade_cel::Minor;
use serde_json::Value as Json;

use super::flag;
use crate::{
    objects::judge_default,
    validation::{FieldError as Error, part, shown},
};

/// The error for a default with fields that its schema does not have.
pub(super) const UNPRUNED: &str = "must not have unknown fields";

/// The errors in the defaults of a schema and of all below it. None are allowed below `additionalProperties`.
pub(super) fn check(minor: Minor, schema: &Json, field: &str, root: bool) -> Vec<Error> {
    let mut errors = Vec::new();
    if let Some(default) = part(schema, "default") {
        let at = format!("{field}.default");
        let embedded;
        let mut of = schema;
        // The root is an embedded object (`ValidateDefaults`).
        if let (true, Json::Object(fields)) = (root, schema) {
            let flag = [("x-kubernetes-embedded-resource".to_owned(), Json::Bool(true))];
            embedded = Json::Object(fields.clone().into_iter().chain(flag).collect());
            of = &embedded;
        }
        let judged = judge_default(minor, of, default);
        if judged.has_unknown_fields {
            errors.push(Error::invalid_shown(&at, &shown(minor, default), UNPRUNED));
        }
        errors.extend(judged.errors.into_iter().map(|error| Error { field: below(&at, &error.field), ..error }));
    }
    if let Some(items) = part(schema, "items").filter(|items| items.is_object()) {
        errors.extend(check(minor, items, &format!("{field}.items"), false));
    }
    let is_resource = root || flag(schema, "x-kubernetes-embedded-resource");
    for (name, property) in schema.get("properties").and_then(Json::as_object).into_iter().flatten() {
        if !(is_resource && ["metadata", "apiVersion", "kind"].contains(&name.as_str())) {
            errors.extend(check(minor, property, &format!("{field}.properties[{name}]"), false));
        }
    }
    errors
}

/// The path of a part of a default.
fn below(at: &str, field: &str) -> String {
    match field {
        "" | "<nil>" => at.to_owned(),
        field if field.starts_with(['[', '.']) => format!("{at}{field}"),
        field => format!("{at}.{field}"),
    }
}
