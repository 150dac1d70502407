//! The lane of reconciliations. A reconciliation of a profile is `compile -> check -> try -> (params) -> apply -> probe
//! -> report`. Other lanes repair the generation in effect and write its parameters, independent of a waiting
//! reconciliation.

pub mod progress;
pub mod report;

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use palisade_api::{
    EngineInForce, MutationStatus, RolloutStatus, ScanStatus,
    conditions::{ConditionType, Outcome},
    names,
};
use tokio::time::Instant;
use tracing::Instrument;

use crate::{
    api_request::{ApiError, SETTLE},
    apply::{
        dry_run::{self, Refuted},
        repair,
    },
    context::{
        Context,
        state::{InForce, State},
    },
    generations::{
        accepted::{AcceptedProfile, Rejection, Verdict},
        compile,
    },
    mutation::{
        mutate::{self, MutationState, mutate},
        redirects,
    },
    param_plan::{jobs::Awaited, profile_params::Summary},
    probe::EnforcementAnswer,
    queue::{Later, Next},
    reconcile::{
        progress::{AllProgress, Progress},
        report::{Namespaces, Report, report},
    },
    registration::Wanted,
    removal::{
        finalizer,
        remove::{self, RemoveError},
    },
    status::{
        Condition,
        conditions::{self, not_accepted, not_programmed},
    },
    watch::store::ObservedProfile,
    waves::RolloutState,
};

