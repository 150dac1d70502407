//! Custom resource definitions (`apiextensions-apiserver/pkg/registry/customresourcedefinition/strategy.go`).

use std::{cell::RefCell, collections::BTreeSet};

use palisade_cel::{Minor, strfmt};
use serde_json::Value as Json;

use super::Warnings;
use crate::validation::{any_schema, list, quote, text};

/// Warns of formats that the API server ignores, unless the old definition has them (`getUnrecognizedFormatsInCRD`).
pub(super) fn formats(minor: Minor, object: &Json, old: Option<&Json>, out: &mut Warnings) {
    if minor < Minor::V1_34 {
        return;
    }
    let before = old.map(|old| unrecognized(minor, old)).unwrap_or_default();
    let new = unrecognized(minor, object);
    out.extend(new.difference(&before).map(|format| format!("unrecognized format {}", quote(format))));
}

fn unrecognized(minor: Minor, definition: &Json) -> BTreeSet<String> {
    let found = RefCell::new(BTreeSet::new());
    let add = |schema: &Json| {
        let (of, format) = (text(schema, "type"), text(schema, "format"));
        if !format.is_empty() && !is_recognized(minor, of, format) {
            found.borrow_mut().insert(format.to_owned());
        }
        false
    };
    for version in list(&definition["spec"], "versions") {
        let _ = version.pointer("/schema/openAPIV3Schema").is_some_and(|schema| any_schema(schema, &add));
    }
    found.into_inner()
}

/// `GetUnrecognizedFormats`.
fn is_recognized(minor: Minor, of: &str, format: &str) -> bool {
    match of {
        "string" => strfmt::check(minor, format).is_some(),
        // Until 1.35 only the formats of strings count.
        _ if minor < Minor::V1_36 => true,
        "" => strfmt::check(minor, format).is_some(),
        "integer" => matches!(format, "int32" | "int64"),
        "number" => matches!(format, "float" | "double"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The answers of API servers of 1.36 and 1.35 to the formats of a schema.
    #[test]
    fn formats_that_the_api_server_ignores_are_warned_of() {
        let definition = |properties: Json| {
            let schema = json!({"type": "object", "properties": properties});
            json!({"spec": {"versions": [{"name": "v1", "schema": {"openAPIV3Schema": schema}}]}})
        };
        let of = |kind: &str, format: &str| json!({"type": kind, "format": format});
        let new = definition(json!({
            "a": of("string", "uuid"), "b": of("string", "double"), "c": of("integer", "float"),
            "d": of("number", "float"), "e": {"anyOf": [of("", "int32")], "x-kubernetes-int-or-string": true},
            "f": {"type": "array", "items": of("boolean", "byte")},
        }));
        let old = definition(json!({"a": of("string", "double"), "b": of("array", "byte")}));
        let warnings = |minor: Minor, old: Option<&Json>| {
            let mut out = Warnings::new();
            formats(minor, &new, old, &mut out);
            out
        };
        let named = |formats: &[&str]| -> Vec<String> {
            formats.iter().map(|format| format!("unrecognized format \"{format}\"")).collect()
        };
        assert_eq!(warnings(Minor::V1_36, None), named(&["byte", "double", "float", "int32"]));
        assert_eq!(warnings(Minor::V1_36, Some(&old)), named(&["float", "int32"]));
        assert_eq!(warnings(Minor::V1_35, None), named(&["double"]));
        assert!(warnings(Minor::V1_33, None).is_empty());
    }
}
