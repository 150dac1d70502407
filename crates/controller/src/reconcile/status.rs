//! The parts of the status that other lanes and stages observe: mutation, rollout and background scan.

use palisade_api::{EngineInForce, GeneratedStatus, MutationStatus, RolloutStatus, ScanStatus};

use palisade_compiler::selects;

use super::{
    error::ReconcileError,
    progress::Progress,
    report::{Namespaces, Report, report},
};
use crate::{
    context::Context,
    generations::accepted::AcceptedProfile,
    mutation::redirects,
    object_plan::outcomes::{self, ObjectSummary},
    param_plan::profile_params::Summary,
    status::Condition,
    watch::store::ObservedProfile,
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
    let (generated, objects_ready) = generated(cx, observed, in_force).unzip();
    let what =
        Report { conditions, namespaces, in_force, mutation, rollout, rolled_out, scan, generated, objects_ready };
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

/// The objects of spec.generate for the status, and the condition about them. The report of an earlier process is kept
/// until the lane has processed all namespaces.
fn generated(
    cx: &Context,
    observed: &ObservedProfile,
    in_force: Option<&AcceptedProfile>,
) -> Option<(GeneratedStatus, Condition)> {
    let in_force = in_force.filter(|in_force| !in_force.compiled.templates.is_empty())?;
    let all = cx.store.namespaces();
    let namespaces = all.iter().filter(|one| !one.terminating).map(|one| one.namespace.get());
    let selected: Vec<_> = namespaces.filter(|one| selects(&in_force.profile.spec, one)).map(|one| one.name).collect();
    let names = selected.iter().map(String::as_str);
    let mut summary = cx.object_outcomes.summary(&in_force.compiled.profile, in_force.generation(), names);
    if summary.pending > 0 {
        let status = observed.profile.as_ref().ok().and_then(|profile| profile.status.as_ref());
        let status = status.filter(|status| status.observed_generation == Some(in_force.generation()));
        if let Some(known) = status.and_then(|status| status.generated.clone()).filter(|_| summary.status.desired == 0)
        {
            summary = ObjectSummary { status: known, pending: 0 };
        }
    }
    let condition = outcomes::condition(&summary);
    Some((summary.status, condition))
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
