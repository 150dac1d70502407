//! Puts the target generation of a profile in effect, and reports its conditions.

use std::{ops::ControlFlow, sync::Arc, time::Duration};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::ObjectMeta, jiff::Timestamp};
use palisade_api::{conditions::Outcome, names};
use tokio::time::{Instant, timeout};

use super::{
    error::ReconcileError,
    progress::Progress,
    status::{engine, write_status},
};
use crate::{
    api_request::ApiError,
    apply::{dry_run, transition},
    context::{Context, state::State},
    generated::compare::needs_compilation,
    generations::accepted::{AcceptedProfile, Rejection, Verdict},
    mutation::mutate::{self, MutationState, mutate},
    object_name::ProfileName,
    pacing::Permit,
    param_plan::{jobs::PendingWrites, profile_params::Summary},
    probe::EnforcementAnswer,
    queue::{MinDelay, Requeue},
    registration::Wanted,
    status::{
        Condition,
        conditions::{self, not_programmed},
    },
    tenant_objects,
    watch::store::ObservedProfile,
};

/// The reconciliation of a profile with a target generation.
pub struct Reconcile<'a> {
    pub cx: &'a Arc<Context>,
    pub profile: &'a str,
    pub observed: &'a ObservedProfile,
    pub state: &'a State,
    /// The verdict on the proposed generation.
    pub verdict: &'a Verdict,
}

