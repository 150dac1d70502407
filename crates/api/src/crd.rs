//! The CustomResourceDefinitions of Palisade.

use std::{fmt::Display, sync::LazyLock};

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, JSON, JSONSchemaProps, JSONSchemaPropsOrArray, JSONSchemaPropsOrBool, ValidationRule,
};
use kube::CustomResourceExt;
use serde_json::{Value as Json, json};

use crate::{
    ToolSecurityException, ToolSecurityParams, ToolSecurityProfile, ToolSecurityReport,
    conditions::{ConditionType, ExceptionReason, Reason},
    time,
};

/// All CRDs, ordered by name.
pub fn all() -> Vec<CustomResourceDefinition> {
    // Their schemas are derived from the types, which takes as long as to compile a profile.
    static ALL: LazyLock<Vec<CustomResourceDefinition>> = LazyLock::new(|| {
        vec![
            installed(ToolSecurityException::crd()),
            params(),
            installed(ToolSecurityProfile::crd()),
            installed(ToolSecurityReport::crd()),
        ]
    });
    ALL.clone()
}

/// The CRD of `ToolSecurityParams`, the only kind that generated policies read.
pub fn params() -> CustomResourceDefinition {
    installed(ToolSecurityParams::crd())
}

/// Completes a derived CRD with rules that the types cannot express.
fn installed(mut crd: CustomResourceDefinition) -> CustomResourceDefinition {
    let kind = crd.spec.names.kind.clone();
    for version in &mut crd.spec.versions {
        if let Some(schema) = version.schema.as_mut().and_then(|schema| schema.open_api_v3_schema.as_mut()) {
            tidy(schema);
            if let Some(selector) = below(schema, &["spec", "namespaceSelector"]) {
                select(selector);
            }
            let templates = below(schema, &["spec", "generate"]).and_then(|templates| templates.items.as_mut());
            if let Some(JSONSchemaPropsOrArray::Schema(template)) = templates
                && let Some(selector) = below(template, &["namespaceSelector"])
            {
                select(selector);
            }
            let waves = below(schema, &["spec", "rollout", "waves"]).and_then(|waves| waves.items.as_mut());
            if let Some(JSONSchemaPropsOrArray::Schema(wave)) = waves
                && let Some(selector) = below(wave, &["selector"])
            {
                select(selector);
            }
            let unreported = match kind.as_str() {
                "ToolSecurityProfile" => unreported("profile", &Reason::Pending),
                "ToolSecurityException" => unreported("exception", &ExceptionReason::Pending),
                _ => continue,
            };
            if let Some(status) = below(schema, &["status"]) {
                status.default = Some(JSON(unreported));
            }
        }
    }
    crd
}

/// The status of an object that the controller has not processed. By the rules of kstatus, an object without conditions
/// is ready. Without this status, tools that wait would continue too early. Gateway API uses the same technique.
fn unreported(what: &str, reason: &dyn Display) -> Json {
    json!({"conditions": [{
        "type": ConditionType::Ready.to_string(), "status": "Unknown", "reason": reason.to_string(),
        "message": format!("the controller has not seen this {what} yet"), "lastTransitionTime": "1970-01-01T00:00:00Z",
    }]})
}

/// Makes a schema strict: null does not count as an omitted field.
fn tidy(schema: &mut JSONSchemaProps) {
    schema.nullable = None;
    // The API server's own idea of a time is wider than what can be read.
    if schema.format.as_deref() == Some("date-time") {
        (schema.pattern, schema.max_length) = (Some(time::PATTERN.to_owned()), Some(time::MAX_LENGTH));
    }
    // Line breaks of the source code do not belong into the text.
    schema.description =
        schema.description.take().map(|text| text.replace("\n\n", "\0").replace('\n', " ").replace('\0', "\n"));
    for property in schema.properties.iter_mut().flat_map(|properties| properties.values_mut()) {
        tidy(property);
    }
    match schema.items.as_mut() {
        Some(JSONSchemaPropsOrArray::Schema(items)) => tidy(items),
        Some(JSONSchemaPropsOrArray::Schemas(all)) => all.iter_mut().for_each(tidy),
        None => {}
    }
}

fn below<'a>(schema: &'a mut JSONSchemaProps, path: &[&str]) -> Option<&'a mut JSONSchemaProps> {
    path.iter().try_fold(schema, |schema, name| schema.properties.as_mut()?.get_mut(*name))
}

/// Patterns of the key and the value of a label. The API server requires them in selectors of built-in kinds, but not
/// in custom resources. A schema cannot check the keys of `matchLabels`; the offline check does.
const KEY: &str = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$";
const VALUE: &str = r"^([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?$";

