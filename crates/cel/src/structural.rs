//! Schemas of CustomResourceDefinitions as documents: what the types of rules and the values that rules see both read of
//! them.

use serde_json::{Map, Value, json};

use crate::Minor;

/// A schema with what every object has: `apiVersion`, `kind`, and of `metadata` the names. It is added to the root, if
/// this schema is one, and to each embedded resource (`WithTypeAndObjectMeta`). `minor` is the server's.
#[must_use]
pub fn with_metadata(schema: &Value, root: bool, minor: Minor) -> Value {
    let Value::Object(of) = schema else { return schema.clone() };
    let inside = |(key, part): (&String, &Value)| {
        let part = match (key.as_str(), part) {
            ("properties", Value::Object(properties)) => {
                properties.iter().map(|(name, of)| (name.clone(), with_metadata(of, false, minor))).collect()
            }
            ("items" | "additionalProperties", part) => with_metadata(part, false, minor),
            (_, part) => part.clone(),
        };
        (key.clone(), part)
    };
    let mut of: Map<String, Value> = of.iter().map(inside).collect();
    if (root || flag(schema, "x-kubernetes-embedded-resource")) && !has_metadata(schema) {
        let existing =
            |name: &str| schema.get("properties")?.get("metadata")?.get("properties")?.get(name)?.get("maxLength");
        let name = |name: &str, most: i64| {
            if minor < Minor::V1_37 {
                return json!({"type": "string"});
            }
            let most = existing(name).and_then(Value::as_i64).map_or(most, |existing| existing.min(most));
            json!({"type": "string", "maxLength": most})
        };
        let metadata = json!({"type": "object", "properties": {"name": name("name", 253), "generateName": name("generateName", 252)}});
        let properties = of.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(properties) = properties {
            for key in ["apiVersion", "kind"] {
                properties.insert(key.to_owned(), json!({"type": "string"}));
            }
            properties.insert("metadata".to_owned(), metadata);
        }
    }
    Value::Object(of)
}

fn has_metadata(schema: &Value) -> bool {
    let is = |pointer: &str, expected: &str| {
        schema.get("properties").and_then(|of| of.pointer(pointer)).is_some_and(|of| text(of, "type") == expected)
    };
    is("/kind", "string")
        && is("/apiVersion", "string")
        && is("/metadata", "object")
        && is("/metadata/properties/name", "string")
        && is("/metadata/properties/generateName", "string")
}

/// The text that a schema has at a key, or nothing.
pub(crate) fn text<'s>(schema: &'s Value, key: &str) -> &'s str {
    schema.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// Whether a schema has `true` at a key.
pub(crate) fn flag(schema: &Value, key: &str) -> bool {
    schema.get(key) == Some(&Value::Bool(true))
}

/// A schema inside of another: `items`, or `additionalProperties` that are not only allowed.
pub(crate) fn part<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    schema.get(key).filter(|part| part.is_object())
}

/// The properties, if there are any.
pub(crate) fn properties(schema: &Value) -> Option<&Map<String, Value>> {
    schema.get("properties").and_then(Value::as_object).filter(|properties| !properties.is_empty())
}
