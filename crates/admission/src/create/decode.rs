//! Decoding objects as the API server does, and defaulting them (`pkg/apis/admissionregistration/v1`).

use palisade_cel::Minor;
use serde_json::{Value as Json, json};

use super::{GROUP, Status};
use crate::objects;
use crate::validation::{ErrorType, FieldError};

/// Rejects a value that is not of the type of its field, in the words of the API server. The API server answers without
/// causes; here one names the place of the value.
pub(super) fn decode(minor: Minor, api_version: &str, kind: &str, object: &Json) -> Result<(), Status> {
    let Some((field, message)) = objects::undecodable(minor, api_version, kind, object) else { return Ok(()) };
    let body = message.rsplit_once(&format!("as a {kind}: ")).map_or(message.as_str(), |(_, error)| error).to_owned();
    let causes = vec![FieldError { error_type: ErrorType::TypeInvalid, field, body, help: None }];
    Err(Status { code: 400, reason: "BadRequest".to_owned(), message, causes })
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
