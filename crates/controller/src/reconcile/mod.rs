//! The lane of reconciliations. A reconciliation of a profile is `compile -> check -> dry run -> (params) -> apply ->
//! probe -> report`. Other lanes repair the generation in effect and write its parameters, independent of a waiting
//! reconciliation.

mod deletion;
mod enforce;
mod error;
mod progress;
mod report;
mod status;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use palisade_api::conditions::ConditionType;
use tokio::time::Instant;
use tracing::Instrument;

use self::{
    enforce::{Reconcile, is_begun, set_target},
    error::ReconcileError,
    progress::{AllProgress, Progress},
    status::write_status,
};
use crate::{
    apply::{dry_run, transition},
    context::{
        Context,
        state::{InForce, State},
    },
    generations::{
        compile,
        refuted::RefutedGeneration,
        target::{Decision, Generations, Target},
    },
    object_name::ProfileName,
    param_plan::profile_params::Summary,
    queue::{MinDelay, Requeue},
    removal::{finalizer, remove},
    status::conditions::{self, not_accepted},
    watch::store::ObservedProfile,
    waves::RolloutState,
};

/// Processes a profile in this lane.
pub fn work() -> impl Fn(Arc<Context>, ProfileName) -> BoxFuture<'static, Requeue> {
    let all = Arc::new(AllProgress::default());
    move |cx, profile| {
        let generation = cx.store.profile(&profile).and_then(|observed| observed.meta.generation);
        let span = tracing::info_span!("reconcile", profile = profile.as_str(), generation);
        let all = Arc::clone(&all);
        async move { reconcile_once(&cx, &all, &profile).await }.instrument(span).boxed()
    }
}

async fn reconcile_once(cx: &Arc<Context>, all: &AllProgress, profile: &str) -> Requeue {
    let state = cx.states.of(profile);
    let mut progress = all.take(profile);
    let start = Instant::now();
    let result = reconcile(cx, profile, &state, &mut progress).await;
    let took = start.elapsed();
    let next = match result {
        Ok(next) => {
            progress.failures = 0;
            cx.metrics.reconciles.ended("ok", took);
            next
        }
        Err(error) => {
            cx.metrics.reconciles.ended(error.result(), took);
            let after = backoff(&mut progress);
            tracing::warn!(%error, ?after, "reconciliation failed; will retry");
            Requeue::After(after)
        }
    };
    tracing::debug!(?took, ?next, "reconciled");
    // The progress of a deleted profile is not needed.
    if cx.states.get(profile).is_some() {
        all.put(profile, progress);
    }
    next
}

/// How long to wait after a failed reconcile.
fn backoff(progress: &mut Progress) -> Duration {
    progress.failures = progress.failures.saturating_add(1);
    palisade_runtime::delay(progress.failures, Duration::from_mins(1))
}

async fn reconcile(
    cx: &Arc<Context>,
    profile: &str,
    state: &State,
    progress: &mut Progress,
) -> Result<Requeue, ReconcileError> {
    let Some(observed) = cx.store.profile(profile) else { return deletion::finish(cx, profile, state).await };
    let uid = observed.meta.uid.clone().unwrap_or_default();
    if progress.uid != uid {
        // Another profile of the same name.
        remove::stop_writing(cx, profile, state).await;
        if !progress.uid.is_empty() {
            cx.registration.forget(profile);
        }
        *state.in_force() = InForce::default();
        *state.rollout() = RolloutState::default();
        *state.scan() = None;
        *progress = Progress { uid, ..Progress::default() };
    }
    if observed.meta.deletion_timestamp.is_some() {
        return deletion::delete(cx, profile, &observed, state, progress).await;
    }
    cx.store.follow(profile);
    finalizer::add(cx, &observed).await.map_err(ReconcileError::Finalizer)?;
    let mut later = MinDelay::default();
    let Decision { verdict, target } = decide(cx, profile, &observed, state, progress, &mut later).await?;
    let reconcile = Reconcile { cx, profile, observed: &observed, state, verdict: &verdict };
    match target {
        Target::Enforce(target) => reconcile.enforce(progress, &target, later).await,
        Target::Wait { kept, error } => {
            reconcile.report_missing_verdict(progress, kept.as_ref(), &error).await?;
            Err(ReconcileError::DryRun(error))
        }
        Target::Nothing => {
            let [programmed, enforced] = [ConditionType::Programmed, ConditionType::Enforced].map(not_accepted);
            let conditions = [conditions::accepted(&verdict), programmed, enforced];
            write_status(cx, &observed, progress, conditions, Summary::default()).await?;
            Ok(later.next())
        }
    }
}

/// Enters all generations of the profile, and decides which of them must be in effect.
async fn decide(
    cx: &Context,
    profile: &str,
    observed: &ObservedProfile,
    state: &State,
    progress: &mut Progress,
    later: &mut MinDelay,
) -> Result<Decision, ReconcileError> {
    let Progress { compile, generations, revision, dry_run, .. } = progress;
    let loaded = revision.load(&cx.client, &cx.compiler, observed, compile, generations).await;
    generations.set_in_force(state.in_force().accepted.clone());
    restore_last_good(cx, profile, observed, state, generations).await;
    let compiled = compile::verdict(&cx.compiler, observed, compile).await;
    match (loaded, &compiled) {
        (Ok(()), _) => {}
        (Err(error), Ok(_)) => tracing::warn!(%error, "could not read the last good spec"),
        // It may be the generation to enforce.
        (Err(error), Err(_)) => return Err(ReconcileError::LastGood(error)),
    }
    later.at(compile.again_in());
    generations.set_in_force(state.in_force().accepted.clone());
    generations.propose(observed.meta.generation, compiled, RefutedGeneration::reported(observed));
    let answer = match generations.candidate() {
        Some(candidate) => Some(dry_run::answer(cx, profile, state, &candidate, dry_run, later).await),
        None => None,
    };
    Ok(generations.decide(answer))
}

/// After a restart: maintains the generation that was last in effect, even before the next one is checked, unless the
/// next one is already partly in the cluster.
async fn restore_last_good(
    cx: &Context,
    profile: &str,
    observed: &ObservedProfile,
    state: &State,
    generations: &Generations,
) {
    let Some(last_good) = generations.to_restore(observed.meta.generation) else { return };
    if is_begun(cx, profile, observed.meta.generation.unwrap_or_default()) {
        return;
    }
    set_target(cx, profile, state, last_good);
    if let Err(error) = transition::put_in_force(cx, profile, state, last_good).await {
        tracing::warn!(%error, "could not restore the last good generation; will retry");
    }
}
