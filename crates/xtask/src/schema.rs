//! Settings as the schema of a profile describes them.

use palisade_kube_json::json::Change as _;
use serde_json::Value as Json;

/// A setting: its path below `spec`, what can be written, and what it means.
pub(crate) struct Setting {
    pub(crate) path: String,
    pub(crate) kind: String,
    pub(crate) means: String,
}

/// The setting at `path` and all below it; none if there is no such setting.
pub(crate) fn settings(path: &str) -> Vec<Setting> {
    let crd = palisade_api::crd::all().into_iter().find(|crd| crd.spec.names.kind == "ToolSecurityProfile");
    let mut schema = crd.and_then(|crd| serde_json::to_value(&crd.spec.versions[0].schema).ok()).unwrap_or_default();
    let mut at = schema.at_mut(&["openAPIV3Schema", "properties", "spec"]);
    for name in path.split('.') {
        at = at.at_mut(&["properties", name]);
    }
    let mut out = Vec::new();
    collect(path, at, &mut out);
    out
}

fn collect(path: &str, schema: &Json, out: &mut Vec<Setting>) {
    if schema.is_null() {
        return;
    }
    let means = schema["description"].as_str().unwrap_or_default().replace('\n', " ");
    out.push(Setting { path: path.to_owned(), kind: kind(schema), means });
    let (inner, path) = match &schema["items"] {
        Json::Null => (schema, path.to_owned()),
        items => (items, format!("{path}[]")),
    };
    for (name, property) in inner["properties"].as_object().into_iter().flatten() {
        collect(&format!("{path}.{name}"), property, out);
    }
}

/// A description of the valid values.
fn kind(schema: &Json) -> String {
    let or_reference = |what: &str| format!("{what} or `$name`");
    if schema["x-kubernetes-int-or-string"] == true {
        return or_reference("number");
    }
    if schema["x-kubernetes-preserve-unknown-fields"] == true {
        return or_reference("`true`, `false`");
    }
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<_> = names.iter().filter_map(Json::as_str).map(|name| format!("`{name}`")).collect();
        return names.join(", ");
    }
    match schema["type"].as_str() {
        Some("array") => {
            let of = if schema["items"]["type"] == "string" { "texts" } else { "objects" };
            format!("list of {of}, at most {}", schema["maxItems"])
        }
        Some("string") => "text, may have `$name` in it".to_owned(),
        Some(other) => other.to_owned(),
        None => "anything".to_owned(),
    }
}
