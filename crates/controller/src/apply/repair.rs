//! The lane of repairs: immediately restores policies and bindings in effect that another writer deletes or edits. It
//! awaits only its own writes, and no other work in the controller delays it: no reconciliation, no probe, no
//! parameters. The parameters are already written, because the generation is the same.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use tokio::time::{Instant, timeout};

use crate::{
    api_request::ApiError,
    apply::bundle,
    context::{Context, state::State},
    generated::compare::is_bundle,
    generations::accepted::AcceptedProfile,
    queue::Next,
};

/// How long a repair may take before it is retried. No webhook can delay writes of policies and bindings, so a later
/// answer will not come.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest time between two attempts.
const MOST: Duration = Duration::from_secs(15);

/// Processes a profile in this lane.
pub fn work(cx: Arc<Context>, profile: String) -> BoxFuture<'static, Next> {
    async move { repair(&cx, &profile).await }.boxed()
}

async fn repair(cx: &Context, profile: &str) -> Next {
    let Some(state) = cx.states.get(profile) else { return Next::Change };
    let _writing = state.writing.lock().await;
    let Some(accepted) = state.in_force().accepted.clone() else { return Next::Change };
    if cx.stop.is_cancelled() || (is_bundle(&cx.store, profile, &accepted) && state.in_force().is_confirmed()) {
        return Next::Change;
    }
    let begin = Instant::now();
    let result = write(cx, profile, &accepted, &state).await;
    cx.queues.reconcile.trigger([profile.to_owned()]);
    match result {
        Ok(()) => {
            tracing::info!(profile, took = ?begin.elapsed(), "restored policies and bindings");
            Next::Change
        }
        Err(error) => {
            let failures = state.in_force().failures;
            let after = palisade_process::delay(failures, MOST);
            tracing::warn!(profile, %error, ?after, "could not restore policies and bindings; will retry");
            Next::After(after)
        }
    }
}

/// Puts a generation in effect: from now on, repairs keep the cluster in its state. Its parameters must be written
/// before.
///
/// # Errors
///
/// If some objects could not be written. The lane retries, unless the API server rejects an object: then the previous
/// generation is completely restored.
pub async fn put_in_force(
    cx: &Context,
    profile: &str,
    state: &State,
    accepted: &Arc<AcceptedProfile>,
) -> Result<(), ApiError> {
    let _writing = state.writing.lock().await;
    let before = {
        let mut in_force = state.in_force();
        (in_force.error, in_force.failures) = (None, 0);
        in_force.accepted.replace(Arc::clone(accepted))
    };
    let result = write(cx, profile, accepted, state).await;
    if let Err(error) = &result {
        if let Some(before) = before.filter(|_| error.is_refusal()) {
            state.in_force().accepted = Some(Arc::clone(&before));
            if let Err(error) = write(cx, profile, &before, state).await {
                tracing::warn!(profile, %error, "could not restore the previous generation; will retry");
            }
        }
        cx.queues.repairs.schedule(profile.to_owned(), palisade_process::delay(1, MOST));
    }
    // The parameters to keep have changed.
    cx.queues.params.trigger([profile.to_owned()]);
    result
}

/// Stops repairs.
pub async fn stop(state: &State) {
    let _writing = state.writing.lock().await;
    state.in_force().accepted = None;
}

async fn write(cx: &Context, profile: &str, accepted: &AcceptedProfile, state: &State) -> Result<(), ApiError> {
    let written = timeout(LIMIT, bundle::bundle(cx, profile, accepted, state)).await;
    let result = written.unwrap_or(Err(ApiError::Timeout(LIMIT)));
    let mut in_force = state.in_force();
    match &result {
        Ok(()) => {
            in_force.confirmed = Some(accepted.generation());
            (in_force.error, in_force.failures) = (None, 0);
        }
        Err(error) => {
            in_force.error = Some(error.to_string());
            in_force.failures = in_force.failures.saturating_add(1);
        }
    }
    result
}
