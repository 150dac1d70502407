//! A profile is being deleted: removes all that was made for it, in an order that never denies.
//!
//! The bindings go first: without one a policy judges nothing. Then the API server is given the time to see that,
//! for parameters that go before would deny. Each step may find its work done: whatever interrupts this, it can be
//! begun again.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::PartialObjectMeta,
};
use palisade_api::{
    Stage, ToolSecurityParams, ToolSecurityProfile,
    names::{self, Shape},
};
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::{
    apply::{delete_params, has_finalizer},
    call::{ApiError, call, gone},
    compile::Good,
    memory::SETTLE,
    mutate,
    reconcile::Context,
    revision,
    world::ObservedProfile,
};

/// How long the API server is asked whether it has seen that the binding is gone.
const LIMIT: Duration = Duration::from_secs(5);

/// Why a profile could not be removed yet.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    /// The binding.
    #[error("a binding could not be deleted: {0}")]
    Binding(#[source] ApiError),
    /// The policy.
    #[error("a policy could not be deleted: {0}")]
    Policy(#[source] ApiError),
    /// The parameters could not be listed.
    #[error("the parameters could not be listed: {0}")]
    List(#[source] ApiError),
    /// Some parameters.
    #[error("the parameters in {namespace} and {more} more namespaces could not be deleted: {error}")]
    Params {
        /// The first of them.
        namespace: String,
        /// How many there are besides.
        more: usize,
        /// Why.
        #[source]
        error: ApiError,
    },
    /// The last good spec.
    #[error("the last good spec could not be deleted: {0}")]
    Revision(#[source] ApiError),
    /// The finalizer.
    #[error("the finalizer could not be removed: {0}")]
    Finalizer(#[source] ApiError),
}

/// Removes all of it, and lets the profile go.
pub async fn remove(
    cx: &Context,
    profile: &str,
    observed: &ObservedProfile,
    good: Option<Arc<Good>>,
) -> Result<(), RemoveError> {
    if !has_finalizer(observed) {
        return Ok(());
    }
    let mut bound = false;
    for shape in Shape::ALL {
        bound |= bindings(cx, profile, shape).await.map_err(RemoveError::Binding)?;
    }
    if bound || cx.world.pairs(profile).iter().any(|pair| pair.policy.is_some()) {
        tracing::info!(profile, "the bindings are deleted");
        released(cx, good.as_deref()).await;
    }
    mutate::remove(cx, profile).await.map_err(RemoveError::Policy)?;
    for shape in Shape::ALL {
        policy(cx, profile, shape).await.map_err(RemoveError::Policy)?;
    }
    params(cx, profile).await?;
    revision::delete(&cx.client, profile).await.map_err(RemoveError::Revision)?;
    if cx.world.has_namespace(names::PROBE_NAMESPACE)
        && let Err(error) = cx.prober.unlabel().await
    {
        // The next probe sets its own.
        tracing::debug!(%error, "the labels of the probe namespace stay");
    }
    finalizer(cx, profile).await.map_err(RemoveError::Finalizer)?;
    tracing::info!(profile, "all that was made for the profile is removed");
    Ok(())
}

/// Deletes the bindings of a shape. Returns whether there were any.
pub async fn bindings(cx: &Context, profile: &str, shape: Shape) -> Result<bool, ApiError> {
    let mut deleted = false;
    for name in [names::policy(profile, shape), names::updates(profile, shape)] {
        deleted |= delete_binding(cx, &name).await?;
    }
    Ok(deleted)
}

/// Deletes a binding. Returns whether there was one.
pub async fn delete_binding(cx: &Context, name: &str) -> Result<bool, ApiError> {
    let api: Api<ValidatingAdmissionPolicyBinding> = Api::all(cx.client.clone());
    let deleted = gone(api.delete(name, &DeleteParams::default())).await?;
    cx.world.deleted_binding(name);
    Ok(deleted)
}

/// Deletes the policy of a shape.
pub async fn policy(cx: &Context, profile: &str, shape: Shape) -> Result<(), ApiError> {
    let api: Api<ValidatingAdmissionPolicy> = Api::all(cx.client.clone());
    let name = names::policy(profile, shape);
    gone(api.delete(&name, &DeleteParams::default())).await?;
    cx.world.deleted_policy(&name);
    Ok(())
}

/// Waits until the API server judges by the policy no more.
async fn released(cx: &Context, good: Option<&Good>) {
    let start = Instant::now();
    let can_be_seen = good.filter(|good| good.compiled.stage == Stage::Deny);
    while let Some(good) = can_be_seen
        && start.elapsed() < LIMIT
    {
        match cx.prober.denies(good).await {
            Some(true) => sleep(Duration::from_millis(200)).await,
            // There may be other API servers, which read bindings about once a second as well.
            Some(false) => return sleep(SETTLE.saturating_sub(start.elapsed())).await,
            None => break,
        }
    }
    sleep(SETTLE).await;
}

/// Deletes the profile's parameters, as the API server lists them.
pub async fn params(cx: &Context, profile: &str) -> Result<(), RemoveError> {
    let api: Api<PartialObjectMeta<ToolSecurityParams>> = Api::all(cx.client.clone());
    let mut page = ListParams::default().fields(&format!("metadata.name={}", names::params(profile))).limit(500);
    loop {
        let list = call(api.list_metadata(&page)).await.map_err(RemoveError::List)?;
        let namespaces = list.items.into_iter().filter_map(|params| params.metadata.namespace).collect();
        let mut failed = delete_params(cx, profile, namespaces).await;
        if let Some((namespace, error)) = failed.pop() {
            return Err(RemoveError::Params { namespace, more: failed.len(), error });
        }
        match list.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => page = page.continue_token(&token),
            None => return Ok(()),
        }
    }
}

async fn finalizer(cx: &Context, profile: &str) -> Result<(), ApiError> {
    let api: Api<PartialObjectMeta<ToolSecurityProfile>> = Api::all(cx.client.clone());
    let Some(found) = call(api.get_metadata_opt(profile)).await? else { return Ok(()) };
    let mut finalizers = found.metadata.finalizers.unwrap_or_default();
    finalizers.retain(|finalizer| finalizer != names::FINALIZER);
    // With the resource version, so that no finalizer of someone else is lost.
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
