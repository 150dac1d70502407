//! Profiles that are being deleted, and profiles that no longer exist.

use std::{sync::Arc, time::Duration};

use super::{
    error::ReconcileError,
    progress::Progress,
    report::{Report, report},
};
use crate::{
    api_request::POLICY_PROPAGATION,
    context::{Context, state::State},
    queue::Requeue,
    removal::remove,
    status::conditions,
    tenant_objects,
    watch::store::ObservedProfile,
};

/// The profile does not exist.
pub async fn finish(cx: &Arc<Context>, profile: &str, state: &State) -> Result<Requeue, ReconcileError> {
    if state.in_force().accepted.is_some() || state.params().has_target() {
        remove::stop_writing(cx, profile, state).await;
    }
    cx.prober.forget(profile);
    cx.registration.forget(profile);
    cx.pacing.forget(profile);
    cx.metrics.forget(profile);
    // If the finalizer was removed by force, the garbage collector deletes policies and bindings, but not the
    // parameters. They are deleted last, as always.
    if cx.jobs.is_busy(profile) || !cx.store.tenants(profile).params.is_empty() {
        if cx.store.pairs(profile).iter().any(|pair| pair.metadata().next().is_some()) {
            return Ok(Requeue::After(POLICY_PROPAGATION));
        }
        if !remove::params(cx, profile, state).await? {
            return Ok(Requeue::After(Duration::from_millis(200)));
        }
    }
    tenant_objects::lane::trigger_existing(cx, profile);
    cx.object_outcomes.forget(profile);
    cx.store.forget(profile);
    cx.states.forget(profile);
    cx.queues.exceptions.trigger(cx.store.exceptions.namespaces_of(profile));
    Ok(Requeue::Change)
}

/// The profile is being deleted. It is not compiled, so that invalid profiles can be deleted.
pub async fn delete(
    cx: &Arc<Context>,
    profile: &str,
    observed: &ObservedProfile,
    state: &State,
    progress: &mut Progress,
) -> Result<Requeue, ReconcileError> {
    progress.generations.set_in_force(state.in_force().accepted.clone());
    let accepted = progress.generations.kept().cloned();
    progress.generations.set_last_good(accepted.clone());
    if !progress.removal.is_done() {
        report_deletion(cx, observed, progress, None).await?;
    }
    let step = remove::step(cx, profile, observed, state, &mut progress.removal, accepted.as_deref());
    // If the controller stops here, the next one continues.
    match cx.stop.run_until_cancelled(step).await {
        Some(Ok(next)) => Ok(next),
        Some(Err(error)) => {
            report_deletion(cx, observed, progress, Some(&error.to_string())).await?;
            Err(error.into())
        }
        None => Ok(Requeue::Change),
    }
}

/// Reports that a profile is being deleted, with the error, if any. A rejection by the API server does not stop the
/// deletion.
async fn report_deletion(
    cx: &Context,
    observed: &ObservedProfile,
    progress: &mut Progress,
    error: Option<&str>,
) -> Result<(), ReconcileError> {
    // No generation is in effect now: no namespace is enforced, and no pod mutated.
    match report(cx, observed, &mut progress.report, Report::of(conditions::deleting(error))).await {
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.is_refusal() => {
            tracing::warn!(%error, "could not report that the profile is being deleted; deleting it nevertheless");
            Ok(())
        }
        result => result.map_err(ReconcileError::Report),
    }
}