impl Reconcile<'_> {
    /// Puts `target` in effect, and reports.
    pub async fn enforce(
        &self,
        progress: &mut Progress,
        target: &Arc<AcceptedProfile>,
        mut later: MinDelay,
    ) -> Result<Requeue, ReconcileError> {
        let Self { cx, profile, observed, state, verdict } = *self;
        set_target(cx, profile, state, target);
        let changed = match self.put_in_force(progress, target, &mut later).await? {
            ControlFlow::Break(next) => return Ok(next),
            ControlFlow::Continue(changed) => changed,
        };
        let (confirmed, error, wrote) = {
            let in_force = state.in_force();
            (in_force.is_confirmed(), in_force.error.clone(), in_force.wrote)
        };
        if confirmed && !cx.stop.is_cancelled() {
            self.maintain(progress, target, &mut later).await;
        }
        later.at(target.exception_ends_in(Timestamp::now()));
        // The lane of parameters triggers this one when it has planned them.
        let Some(summary) = state.params().summary(target) else { return Ok(later.next()) };
        let unregistered = cx.registration.problem(profile);
        let error = error.or_else(|| unregistered.map(|problem| format!("the registration of the webhook: {problem}")));
        let programmed = conditions::programmed(verdict, error.as_deref(), &summary, target);
        let programmed = conditions::with_warning(programmed, cx.pacing.affected());
        let enforced = match self.enforced(progress, target, &programmed, &mut later) {
            ControlFlow::Break(next) => return Ok(next),
            ControlFlow::Continue(enforced) => enforced,
        };
        if let Some(enforced) = enforced.or_else(|| conditions::unless_known(observed, wrote)) {
            let enforced = conditions::with_missing(enforced, &summary);
            let enforced = conditions::with_stages(enforced, observed, summary.by_stage);
            let conditions = [conditions::accepted(verdict), programmed, enforced];
            write_status(cx, observed, progress, conditions, summary).await?;
        }
        changed.map(|()| later.next())
    }

    /// Puts `target` in effect, unless it is. Stops if the reconciliation must wait for parameters, or start again
    /// because the API server rejected the generation; otherwise continues with the result of the writes.
    async fn put_in_force(
        &self,
        progress: &mut Progress,
        target: &Arc<AcceptedProfile>,
        later: &mut MinDelay,
    ) -> Result<ControlFlow<Requeue, Result<(), ReconcileError>>, ReconcileError> {
        let Self { cx, profile, state, verdict, .. } = *self;
        if state.in_force().accepted.as_ref().is_some_and(|accepted| accepted.is_same(target)) {
            cx.pacing.forget(profile);
            return Ok(ControlFlow::Continue(Ok(())));
        }
        let begun = progress.revision.is_of(target.generation()) || is_begun(cx, profile, target.generation());
        let pending = if begun { PendingWrites::Nothing } else { self.pending(target) };
        if pending != PendingWrites::Nothing {
            if let PendingWrites::Until(at) = pending {
                later.at(Some(at.saturating_duration_since(Instant::now())));
            }
            self.report_pending(progress, target).await?;
            return Ok(ControlFlow::Break(later.next()));
        }
        if cx.stop.is_cancelled() {
            return Ok(ControlFlow::Break(Requeue::Change));
        }
        if let Some(next) = self.paced(progress, target, later).await {
            return Ok(ControlFlow::Break(next));
        }
        match transition::put_in_force(cx, profile, state, target).await {
            Err(error) if error.is_refusal() && verdict.is_ok() => {
                let rejection = Rejection::by_api_server("a policy or binding", &error);
                dry_run::reject(&mut progress.dry_run, target.generation(), rejection, later);
                // From here on, it is as if the dry run had failed.
                Ok(ControlFlow::Break(Requeue::After(Duration::ZERO)))
            }
            result => Ok(ControlFlow::Continue(result.map_err(ReconcileError::Apply))),
        }
    }

    /// When to try again, if API servers may not compile the policies of `target` now. An earlier generation is restored
    /// without a wait: requests depend on it.
    async fn paced(
        &self,
        progress: &mut Progress,
        target: &Arc<AcceptedProfile>,
        later: &mut MinDelay,
    ) -> Option<Requeue> {
        let Self { cx, profile, verdict, .. } = *self;
        if verdict.is_err() || !needs_compilation(&cx.store, profile, target) {
            return None;
        }
        match cx.pacing.permit(profile) {
            Permit::Now => return None,
            Permit::Unknown => {}
            Permit::After(wait) => {
                let due = Instant::now() + wait;
                let summary = self.state.params().summary(target).unwrap_or_default();
                let programmed = conditions::paced(&cx.pacing.affected().unwrap_or_default());
                // The status may be written late, the policies not.
                match timeout(wait, self.report_unprogrammed(progress, programmed, summary)).await {
                    Ok(Ok(())) => {}
                    Ok(Err(error)) => tracing::warn!(%error, "could not report that policies wait for the next round"),
                    Err(_) => tracing::warn!("could not report in time that policies wait for the next round"),
                }
                later.at(Some(due.saturating_duration_since(Instant::now())));
            }
        }
        Some(later.next())
    }

    /// Saves the generation in effect, and keeps the webhook and the engine that mutates pods as it requires.
    async fn maintain(&self, progress: &mut Progress, target: &Arc<AcceptedProfile>, later: &mut MinDelay) {
        let Self { cx, profile, observed, state, .. } = *self;
        progress.generations.set_last_good(Some(Arc::clone(target)));
        later.at(progress.revision.save(&cx.client, target).await);
        cx.registration.want(target, Wanted::of(target, engine(observed, progress)));
        later.at(mutate(cx, target, &mut progress.mutation).await);
        state.rollout().mutated = progress.mutation.as_ref().is_some_and(MutationState::is_as_declared);
        cx.queues.rollouts.schedule(ProfileName::new(profile), Duration::ZERO);
        cx.registration.want(target, Wanted::of(target, engine(observed, progress)));
    }

    /// The condition Enforced, from the answers of the probes; `None` if they are not known yet. Stops if the
    /// probes refute the generation: then the reconciliation starts again.
    fn enforced(
        &self,
        progress: &mut Progress,
        target: &Arc<AcceptedProfile>,
        programmed: &Condition,
        later: &mut MinDelay,
    ) -> ControlFlow<Requeue, Option<Condition>> {
        let unprobed = conditions::without_probe(self.verdict, programmed, target);
        let of_checks = unprobed.as_ref().is_some_and(|enforced| conditions::probes_denied_parts(enforced, target));
        let known = if unprobed.is_none() || of_checks {
            let (known, again) = self.cx.prober.enforcement(target);
            later.at(again);
            if known.as_ref().is_some_and(|known| self.is_refuted(progress, target, known)) {
                return ControlFlow::Break(Requeue::After(Duration::ZERO));
            }
            known
        } else {
            None
        };
        ControlFlow::Continue(match unprobed {
            // A check in Deny that is not enforced makes the profile not ready, whatever its stage is.
            Some(_) if known.as_ref().is_some_and(|known| !known.passed()) => known.map(|known| known.condition()),
            Some(enforced) if of_checks => {
                Some(conditions::with_denied_parts(enforced, known.map(|known| known.servers()), target))
            }
            Some(enforced) => {
                if enforced.reason.outcome() == Outcome::Current {
                    progress.generations.prove(target);
                }
                Some(enforced)
            }
            None => known.and_then(|known| mutate::enforced(known.condition(), progress.mutation.as_ref())),
        })
    }

    /// True if the probes refute the generation, and another one must be restored.
    fn is_refuted(&self, progress: &mut Progress, target: &Arc<AcceptedProfile>, known: &EnforcementAnswer) -> bool {
        if known.passed() {
            progress.generations.prove(target);
            return false;
        }
        let (generation, why) = (target.generation(), known.refutation());
        let Some(refuted) = why.and_then(|why| progress.generations.refute(generation, &why)) else { return false };
        let error = &refuted.rejection.message;
        tracing::warn!(profile = self.profile, generation, error, "probes refuted the profile");
        progress.revision.invalidate();
        true
    }

    /// Tells if the parameters of a new generation must be pending.
    fn pending(&self, target: &Arc<AcceptedProfile>) -> PendingWrites {
        match self.state.params().summary(target) {
            Some(_) => self.cx.jobs.pending(self.profile),
            None => PendingWrites::Some,
        }
    }

    /// Reports that parameters are being written, once the lane of parameters has planned all namespaces.
    async fn report_pending(
        &self,
        progress: &mut Progress,
        target: &Arc<AcceptedProfile>,
    ) -> Result<(), ReconcileError> {
        let Some(summary) = self.state.params().summary(target) else { return Ok(()) };
        let programmed = match self.verdict {
            Ok(_) => conditions::pending(&summary),
            Err(_) => conditions::programmed(self.verdict, None, &summary, target),
        };
        self.report_unprogrammed(progress, programmed, summary).await
    }

    /// Reports that a generation waits.
    async fn report_unprogrammed(
        &self,
        progress: &mut Progress,
        programmed: Condition,
        summary: Summary,
    ) -> Result<(), ReconcileError> {
        let enforced = not_programmed("the profile is not yet programmed");
        let conditions = [conditions::accepted(self.verdict), programmed, enforced];
        write_status(self.cx, self.observed, progress, conditions, summary).await
    }

    /// Reports that the API server gave no verdict on the proposed generation.
    pub async fn report_missing_verdict(
        &self,
        progress: &mut Progress,
        kept: Option<&Arc<AcceptedProfile>>,
        error: &ApiError,
    ) -> Result<(), ReconcileError> {
        let summary = kept.and_then(|kept| self.state.params().summary(kept)).unwrap_or_default();
        let enforced = not_programmed("the profile is not programmed");
        let conditions = [conditions::accepted(self.verdict), conditions::not_tried(error), enforced];
        write_status(self.cx, self.observed, progress, conditions, summary).await
    }
}

/// Makes this the generation that parameters are kept for.
pub fn set_target(cx: &Context, profile: &str, state: &State, target: &Arc<AcceptedProfile>) {
    cx.store.set_in_force(&target.profile);
    if state.params().set_target(target) {
        cx.queues.params.schedule(ProfileName::new(profile), Duration::ZERO);
        cx.queues.exceptions.trigger(cx.store.exceptions.namespaces_of(profile));
        tenant_objects::lane::trigger_target(cx, target);
    }
}

/// True if a part of a generation is in the cluster. Then its parameters are there, too, because they come first.
pub fn is_begun(cx: &Context, profile: &str, generation: i64) -> bool {
    let generation = generation.to_string();
    let of = |meta: &ObjectMeta| {
        meta.annotations.as_ref().and_then(|annotations| annotations.get(names::GENERATION_ANNOTATION))
            == Some(&generation)
    };
    cx.store.pairs(profile).iter().any(|pair| pair.metadata().any(of))
}
