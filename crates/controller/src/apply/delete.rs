//! Deletes policies and bindings, where they exist.

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{Api, api::DeleteParams};
use palisade_api::names::{self, Part};

use crate::{
    api_request::{ApiError, gone},
    context::Context,
    watch::store::ValidatingObject,
};

/// Deletes the bindings of a part. Returns whether there were any.
pub async fn bindings(cx: &Context, profile: &str, part: Part) -> Result<bool, ApiError> {
    let mut deleted = false;
    for name in names::bindings(profile, part) {
        deleted |= object::<ValidatingAdmissionPolicyBinding>(cx, &name).await?;
    }
    Ok(deleted)
}

/// Deletes the policy of a part.
pub async fn policy(cx: &Context, profile: &str, part: Part) -> Result<(), ApiError> {
    object::<ValidatingAdmissionPolicy>(cx, &names::policy(profile, part)).await.map(drop)
}

/// Deletes a policy or binding. Returns whether there was one.
pub async fn object<K: ValidatingObject>(cx: &Context, name: &str) -> Result<bool, ApiError> {
    let version = cx.store.object_version::<K>(name);
    let deleted = gone(Api::<K>::all(cx.client.clone()).delete(name, &DeleteParams::default())).await?;
    cx.store.deleted_object::<K>(name, version);
    Ok(deleted)
}
