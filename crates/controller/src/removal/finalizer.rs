//! The finalizer: a profile stays until everything that was generated for it is deleted.

use kube::{
    Api,
    api::{Patch, PatchParams},
    core::PartialObjectMeta,
};
use palisade_api::{ToolSecurityProfile, names};
use serde_json::json;

use crate::{
    api_request::{ApiError, call},
    context::Context,
    watch::store::ObservedProfile,
};

/// Adds the finalizer, so that a profile cannot vanish before the objects generated for it.
pub async fn add(cx: &Context, observed: &ObservedProfile) -> Result<(), ApiError> {
    if is_present(observed) {
        return Ok(());
    }
    let name = observed.meta.name.clone().unwrap_or_default();
    // The uid keeps this from creating a profile that was deleted in the meantime.
    let patch = json!({
        "apiVersion": names::API_VERSION,
        "kind": "ToolSecurityProfile",
        "metadata": {"name": name, "uid": observed.meta.uid, "finalizers": [names::FINALIZER]},
    });
    let api: Api<PartialObjectMeta<ToolSecurityProfile>> = Api::all(cx.client.clone());
    let apply = PatchParams::apply(names::field_manager::FINALIZER).force();
    call(api.patch(&name, &apply, &Patch::Apply(&patch))).await.map(drop)
}

/// True if our finalizer is on the profile.
pub fn is_present(observed: &ObservedProfile) -> bool {
    observed.meta.finalizers.iter().flatten().any(|finalizer| finalizer == names::FINALIZER)
}

/// Removes our finalizer and leaves those of others.
pub async fn remove(cx: &Context, profile: &str) -> Result<(), ApiError> {
    let api: Api<PartialObjectMeta<ToolSecurityProfile>> = Api::all(cx.client.clone());
    let Some(found) = call(api.get_metadata_opt(profile)).await? else { return Ok(()) };
    let mut finalizers = found.metadata.finalizers.unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != names::FINALIZER);
    // The resource version keeps this from losing a finalizer of another writer.
    let patch = json!({
        "metadata": {"resourceVersion": found.metadata.resource_version, "finalizers": finalizers},
    });
    let manager =
        PatchParams { field_manager: Some(names::field_manager::FINALIZER.to_owned()), ..PatchParams::default() };
    match call(api.patch_metadata(profile, &manager, &Patch::Merge(&patch))).await {
        Err(error) if !error.is_not_found() => Err(error),
        _ => Ok(()),
    }
}
