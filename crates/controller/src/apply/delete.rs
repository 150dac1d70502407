//! Deletes policies and bindings, where they exist.

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{Api, api::DeleteParams};
use palisade_api::names::{self, Part};

use crate::{
    api_request::{ApiError, gone},
    context::Context,
};

/// Deletes the bindings of a part. Returns whether there were any.
pub async fn bindings(cx: &Context, profile: &str, part: Part) -> Result<bool, ApiError> {
    let mut deleted = false;
    for name in names::bindings(profile, part) {
        deleted |= binding(cx, &name).await?;
    }
    Ok(deleted)
}

/// Deletes a binding. Returns whether there was one.
pub async fn binding(cx: &Context, name: &str) -> Result<bool, ApiError> {
    let api: Api<ValidatingAdmissionPolicyBinding> = Api::all(cx.client.clone());
    let version = cx.store.binding_version(name);
    let deleted = gone(api.delete(name, &DeleteParams::default())).await?;
    cx.store.deleted_binding(name, version);
    Ok(deleted)
}

/// Deletes the policy of a part.
pub async fn policy(cx: &Context, profile: &str, part: Part) -> Result<(), ApiError> {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(cx.client.clone());
    let name = names::policy(profile, part);
    let version = cx.store.policy_version(&name);
    gone(api.delete(&name, &DeleteParams::default())).await?;
    cx.store.deleted_policy(&name, version);
    Ok(())
}