/// Error of a reconciliation. It is retried. An invalid profile is not an error here; the status reports it.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Before anything was written.
    #[error("the finalizer could not be added: {0}")]
    Finalizer(#[source] ApiError),
    /// Stage compile.
    #[error("the last good spec could not be read: {0}")]
    LastGood(#[source] ApiError),
    /// Stage try.
    #[error("the API server did not validate the policies and bindings: {0}")]
    Try(#[source] ApiError),
    /// Stage apply.
    #[error("a policy or binding could not be written: {0}")]
    Apply(#[source] ApiError),
    /// Stage report.
    #[error("the status could not be written: {0}")]
    Report(#[source] ApiError),
    /// Removal.
    #[error(transparent)]
    Remove(#[from] RemoveError),
}

impl ReconcileError {
    /// For metrics and logs.
    pub fn stage(&self) -> &'static str {
        match self {
            Self::Finalizer(_) => "finalizer_error",
            Self::LastGood(_) => "compile_error",
            Self::Try(_) => "try_error",
            Self::Apply(_) => "apply_error",
            Self::Report(_) => "report_error",
            Self::Remove(_) => "remove_error",
        }
    }
}

/// Processes a profile in this lane.
pub fn work() -> impl Fn(Arc<Context>, String) -> BoxFuture<'static, Next> {
    let all = Arc::new(AllProgress::default());
    move |cx, profile| {
        let generation = cx.store.profile(&profile).and_then(|observed| observed.meta.generation);
        let span = tracing::info_span!("reconcile", profile, generation);
        let all = Arc::clone(&all);
        async move { reconcile_once(&cx, &all, &profile).await }.instrument(span).boxed()
    }
}

async fn reconcile_once(cx: &Arc<Context>, all: &AllProgress, profile: &str) -> Next {
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
            cx.metrics.reconciles.ended(error.stage(), took);
            let after = backoff(&mut progress);
            tracing::warn!(%error, ?after, "reconciliation failed; will retry");
            Next::After(after)
        }
    };
    tracing::debug!(?took, ?next, "reconciled");
    // Nothing needs to remember a profile that is gone.
    if cx.states.get(profile).is_some() {
        all.put(profile, progress);
    }
    next
}

/// How long to wait after a failed reconcile.
fn backoff(progress: &mut Progress) -> Duration {
    progress.failures = progress.failures.saturating_add(1);
    palisade_process::delay(progress.failures, Duration::from_mins(1))
}

async fn reconcile(
    cx: &Arc<Context>,
    profile: &str,
    state: &State,
    progress: &mut Progress,
) -> Result<Next, ReconcileError> {
    let Some(observed) = cx.store.profile(profile) else { return profile_gone(cx, profile, state).await };
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
        return delete(cx, profile, &observed, state, progress).await;
    }
    cx.store.follow(profile);
    finalizer::add(cx, &observed).await.map_err(ReconcileError::Finalizer)?;
    let last = progress.last_good.load(&cx.client, &cx.compiler, &observed, &mut progress.compile).await;
    if let Ok(Some(last)) = &last {
        restore_last_good(cx, profile, &observed, state, last).await;
    }
    let verdict = compile::verdict(&cx.compiler, &observed, &mut progress.compile).await;
    let last = match (last, &verdict) {
        (Ok(last), _) => last,
        (Err(error), Ok(_)) => {
            tracing::warn!(%error, "could not read the last good spec");
            None
        }
        (Err(error), Err(_)) => return Err(ReconcileError::LastGood(error)),
    };
    let mut later = Later::default();
    later.at(progress.compile.again_in());
    let refuted = refuted(progress, &observed, last.as_ref());
    let verdict = match &refuted {
        Some(refuted) => verdict.and(Err(Arc::clone(&refuted.rejection))),
        None => verdict,
    };
    let (verdict, unknown) = match &verdict {
        Ok(accepted) => match dry_run::tried(cx, profile, state, accepted, &mut progress.trial, &mut later).await {
            Ok(verdict) => (verdict, None),
            Err(error) => (verdict, Some(error)),
        },
        Err(_) => (verdict, None),
    };
    let target = match &verdict {
        Ok(accepted) if unknown.is_none() => Some(Arc::clone(accepted)),
        // That one may still be in force.
        _ if refuted.is_some() => last,
        _ => state.in_force().accepted.clone().or(last),
    };
    let reconcile = Reconcile { cx, profile, observed: &observed, state, verdict: &verdict };
    match (target, unknown) {
        (Some(target), None) => reconcile.enforce(progress, &target, later).await,
        (Some(target), Some(error)) => {
            reconcile.not_tried(progress, Some(&target), &error).await?;
            Err(ReconcileError::Try(error))
        }
        (None, Some(error)) => {
            reconcile.not_tried(progress, None, &error).await?;
            Err(ReconcileError::Try(error))
        }
        (None, None) => {
            let [programmed, enforced] = [ConditionType::Programmed, ConditionType::Enforced].map(not_accepted);
            let conditions = [conditions::accepted(&verdict), programmed, enforced];
            write_status(cx, &observed, progress, conditions, Summary::default()).await?;
            Ok(later.next())
        }
    }
}

/// The refutation of the generation in the cluster by probes of this or an earlier process, if another generation was
/// restored.
fn refuted(
    progress: &mut Progress,
    observed: &ObservedProfile,
    last: Option<&Arc<AcceptedProfile>>,
) -> Option<Refuted> {
    let put_back = last.filter(|last| observed.meta.generation != Some(last.generation()))?;
    if progress.refuted.is_none() && progress.proven.is_none() {
        progress.refuted = Refuted::reported(observed);
        progress.proven = progress.refuted.is_some().then(|| Arc::clone(put_back));
    }
    progress.refuted.clone().filter(|refuted| observed.meta.generation == Some(refuted.generation))
}

/// The profile does not exist.
async fn profile_gone(cx: &Arc<Context>, profile: &str, state: &State) -> Result<Next, ReconcileError> {
    if state.in_force().accepted.is_some() || state.tenancy().has_target() {
        remove::stop_writing(cx, profile, state).await;
    }
    cx.prober.forget(profile);
    cx.registration.forget(profile);
    cx.metrics.forget(profile);
    // If somebody removed the finalizer by force, the garbage collector removes policies and bindings, and nobody
    // else the parameters. They go last, as always.
    if cx.jobs.is_busy(profile) || !cx.store.tenants(profile).params.is_empty() {
        if cx.store.pairs(profile).iter().any(|pair| pair.metadata().next().is_some()) {
            return Ok(Next::After(SETTLE));
        }
        if !remove::params(cx, profile, state).await? {
            return Ok(Next::After(Duration::from_millis(200)));
        }
    }
    cx.store.forget(profile);
    cx.states.forget(profile);
    cx.queues.exceptions.trigger(cx.store.asked.of_profile(profile).into_keys());
    Ok(Next::Change)
}

