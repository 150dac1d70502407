//! The transition from one generation in effect to another, and the end of repairs.

use std::{sync::Arc, time::Duration};

use tokio::{sync::MutexGuard, time::timeout};

use super::bundle;
use crate::{
    api_request::ApiError,
    context::{Context, state::State},
    generations::accepted::AcceptedProfile,
    object_name::ProfileName,
};

/// How long a write of all policies and bindings may take before it is retried. No webhook can delay these writes, so a
/// later answer will not come.
const WRITE_TIMEOUT: Duration = Duration::from_secs(10);
/// The longest time between two attempts.
pub const MAX_RETRY_DELAY: Duration = Duration::from_secs(15);

/// A generation that is being put in effect.
///
/// From its begin, repairs keep the cluster in the state of the new generation. It ends in one of three ways:
///
/// - All objects are written, as observed in the responses: the generation is confirmed.
/// - The API server rejects an object: the transition is taken back, and the previous generation completely restored.
/// - Any other failure: the lane of repairs writes the remaining objects of the new generation.
///
/// If the process stops before its end, the third way applies: a dropped transition leaves the new generation to
/// repairs.
#[must_use = "a transition must be finished"]
struct Transition<'a> {
    cx: &'a Context,
    profile: &'a str,
    state: &'a State,
    new: &'a AcceptedProfile,
    before: Option<Arc<AcceptedProfile>>,
    /// Neither repairs nor another transition write meanwhile.
    _writing: MutexGuard<'a, ()>,
}

impl<'a> Transition<'a> {
    async fn begin(cx: &'a Context, profile: &'a str, state: &'a State, new: &'a Arc<AcceptedProfile>) -> Self {
        let writing = state.writing.lock().await;
        let before = {
            let mut in_force = state.in_force();
            (in_force.error, in_force.failures) = (None, 0);
            in_force.accepted.replace(Arc::clone(new))
        };
        Self { cx, profile, state, new, before, _writing: writing }
    }

    async fn finish(self) -> Result<(), ApiError> {
        let cx = self.cx;
        let result = write(cx, self.profile, self.new, self.state).await;
        if let Err(error) = &result {
            if error.is_refusal() {
                self.take_back().await;
            }
            cx.queues.repairs.schedule(ProfileName::new(self.profile), palisade_runtime::delay(1, MAX_RETRY_DELAY));
        }
        // The parameters to keep have changed.
        cx.queues.params.trigger([ProfileName::new(self.profile)]);
        result
    }

    /// Restores the previous generation. Without one, the new one remains: its error is reported.
    async fn take_back(&self) {
        let Some(before) = &self.before else { return };
        self.state.in_force().accepted = Some(Arc::clone(before));
        if let Err(error) = write(self.cx, self.profile, before, self.state).await {
            tracing::warn!(profile = self.profile, %error, "could not restore the previous generation; will retry");
        }
    }
}

/// Puts a generation in effect. Its parameters must be written before.
///
/// # Errors
///
/// If some objects could not be written. The lane of repairs retries, unless the API server rejects an object: then the
/// previous generation is restored.
pub async fn put_in_force(
    cx: &Context,
    profile: &str,
    state: &State,
    accepted: &Arc<AcceptedProfile>,
) -> Result<(), ApiError> {
    Transition::begin(cx, profile, state, accepted).await.finish().await
}

/// Stops repairs.
pub async fn stop(state: &State) {
    let _writing = state.writing.lock().await;
    state.in_force().accepted = None;
}

/// Writes all policies and bindings of a generation, and remembers whether they are confirmed. The caller holds
/// [`State::writing`].
pub async fn write(cx: &Context, profile: &str, accepted: &AcceptedProfile, state: &State) -> Result<(), ApiError> {
    let written = timeout(WRITE_TIMEOUT, bundle::write(cx, profile, accepted, state)).await;
    let result = written.unwrap_or(Err(ApiError::Timeout(WRITE_TIMEOUT)));
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