/// Makes the API server reject selectors that it would reject in a policy.
fn select(selector: &mut JSONSchemaProps) {
    let value = |schema: &mut JSONSchemaProps| {
        (schema.pattern, schema.max_length) = (Some(VALUE.to_owned()), Some(63));
    };
    if let Some(JSONSchemaPropsOrBool::Schema(label)) =
        below(selector, &["matchLabels"]).and_then(|labels| labels.additional_properties.as_mut())
    {
        value(label);
    }
    let requirement = below(selector, &["matchExpressions"]).and_then(|list| list.items.as_mut());
    let Some(JSONSchemaPropsOrArray::Schema(requirement)) = requirement else { return };
    if let Some(key) = below(requirement, &["key"]) {
        (key.pattern, key.max_length) = (Some(KEY.to_owned()), Some(317));
    }
    if let Some(operator) = below(requirement, &["operator"]) {
        operator.enum_ = Some(["In", "NotIn", "Exists", "DoesNotExist"].map(|one| JSON(one.into())).into());
    }
    if let Some(JSONSchemaPropsOrArray::Schema(one)) =
        below(requirement, &["values"]).and_then(|values| values.items.as_mut())
    {
        value(one);
    }
    requirement.x_kubernetes_validations = Some(vec![ValidationRule {
        rule: "(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)".to_owned(),
        message: Some("In and NotIn need at least one value; Exists and DoesNotExist take none".to_owned()),
        ..ValidationRule::default()
    }]);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists, maps and strings below `path` without a limit.
    fn unbounded(path: &str, schema: &Json, out: &mut Vec<String>) {
        let limit = match schema["type"].as_str() {
            Some("array") => "maxItems",
            Some("string") if schema["enum"].is_null() => "maxLength",
            Some("object") if schema["additionalProperties"].is_object() => "maxProperties",
            _ => "type",
        };
        if schema["type"].is_string() && schema[limit].is_null() {
            out.push(format!("{path} has no {limit}"));
        }
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            unbounded(&format!("{path}.{name}"), property, out);
        }
        unbounded_if_there(&format!("{path}[]"), &schema["items"], out);
        unbounded_if_there(&format!("{path}{{}}"), &schema["additionalProperties"], out);
    }

    fn unbounded_if_there(path: &str, schema: &Json, out: &mut Vec<String>) {
        if schema.is_object() {
            unbounded(path, schema, out);
        }
    }

    /// The times in a schema that accept any string, or any time of the API server.
    fn unrestricted(path: &str, schema: &Json, out: &mut Vec<String>) {
        if schema["format"] == "date-time" && schema["pattern"] != time::PATTERN {
            out.push(path.to_owned());
        }
        for (name, below) in schema["properties"].as_object().into_iter().flatten() {
            let is_time = name == "expires" || name.ends_with("Time") || name.ends_with("Started");
            let rule = below.pointer("/x-kubernetes-validations/0/rule").and_then(Json::as_str).unwrap_or_default();
            if is_time && below["pattern"] != time::PATTERN && !rule.contains(time::PATTERN) {
                out.push(format!("{path}.{name}"));
            }
            unrestricted(&format!("{path}.{name}"), below, out);
        }
        if schema["items"].is_object() {
            unrestricted(&format!("{path}[]"), &schema["items"], out);
        }
    }

    #[test]
    fn every_time_in_a_definition_can_be_read() {
        let mut found = Vec::new();
        // Times in parameters are written by the controller alone, and read by policies.
        for crd in all().into_iter().filter(|crd| crd.spec.names.kind != "ToolSecurityParams") {
            let schema = json!(crd)["spec"]["versions"][0]["schema"]["openAPIV3Schema"].clone();
            unrestricted(&crd.spec.names.kind, &schema, &mut found);
        }
        assert!(found.is_empty(), "{found:?}");
    }

    /// The rule of the CRD is written by hand.
    #[test]
    fn a_prefix_that_matches_image_ids_is_rejected_as_it_is_offline() {
        let rule = json!(ToolSecurityException::crd()).to_string();
        let pattern = "^(sha256|sha384|sha512|blake3):[^/]*$";
        assert!(rule.contains(pattern), "{rule}");
        let pattern = regex::Regex::new(pattern).unwrap();
        for prefix in [
            "sha256:",
            "sha256:a@",
            "sha512:",
            "sha384:x:",
            "blake3:",
            "sha256:1/",
            "sha256/",
            "x/sha256:",
            "sha1:",
            "a:",
        ] {
            assert_eq!(pattern.is_match(prefix), palisade_checks::image::is_id(prefix), "{prefix}");
        }
    }

    /// Every cost of an evaluation in the API server has a limit.
    #[test]
    fn every_list_map_and_string_in_a_profile_is_bounded() {
        let crd = serde_json::to_value(ToolSecurityProfile::crd()).unwrap();
        let mut spec = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"].clone();
        // The selector's type is that of Kubernetes; the API server compares it with labels and evaluates no
        // expressions on it.
        let selector = spec["properties"].as_object_mut().unwrap().remove("namespaceSelector");
        let wave = &mut spec["properties"]["rollout"]["properties"]["waves"]["items"]["properties"];
        let of_wave = wave.as_object_mut().unwrap().remove("selector");
        let template = &mut spec["properties"]["generate"]["items"]["properties"];
        let of_template = template.as_object_mut().unwrap().remove("namespaceSelector");
        assert!(selector.is_some() && of_wave.is_some() && of_template.is_some());
        let mut found = Vec::new();
        unbounded("spec", &spec, &mut found);
        assert!(found.is_empty(), "{}", found.join("\n"));
    }
}