/// The profile is being deleted. It is not compiled, so that invalid profiles can be deleted.
async fn delete(
    cx: &Arc<Context>,
    profile: &str,
    observed: &ObservedProfile,
    state: &State,
    progress: &mut Progress,
) -> Result<Next, ReconcileError> {
    let accepted = state.in_force().accepted.clone().or_else(|| progress.last_good.get().cloned());
    progress.last_good.set(accepted.clone());
    if !progress.removal.is_done() {
        say_deleting(cx, observed, progress, None).await?;
    }
    let step = remove::step(cx, profile, observed, state, &mut progress.removal, accepted.as_deref());
    // If the controller stops here, the next one continues.
    match cx.stop.run_until_cancelled(step).await {
        Some(Ok(next)) => Ok(next),
        Some(Err(error)) => {
            say_deleting(cx, observed, progress, Some(&error.to_string())).await?;
            Err(error.into())
        }
        None => Ok(Next::Change),
    }
}

/// Reports that a profile is being deleted, with the error, if any. A rejection by the API server does not stop the
/// deletion.
async fn say_deleting(
    cx: &Context,
    observed: &ObservedProfile,
    progress: &mut Progress,
    error: Option<&str>,
) -> Result<(), ReconcileError> {
    // No generation is in force now: no namespace is judged, and no pod mutated.
    match report(cx, observed, &mut progress.report, Report::of(conditions::deleting(error))).await {
        Err(error) if error.is_not_found() => Ok(()),
        Err(error) if error.is_refusal() => {
            tracing::warn!(%error, "could not report that the profile is being deleted; deleting it nevertheless");
            Ok(())
        }
        said => said.map_err(ReconcileError::Report),
    }
}

/// After a restart: maintains the generation that was last in effect, even before the next one is checked, unless the
/// next one is already partly in the cluster.
async fn restore_last_good(
    cx: &Context,
    profile: &str,
    observed: &ObservedProfile,
    state: &State,
    last: &Arc<AcceptedProfile>,
) {
    let generation = observed.meta.generation.unwrap_or_default();
    if state.in_force().accepted.is_some() || last.generation() == generation || is_begun(cx, profile, generation) {
        return;
    }
    set_target(cx, profile, state, last);
    if let Err(error) = repair::put_in_force(cx, profile, state, last).await {
        tracing::warn!(%error, "could not restore the last good generation; will retry");
    }
}

/// True if a part of a generation is in the cluster. Then its parameters are there, too, because they come first.
fn is_begun(cx: &Context, profile: &str, generation: i64) -> bool {
    let generation = generation.to_string();
    let of = |meta: &ObjectMeta| {
        meta.annotations.as_ref().and_then(|annotations| annotations.get(names::GENERATION_ANNOTATION))
            == Some(&generation)
    };
    cx.store.pairs(profile).iter().any(|pair| pair.metadata().any(of))
}

/// Makes this the generation that parameters are kept for.
fn set_target(cx: &Context, profile: &str, state: &State, target: &Arc<AcceptedProfile>) {
    cx.store.set_in_force(&target.profile);
    if state.tenancy().set_target(target) {
        cx.queues.params.schedule(profile.to_owned(), Duration::ZERO);
        cx.queues.exceptions.trigger(cx.store.asked.of_profile(profile).into_keys());
    }
}

