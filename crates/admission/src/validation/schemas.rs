//! The schemas in a schema.

use serde_json::Value as Json;

use super::{list, part};

/// All schemas in a schema, and itself (`SchemaHas`).
pub(crate) fn any_schema(schema: &Json, is: &dyn Fn(&Json) -> bool) -> bool {
    let inner = |key: &str| part(schema, key).filter(|of| of.is_object());
    let below = |key: &str| part(schema, key).and_then(Json::as_object).into_iter().flat_map(|of| of.values());
    is(schema)
        || ["items", "not", "additionalProperties", "additionalItems"]
            .into_iter()
            .filter_map(inner)
            .chain(["items", "allOf", "anyOf", "oneOf"].into_iter().flat_map(|key| list(schema, key)))
            .chain(
                ["properties", "patternProperties", "definitions", "dependencies"]
                    .into_iter()
                    .flat_map(below)
                    .filter(|of| of.is_object()),
            )
            .any(|of| any_schema(of, is))
}
