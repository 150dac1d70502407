//! The lane of repairs: immediately restores policies and bindings in effect that another writer deletes or edits. It
//! awaits only its own writes, and no other work in the controller delays it: no reconciliation, no probe, no
//! parameters. The parameters are already written, because the generation is the same.

use std::sync::Arc;

use futures::{FutureExt, future::BoxFuture};
use tokio::time::Instant;

use super::transition::{self, MAX_RETRY_DELAY};
use crate::{context::Context, generated::compare::is_bundle, object_name::ProfileName, queue::Requeue};

/// Processes a profile in this lane.
pub fn work(cx: Arc<Context>, profile: ProfileName) -> BoxFuture<'static, Requeue> {
    async move { repair(&cx, &profile).await }.boxed()
}

async fn repair(cx: &Context, profile: &ProfileName) -> Requeue {
    let Some(state) = cx.states.get(profile) else { return Requeue::Change };
    let _writing = state.writing.lock().await;
    let Some(accepted) = state.in_force().accepted.clone() else { return Requeue::Change };
    if cx.stop.is_cancelled() || (is_bundle(&cx.store, profile, &accepted) && state.in_force().is_confirmed()) {
        return Requeue::Change;
    }
    let begin = Instant::now();
    let result = transition::write(cx, profile, &accepted, &state).await;
    cx.queues.reconcile.trigger([profile.clone()]);
    match result {
        Ok(()) => {
            tracing::info!(profile = profile.as_str(), took = ?begin.elapsed(), "restored policies and bindings");
            Requeue::Change
        }
        Err(error) => {
            let failures = state.in_force().failures;
            let after = palisade_runtime::delay(failures, MAX_RETRY_DELAY);
            tracing::warn!(profile = profile.as_str(), %error, ?after, "could not restore policies and bindings; will retry");
            Requeue::After(after)
        }
    }
}
