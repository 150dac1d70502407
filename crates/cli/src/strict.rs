//! Unknown fields: all of them, each with the known field that was probably meant.
//!
//! The types reject unknown fields too, but one at a time, and not in the types of Kubernetes, where a misspelt
//! `matchLabels` would select every namespace.

use std::{ops::Range, sync::LazyLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool,
};
use palisade_api::Diagnostic;
use palisade_manifest::{Content, Node, suggestion};

/// Fields that the schema of a custom resource leaves to the API server.
const OBJECT: [&str; 3] = ["apiVersion", "kind", "metadata"];
/// `ObjectMeta`, which the schema does not describe.
const METADATA: [&str; 15] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "managedFields",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "selfLink",
    "uid",
];

static SCHEMA: LazyLock<Option<JSONSchemaProps>> = LazyLock::new(|| {
    let crd = palisade_api::crd::all().into_iter().find(|crd| crd.spec.names.kind == "ToolSecurityProfile")?;
    crd.spec.versions.into_iter().next()?.schema?.open_api_v3_schema
});

/// The unknown fields of a profile, by the schema of its kind.
pub fn unknown_fields(profile: &Node<'_>) -> Vec<Unknown> {
    let mut found = Vec::new();
    let Some(schema) = &*SCHEMA else { return found };
    let mut known: Vec<_> = OBJECT.iter().map(|&name| name.to_owned()).collect();
    known.extend(schema.properties.iter().flatten().map(|(name, _)| name.clone()));
    for (key, value) in profile.entries() {
        match key.text() {
            Some("metadata") => names(value, &METADATA.map(str::to_owned), "metadata.", &mut found),
            Some(name) => {
                if let Some(schema) = schema.properties.iter().flatten().find(|(known, _)| *known == name) {
                    visit(value, schema.1, name, &mut found);
                }
            }
            None => {}
        }
    }
    names(profile, &known, "", &mut found);
    found
}

/// An unknown field, and its key in the file.
#[derive(Debug)]
pub struct Unknown {
    /// The message.
    pub diagnostic: Diagnostic,
    /// The place of its key, because the key is the error.
    pub key: Range<usize>,
}

fn visit(node: &Node<'_>, schema: &JSONSchemaProps, path: &str, found: &mut Vec<Unknown>) {
    match &node.content {
        Content::Sequence(elements) => {
            if let Some(JSONSchemaPropsOrArray::Schema(items)) = &schema.items {
                for (index, element) in elements.iter().enumerate() {
                    visit(element, items, &format!("{path}[{index}]"), found);
                }
            }
        }
        Content::Mapping(entries) => {
            let free = schema.x_kubernetes_preserve_unknown_fields == Some(true);
            if let Some(properties) = &schema.properties {
                for (key, value) in entries {
                    if let Some((name, schema)) = key.text().and_then(|name| properties.get_key_value(name)) {
                        visit(value, schema, &format!("{path}.{name}"), found);
                    }
                }
                if !free {
                    let known: Vec<_> = properties.keys().cloned().collect();
                    names(node, &known, &format!("{path}."), found);
                }
            } else if let Some(JSONSchemaPropsOrBool::Schema(values)) = &schema.additional_properties {
                for (key, value) in entries {
                    visit(value, values, &format!("{path}.{}", key.text().unwrap_or_default()), found);
                }
            }
        }
        Content::Scalar(_) | Content::Alias(_) => {}
    }
}

fn names(node: &Node<'_>, known: &[String], prefix: &str, found: &mut Vec<Unknown>) {
    for (key, _) in node.entries() {
        // A merge key adds fields that only the types see.
        if let Some(name) = key.text().filter(|&name| name != "<<" && !known.iter().any(|known| known == name)) {
            let candidates: Vec<_> = known.iter().map(String::as_str).collect();
            found.push(Unknown {
                diagnostic: unknown(&format!("{prefix}{name}"), name, &candidates),
                key: key.span.clone(),
            });
        }
    }
}

/// The diagnostic of an unknown field.
fn unknown(path: &str, name: &str, known: &[&str]) -> Diagnostic {
    Diagnostic::new(path, "unknown field").help(suggestion(name, known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use palisade_manifest::locate::documents;

    #[test]
    fn all_unknown_fields_are_found() {
        let text = "\
kind: ToolSecurityProfile
metadata: {nam: x, labels: {anything: goes}}
spek: {}
spec:
  namespaceSelector: {matchLabel: {a: b}, matchExpressions: [{key: a, op: Exists}]}
  overrides: [{namespaces: [a], parameters: {free: 1}}]
  users: {runAsUser: {rule: MustRunAs, ranges: [{mn: 1}]}}
";
        let documents = documents(text).unwrap();
        let found: Vec<_> = unknown_fields(&documents[0])
            .into_iter()
            .map(|Unknown { diagnostic, key }| format!("{} {}", diagnostic, &text[key]))
            .collect();
        assert_eq!(
            found,
            [
                "metadata.nam: unknown field (did you mean name?) nam",
                "spec.namespaceSelector.matchExpressions[0].op: unknown field (known here: key, operator, values) op",
                "spec.namespaceSelector.matchLabel: unknown field (did you mean matchLabels?) matchLabel",
                "spec.users.runAsUser.ranges[0].mn: unknown field (did you mean min?) mn",
                "spek: unknown field (did you mean spec?) spek",
            ]
        );
    }
}
