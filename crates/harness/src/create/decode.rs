//! Reading objects as the API server does, and filling in what is left out (`pkg/apis/admissionregistration/v1`).

use k8s_openapi::{
    api::admissionregistration::v1::{
        MutatingAdmissionPolicy, MutatingAdmissionPolicyBinding, MutatingWebhookConfiguration,
        ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding, ValidatingWebhookConfiguration,
    },
    apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition,
};
use serde::de::DeserializeOwned;
use serde_json::{Value as Json, json};

use super::{GROUP, Status};

/// Refuses what is not of the types of a kind. The API server's words name types of Go; these name the field.
pub(super) fn decode(group: &str, version: &str, kind: &str, object: &Json) -> Result<(), Status> {
    let read = match (group, kind) {
        (GROUP, "ValidatingAdmissionPolicy") => read::<ValidatingAdmissionPolicy>,
        (GROUP, "ValidatingAdmissionPolicyBinding") => read::<ValidatingAdmissionPolicyBinding>,
        (GROUP, "MutatingAdmissionPolicy") => read::<MutatingAdmissionPolicy>,
        (GROUP, "MutatingAdmissionPolicyBinding") => read::<MutatingAdmissionPolicyBinding>,
        (GROUP, "MutatingWebhookConfiguration") => read::<MutatingWebhookConfiguration>,
        (GROUP, "ValidatingWebhookConfiguration") => read::<ValidatingWebhookConfiguration>,
        ("apiextensions.k8s.io", "CustomResourceDefinition") => read::<CustomResourceDefinition>,
        _ => return Ok(()),
    };
    // The types know one version only; the others have the same fields.
    let mut object = object.clone();
    if group == GROUP
        && let Some(of) = object.get_mut("apiVersion")
    {
        *of = format!("{GROUP}/v1").into();
    }
    read(object).map_err(|error| Status {
        code: 400,
        reason: "BadRequest".to_owned(),
        message: format!("{kind} in version {version:?} cannot be handled as a {kind}: {error}"),
        causes: vec![],
    })
}

fn read<T: DeserializeOwned>(object: Json) -> Result<(), serde_json::Error> {
    serde_json::from_value::<T>(object).map(drop)
}

/// The object with defaults.
pub(super) fn defaulted(group: &str, kind: &str, object: &Json) -> Json {
    let mut object = object.clone();
    if group != GROUP {
        return object;
    }
    let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) else { return object };
    let resources = match kind {
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => {
            let policy = spec.entry("failurePolicy").or_insert(Json::Null);
            if policy.is_null() {
                *policy = "Fail".into();
            }
            "matchConstraints"
        }
        _ => "matchResources",
    };
    if let Some(Json::Object(resources)) = spec.get_mut(resources) {
        for (key, default) in
            [("matchPolicy", json!("Equivalent")), ("namespaceSelector", json!({})), ("objectSelector", json!({}))]
        {
            let value = resources.entry(key).or_insert(Json::Null);
            if value.is_null() {
                *value = default;
            }
        }
        for key in ["resourceRules", "excludeResourceRules"] {
            for rule in resources.get_mut(key).and_then(Json::as_array_mut).into_iter().flatten() {
                if let Some(rule) = rule.as_object_mut() {
                    let scope = rule.entry("scope").or_insert(Json::Null);
                    if scope.is_null() {
                        *scope = "*".into();
                    }
                }
            }
        }
    }
    object
}
