//! The parts of the status that other lanes and stages observe: mutation, rollout and background scan.

use palisade_api::{EngineInForce, MutationStatus, RolloutStatus, ScanStatus};

use super::{
    error::ReconcileError,
    progress::Progress,
    report::{Namespaces, Report, report},
};
use crate::{
    context::Context, generations::accepted::AcceptedProfile, mutation::redirects, param_plan::profile_params::Summary,
    status::Condition, watch::store::ObservedProfile,
};

/// Writes the status of a profile that is not being deleted.
pub async fn write_status(
    cx: &Context,
    observed: &ObservedProfile,
    progress: &mut Progress,
    conditions: [Condition; 3],
    summary: Summary,
) -> Result<(), ReconcileError> {
    let in_force = progress.generations.last_good().map(AsRef::as_ref);
    let mutation = mutation(cx, observed, progress);
    let rollout = rollout(cx, observed, in_force);
    let state = cx.states.of(observed.meta.name.as_deref().unwrap_or_default());
    let rolled_out = rollout.as_ref().map(|rollout| state.rollout().condition(observed, rollout));
    let scan = scan(cx, observed);
    let namespaces = Namespaces::of(summary);
    let what = Report { conditions, namespaces, in_force, mutation, rollout, rolled_out, scan };
    report(cx, observed, &mut progress.report, what).await.map_err(ReconcileError::Report)
}

/// The progress of the rollout for the status. The report of an earlier process is kept until the lane has run.
fn rollout(cx: &Context, observed: &ObservedProfile, in_force: Option<&AcceptedProfile>) -> Option<RolloutStatus> {
    in_force?.profile.spec.rollout.as_ref()?;
    let state = cx.states.of(observed.meta.name.as_deref()?);
    let known = state.rollout().status.clone();
    known.or_else(|| observed.profile.as_ref().ok()?.status.as_ref()?.rollout.clone())
}

/// The result of the background scan for the status. The report of an earlier process is kept until the scan has run.
fn scan(cx: &Context, observed: &ObservedProfile) -> Option<ScanStatus> {
    if !cx.scans {
        return None;
    }
    let state = cx.states.of(observed.meta.name.as_deref()?);
    let known = state.scan().clone();
    known.or_else(|| observed.profile.as_ref().ok()?.status.as_ref()?.scan.clone())
}

/// Which engine mutates pods, for the status.
fn mutation(cx: &Context, observed: &ObservedProfile, progress: &Progress) -> Option<MutationStatus> {
    match &progress.mutation {
        Some(state) => state.status.clone().map(|status| match progress.generations.last_good() {
            Some(in_force) => redirects::add_conflicts(&cx.store, &in_force.profile, status),
            None => status,
        }),
        // The observation of an earlier process holds until the first probe.
        None => observed.profile.as_ref().ok().and_then(|known| known.status.as_ref()?.mutation.clone()),
    }
}

/// The engine that a probe observed; the observation of an earlier process holds until the first probe.
pub fn engine(observed: &ObservedProfile, progress: &Progress) -> Option<EngineInForce> {
    match &progress.mutation {
        Some(turn) => turn.status.as_ref().map(|status| status.engine),
        None => Some(observed.profile.as_ref().ok()?.status.as_ref()?.mutation.as_ref()?.engine),
    }
}
