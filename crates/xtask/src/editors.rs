//! JSON Schemas of the kinds that people write, for editors: they complete fields, and mark what does not exist.

use palisade_kube_json::json;
use serde_json::{Map, Value as Json, json};

use crate::project::Error;

/// The kinds that people write.
const KINDS: [&str; 2] = ["ToolSecurityProfile", "ToolSecurityException"];

/// A schema for each kind: path from the root, and text.
pub(crate) fn all() -> Result<Vec<(String, String)>, Error> {
    let written = palisade_api::crd::all().into_iter().filter(|crd| KINDS.contains(&crd.spec.names.kind.as_str()));
    let schema = written.map(|crd| {
        let kind = crd.spec.names.kind.as_str();
        let path = format!("docs/{}.schema.json", kind.to_lowercase());
        let version = &crd.spec.versions[0];
        let of_version = serde_json::to_value(&version.schema)
            .map_err(|error| Error::Yaml { path: path.clone().into(), message: error.to_string() })?;
        let mut schema = strict(&of_version["openAPIV3Schema"]);
        let api_version = format!("{}/{}", crd.spec.group, version.name);
        for (place, value) in [
            (&["$schema"][..], json!("http://json-schema.org/draft-07/schema#")),
            (&["title"], json!(kind)),
            (&["required"], json!(["apiVersion", "kind", "metadata", "spec"])),
            (&["properties", "apiVersion"], json!({"const": api_version})),
            (&["properties", "kind"], json!({"const": kind})),
            (&["properties", "metadata"], json!({"type": "object", "required": ["name"]})),
        ] {
            json::set(&mut schema, place, value);
        }
        Ok((path, format!("{schema:#}\n")))
    });
    schema.collect()
}

/// A structural schema as JSON Schema, without the parts that only an API server reads. It rejects undeclared fields,
/// which an API server drops and `palisade` rejects.
fn strict(schema: &Json) -> Json {
    let Json::Object(fields) = schema else { return schema.clone() };
    let mut out = Map::new();
    for (name, value) in fields {
        let value = match name.as_str() {
            "properties" => {
                value.as_object().into_iter().flatten().map(|(name, one)| (name.clone(), strict(one))).collect()
            }
            "items" | "additionalProperties" => strict(value),
            "format" | "nullable" => continue,
            name if name.starts_with("x-kubernetes-") => continue,
            _ => value.clone(),
        };
        out.insert(name.clone(), value);
    }
    if fields.get("x-kubernetes-int-or-string") == Some(&Json::Bool(true)) {
        out.remove("anyOf");
        out.insert("type".to_owned(), json!(["integer", "string"]));
    }
    let open = fields.get("x-kubernetes-preserve-unknown-fields") == Some(&Json::Bool(true));
    if out.contains_key("properties") && !out.contains_key("additionalProperties") && !open {
        out.insert("additionalProperties".to_owned(), json!(false));
    }
    Json::Object(out)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::project::root;

    /// The fields of an object that its schema does not have.
    fn unknown(schema: &Json, object: &Json, path: &str, out: &mut Vec<String>) {
        match object {
            Json::Object(fields) => {
                for (name, value) in fields {
                    let path = format!("{path}.{name}");
                    match (&schema["properties"][name], &schema["additionalProperties"]) {
                        (Json::Null, Json::Bool(false)) => out.push(path),
                        (Json::Null, of_any) => unknown(of_any, value, &path, out),
                        (of_field, _) => unknown(of_field, value, &path, out),
                    }
                }
            }
            Json::Array(items) => items.iter().for_each(|item| unknown(&schema["items"], item, path, out)),
            _ => {}
        }
    }

    #[test]
    fn examples_name_their_schema_and_have_no_other_fields() {
        let schemas = all().unwrap();
        let schema: Json =
            serde_json::from_str(&schemas.iter().find(|(path, _)| path.contains("profile")).unwrap().1).unwrap();
        for example in [
            "custom-checks/profile.yaml",
            "domains/profile.yaml",
            "shared-ingress/profile.yaml",
            "tenants/profile.yaml",
            "toolforge/additions.yaml",
            "toolforge/builds.yaml",
            "toolforge/images.yaml",
            "toolforge/profile.yaml",
        ]
        .map(|name| format!("examples/{name}"))
        {
            let text = fs::read_to_string(root().join(&example)).unwrap();
            let named = text.lines().find_map(|line| line.strip_prefix("# yaml-language-server: $schema="));
            let named = named.unwrap_or_default();
            let schema_file = root().join(&example).parent().unwrap().join(named);
            assert!(
                schema_file.ends_with("docs/toolsecurityprofile.schema.json") && schema_file.is_file(),
                "{example}: {named}"
            );
            let mut object: Json = serde_saphyr::from_str(&text).unwrap();
            let mut found = Vec::new();
            unknown(&schema, &object, "", &mut found);
            assert!(found.is_empty(), "{example}: {found:?}");
            json::set(&mut object, &["spec", "privileges", "privilegd"], true);
            unknown(&schema, &object, "", &mut found);
            assert_eq!(found, [".spec.privileges.privilegd"]);
        }
    }

    #[test]
    fn a_field_that_does_not_exist_is_refused() {
        let found = strict(&json!({
            "type": "object",
            "properties": {
                "port": {"x-kubernetes-int-or-string": true, "anyOf": [{"type": "integer"}, {"type": "string"}]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {}},
            },
            "x-kubernetes-validations": [{"rule": "true"}],
        }));
        let expected = json!({
            "type": "object",
            "properties": {
                "port": {"type": ["integer", "string"]},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "free": {"type": "object", "properties": {}},
            },
            "additionalProperties": false,
        });
        assert_eq!(found, expected);
    }
}
