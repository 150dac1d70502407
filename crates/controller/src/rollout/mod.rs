//! The lane of rollouts: promotes namespaces to stricter stages in waves, as specified in `spec.rollout`.
//!
//! A namespace is promoted by its label, and only if all of its objects comply. The labels determine the behaviour of
//! the API server and are the starting point of the next process; the status has the number of the wave and the start
//! of its soak time. If any of it is lost, a wave starts again, and no namespace becomes weaker.

mod error;
mod promote;
mod step;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use palisade_api::RolloutPhase;

use self::step::RolloutStep;
use crate::{
    context::{Context, state::State},
    object_name::ProfileName,
    queue::Requeue,
};

/// The longest pause after a failure.
const MAX_RETRY_DELAY: Duration = Duration::from_mins(1);

/// Processes a profile in this lane.
pub fn work(cx: Arc<Context>, profile: ProfileName) -> BoxFuture<'static, Requeue> {
    async move {
        let Some(state) = cx.states.get(&profile) else { return Requeue::Change };
        go_on(&cx, &profile, &state).await
    }
    .boxed()
}

async fn go_on(cx: &Arc<Context>, profile: &str, state: &Arc<State>) -> Requeue {
    let Some(observed) = cx.store.profile(profile) else { return Requeue::Change };
    let accepted = {
        let in_force = state.in_force();
        in_force.accepted.clone().filter(|_| in_force.is_confirmed())
    };
    let Some(accepted) = accepted else { return Requeue::Change };
    let Some(rollout) = accepted.profile.spec.rollout.as_ref() else {
        state.rollout().status = None;
        return Requeue::Change;
    };
    if observed.meta.deletion_timestamp.is_some() || cx.stop.is_cancelled() {
        return Requeue::Change;
    }
    let step = RolloutStep { cx, profile, observed: &observed, state, accepted: &accepted, rollout };
    let mut status = step.status();
    let result = step.take(&mut status).await;
    let failures = {
        let mut memory = state.rollout();
        memory.failures = if result.is_ok() { 0 } else { memory.failures.saturating_add(1) };
        memory.failures
    };
    let next = match result {
        Ok(next) => next,
        Err(error) => {
            tracing::warn!(profile, %error, "the rollout failed; will retry");
            status.phase = RolloutPhase::Failed;
            status.message = error.to_string();
            Requeue::After(palisade_runtime::delay(failures, MAX_RETRY_DELAY))
        }
    };
    step.publish(status);
    next
}
