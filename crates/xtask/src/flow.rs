//! Values as pages show them.

use serde_json::Value as Json;

/// A value as YAML on one line.
pub(crate) fn flow(value: &Json) -> String {
    let join = |items: Vec<String>| items.join(", ");
    match value {
        Json::String(text) if text == "*" => "'*'".to_owned(),
        Json::String(text) => text.clone(),
        Json::Array(items) => format!("[{}]", join(items.iter().map(flow).collect())),
        Json::Object(fields) => {
            format!("{{{}}}", join(fields.iter().map(|(key, value)| format!("{key}: {}", flow(value))).collect()))
        }
        other => other.to_string(),
    }
}
