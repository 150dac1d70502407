//! The parts of a structural schema that are read more than once.

use serde_json::Value;

/// `properties.<key>`.
pub(super) fn property<'s>(schema: &'s Value, key: &str) -> Option<&'s Value> {
    schema.get("properties")?.get(key)
}

/// The schema of further properties, if that is one.
pub(super) fn additional(schema: &Value) -> Option<&Value> {
    schema.get("additionalProperties").filter(|additional| additional.is_object())
}

/// `additionalProperties: true`.
pub(super) fn allows_any(schema: &Value) -> bool {
    schema.get("additionalProperties") == Some(&Value::Bool(true))
}

pub(super) fn items(schema: &Value) -> Option<&Value> {
    schema.get("items").filter(|items| items.is_object())
}

/// Is an extension such as `x-kubernetes-preserve-unknown-fields` or `nullable` on?
pub(super) fn is(schema: &Value, flag: &str) -> bool {
    schema.get(flag) == Some(&Value::Bool(true))
}

pub(super) const PRESERVES: &str = "x-kubernetes-preserve-unknown-fields";
pub(super) const EMBEDDED: &str = "x-kubernetes-embedded-resource";
pub(super) const INT_OR_STRING: &str = "x-kubernetes-int-or-string";