async fn write_status(
    cx: &Context,
    observed: &ObservedProfile,
    progress: &mut Progress,
    conditions: [Condition; 3],
    summary: Summary,
) -> Result<(), ReconcileError> {
    let in_force = progress.last_good.get().map(AsRef::as_ref);
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
        Some(state) => state.status.clone().map(|status| match progress.last_good.get() {
            Some(in_force) => redirects::add_conflicts(&cx.store, &in_force.profile, status),
            None => status,
        }),
        // The observation of an earlier process holds until the first probe.
        None => observed.profile.as_ref().ok().and_then(|known| known.status.as_ref()?.mutation.clone()),
    }
}

/// The reconciliation of a profile with a generation to put in effect.
struct Reconcile<'a> {
    cx: &'a Arc<Context>,
    profile: &'a str,
    observed: &'a ObservedProfile,
    state: &'a State,
    verdict: &'a Verdict,
}

impl Reconcile<'_> {
    /// Puts `target` in effect, and reports.
    async fn enforce(
        &self,
        progress: &mut Progress,
        target: &Arc<AcceptedProfile>,
        mut later: Later,
    ) -> Result<Next, ReconcileError> {
        let Self { cx, profile, observed, state, verdict } = *self;
        set_target(cx, profile, state, target);
        let in_force = state.in_force().accepted.as_ref().is_some_and(|accepted| accepted.is_same(target));
        let mut changed = Ok(());
        if !in_force {
            let begun = progress.last_good.is_saved(target.generation()) || is_begun(cx, profile, target.generation());
            let awaited = if begun { Awaited::Nothing } else { self.awaited(target) };
            if awaited != Awaited::Nothing {
                if let Awaited::Until(at) = awaited {
                    later.at(Some(at.saturating_duration_since(Instant::now())));
                }
                self.pending(progress, target).await?;
                return Ok(later.next());
            }
            if cx.stop.is_cancelled() {
                return Ok(Next::Change);
            }
            match repair::put_in_force(cx, profile, state, target).await {
                Err(error) if error.is_refusal() && verdict.is_ok() => {
                    let rejection = Rejection::by_api_server("a policy or binding", &error);
                    dry_run::reject(&mut progress.trial, target.generation(), rejection, &mut later);
                    // From here on, it is as if the dry run had failed.
                    return Ok(Next::After(Duration::ZERO));
                }
                result => changed = result.map_err(ReconcileError::Apply),
            }
        }
        let (confirmed, error, wrote) = {
            let in_force = state.in_force();
            (in_force.is_confirmed(), in_force.error.clone(), in_force.wrote)
        };
        if confirmed && !cx.stop.is_cancelled() {
            later.at(progress.last_good.save(&cx.client, target).await);
            cx.registration.want(target, Wanted::of(target, engine(observed, progress)));
            later.at(mutate(cx, target, &mut progress.mutation).await);
            state.rollout().mutated = progress.mutation.as_ref().is_some_and(MutationState::is_as_declared);
            cx.queues.rollouts.schedule(profile.to_owned(), Duration::ZERO);
            cx.registration.want(target, Wanted::of(target, engine(observed, progress)));
        }
        later.at(target.exception_ends_in(Timestamp::now()));
        // The lane of parameters triggers this one when it has planned them.
        let Some(summary) = state.tenancy().summary(target) else { return Ok(later.next()) };
        let unregistered = cx.registration.problem(profile);
        let error = error.or_else(|| unregistered.map(|problem| format!("the registration of the webhook: {problem}")));
        let programmed = conditions::programmed(verdict, error.as_deref(), &summary, target);
        let unprobed = conditions::without_probe(verdict, &programmed, target);
        let of_checks = unprobed.as_ref().is_some_and(|enforced| conditions::probes_checks(enforced, target));
        let known = if unprobed.is_none() || of_checks {
            let (known, again) = cx.prober.enforcement(target);
            later.at(again);
            if known.as_ref().is_some_and(|known| self.weigh(progress, target, known)) {
                return Ok(Next::After(Duration::ZERO));
            }
            known
        } else {
            None
        };
        let enforced = match unprobed {
            // A check in Deny that is not enforced makes the profile not ready, whatever its stage is.
            Some(_) if known.as_ref().is_some_and(|known| !known.passed()) => known.map(|known| known.condition()),
            Some(enforced) if of_checks => {
                Some(conditions::with_checks(enforced, known.map(|known| known.servers()), target))
            }
            Some(enforced) => {
                if enforced.reason.outcome() == Outcome::Current {
                    progress.proven = Some(Arc::clone(target));
                }
                Some(enforced)
            }
            None => known.and_then(|known| mutate::enforced(known.condition(), progress.mutation.as_ref())),
        };
        if let Some(enforced) = enforced.or_else(|| conditions::unless_known(observed, wrote)) {
            let enforced = conditions::with_missing(enforced, &summary);
            let enforced = conditions::with_stages(enforced, observed, summary.by_stage);
            let conditions = [conditions::accepted(verdict), programmed, enforced];
            write_status(cx, observed, progress, conditions, summary).await?;
        }
        changed.map(|()| later.next())
    }

    /// Remembers a generation that the probes passed. Or puts the one before it back, if they refute it: then it returns
    /// true. A generation that has passed them once stays, whatever becomes of the cluster: no edit is to blame.
    fn weigh(&self, progress: &mut Progress, target: &Arc<AcceptedProfile>, known: &EnforcementAnswer) -> bool {
        let generation = target.generation();
        if known.passed() {
            progress.proven = Some(Arc::clone(target));
            return false;
        }
        let before = progress.proven.clone().filter(|proven| proven.generation() != generation);
        let (Some(before), Some(why)) = (before, known.refutation()) else { return false };
        let refuted = Refuted::new(generation, &why, before.generation());
        let error = &refuted.rejection.message;
        tracing::warn!(profile = self.profile, generation, error, "probes refuted the profile");
        progress.last_good.put_back(&before);
        progress.refuted = Some(refuted);
        true
    }

    /// Tells if the parameters of a new generation must be awaited.
    fn awaited(&self, target: &Arc<AcceptedProfile>) -> Awaited {
        match self.state.tenancy().summary(target) {
            Some(_) => self.cx.jobs.awaited(self.profile),
            None => Awaited::Some,
        }
    }

    /// Reports that parameters are being written, once the lane of parameters has planned all namespaces.
    async fn pending(&self, progress: &mut Progress, target: &Arc<AcceptedProfile>) -> Result<(), ReconcileError> {
        let Some(summary) = self.state.tenancy().summary(target) else { return Ok(()) };
        let programmed = match self.verdict {
            Ok(_) => conditions::pending(&summary),
            Err(_) => conditions::programmed(self.verdict, None, &summary, target),
        };
        let enforced = not_programmed("the profile is not yet programmed");
        let conditions = [conditions::accepted(self.verdict), programmed, enforced];
        write_status(self.cx, self.observed, progress, conditions, summary).await
    }

    /// Reports that the API server gave no verdict on a generation.
    async fn not_tried(
        &self,
        progress: &mut Progress,
        target: Option<&Arc<AcceptedProfile>>,
        error: &ApiError,
    ) -> Result<(), ReconcileError> {
        let summary = target.and_then(|target| self.state.tenancy().summary(target)).unwrap_or_default();
        let enforced = not_programmed("the profile is not programmed");
        let conditions = [conditions::accepted(self.verdict), conditions::not_tried(error), enforced];
        write_status(self.cx, self.observed, progress, conditions, summary).await
    }
}

/// The engine that a probe observed; the observation of an earlier process holds until the first probe.
fn engine(observed: &ObservedProfile, progress: &Progress) -> Option<EngineInForce> {
    match &progress.mutation {
        Some(turn) => turn.status.as_ref().map(|status| status.engine),
        None => Some(observed.profile.as_ref().ok()?.status.as_ref()?.mutation.as_ref()?.engine),
    }
}
