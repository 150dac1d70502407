//! Any JSON as the schema of a CustomResourceDefinition, and any text as an expression on its objects.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use palisade_cel::{
    Minor,
    schema::{Kind, Schemas, TypeCheck},
};
use palisade_fuzz::{json, split};
use serde_json::json;

static KIND: LazyLock<Kind> = LazyLock::new(|| Kind::parse("fuzz.example/v1/Fuzz").expect("it is a kind"));

const WORDS: &[&str] = &[
    "type",
    "format",
    "properties",
    "items",
    "additionalProperties",
    "nullable",
    "enum",
    "maxLength",
    "maxItems",
    "maxProperties",
    "required",
    "default",
    "anyOf",
    "allOf",
    "oneOf",
    "not",
    "$ref",
    "pattern",
    "x-kubernetes-int-or-string",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    "object",
    "array",
    "string",
    "integer",
    "number",
    "boolean",
    "int32",
    "int64",
    "byte",
    "date-time",
    "date",
    "duration",
    "double",
    "int-or-string",
    "metadata",
    "spec",
    "apiVersion",
    "kind",
    "name",
    "with-dash",
    "with.dot",
    "__a__",
    "namespace",
    "if",
    "in",
    "#/definitions/a",
];

fuzz_target!(|input: &[u8]| {
    let Some((source, rest)) = split(input) else { return };
    let mut schema = json(rest, WORDS);
    if let Some(schema) = schema.as_object_mut() {
        schema.insert("type".to_owned(), "object".into());
    }
    let mut schemas = Schemas::default();
    schemas.add_crd(&json!({"spec": {
        "group": "fuzz.example", "names": {"kind": "Fuzz"},
        "versions": [{"name": "v1", "served": true, "schema": {"openAPIV3Schema": schema}}],
    }}));
    let check = TypeCheck::new(Minor::DEFAULT, &schemas, [&*KIND], Some(&*KIND), &[]);
    for (_, issues) in check.issues(source) {
        for issue in issues {
            let _ = issue.display(source).to_string();
        }
    }
});
