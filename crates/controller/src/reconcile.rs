//! The lane of passes: one over one profile is `compile -> check -> try -> (params) -> apply -> probe -> report`. What a
//! generation that is in force needs, its repair and its parameters, is done in other lanes, whatever a pass waits for.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::jiff::Timestamp;
use palisade_api::{EngineInForce, conditions::ConditionType, names};
use tokio::time::Instant;
use tracing::Instrument;

use crate::{
    apply,
    call::ApiError,
    compile::{self, Good, LastGoodError, Panicked, Refused, Verdict},
    conditions::{self, not_accepted, not_programmed},
    context::Context,
    lane::{Later, Next},
    memory::Memory,
    mutate::{self, mutate},
    params::Summary,
    registration::Wanted,
    remove::{self, RemoveError},
    repair,
    report::{Namespaces, report},
    state::{InForce, SETTLE, State},
    status::Judgement,
    trial::{self, Tried},
    world::ObservedProfile,
    writer::Awaited,
};

/// Why a pass failed. It is tried again; what is wrong with a profile is no error but in its status.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Before anything was written.
    #[error("the finalizer could not be added: {0}")]
    Finalizer(#[source] ApiError),
    /// Stage check.
    #[error(transparent)]
    Check(#[from] Panicked),
    /// Stage compile.
    #[error("the last good spec is not known: {0}")]
    LastGood(#[source] LastGoodError),
    /// Stage try.
    #[error("whether the API server takes the policies and bindings could not be found out: {0}")]
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
            Self::Check(_) => "check_error",
            Self::LastGood(_) => "compile_error",
            Self::Try(_) => "try_error",
            Self::Apply(_) => "apply_error",
            Self::Report(_) => "report_error",
            Self::Remove(_) => "remove_error",
        }
    }
}

/// A turn of this lane.
pub fn work(cx: Arc<Context>, profile: String) -> BoxFuture<'static, Next> {
    let generation = cx.world.profile(&profile).and_then(|observed| observed.meta.generation);
    let span = tracing::info_span!("reconcile", profile, generation);
    async move { turn(&cx, &profile).await }.instrument(span).boxed()
}

async fn turn(cx: &Arc<Context>, profile: &str) -> Next {
    let state = cx.states.of(profile);
    let mut memory = state.take_memory();
    let start = Instant::now();
    let result = reconcile(cx, profile, &state, &mut memory).await;
    let took = start.elapsed();
    let next = match result {
        Ok(next) => {
            memory.failures = 0;
            cx.metrics.reconciled("ok", took);
            next
        }
        Err(error) => {
            cx.metrics.reconciled(error.stage(), took);
            let after = backoff(&mut memory);
            tracing::warn!(%error, ?after, "the pass failed and is tried again");
            Next::After(after)
        }
    };
    tracing::debug!(?took, ?next, "pass");
    state.put_memory(memory);
    next
}

/// How long to wait after a pass that failed.
fn backoff(memory: &mut Memory) -> Duration {
    memory.failures = memory.failures.saturating_add(1);
    palisade_process::delay(memory.failures, Duration::from_mins(1))
}

async fn reconcile(
    cx: &Arc<Context>,
    profile: &str,
    state: &State,
    memory: &mut Memory,
) -> Result<Next, ReconcileError> {
    let Some(observed) = cx.world.profile(profile) else { return gone(cx, profile, state).await };
    let uid = observed.meta.uid.clone().unwrap_or_default();
    if memory.uid != uid {
        // Another profile of the same name.
        remove::leave(cx, profile, state).await;
        if !memory.uid.is_empty() {
            cx.registration.forget(profile);
        }
        *state.in_force() = InForce::default();
        *memory = Memory { uid, ..Memory::default() };
    }
    if observed.meta.deletion_timestamp.is_some() {
        return deleted(cx, profile, &observed, state, memory).await;
    }
    cx.world.follow(profile);
    apply::finalizer(cx, &observed).await.map_err(ReconcileError::Finalizer)?;
    let last = compile::last_good(&cx.client, &cx.checks, &observed, memory).await;
    if let Ok(Some(last)) = &last {
        keep_last(cx, profile, &observed, state, last).await;
    }
    let verdict = match compile::verdict(&cx.checks, &observed, memory).await {
        Ok(verdict) => verdict,
        Err(panicked) => {
            let [programmed, enforced] = [ConditionType::Programmed, ConditionType::Enforced].map(not_accepted);
            let conditions = [conditions::not_judged(&panicked), programmed, enforced];
            say(cx, &observed, memory, conditions, Summary::default()).await?;
            return Err(panicked.into());
        }
    };
    let last = match (last, &verdict) {
        (Ok(last), _) => last,
        (Err(error), Ok(_)) => {
            tracing::warn!(%error, "the last good spec is not known");
            None
        }
        (Err(error), Err(_)) => return Err(ReconcileError::LastGood(error)),
    };
    let mut later = Later::default();
    let (verdict, unknown) = match &verdict {
        Ok(good) => match tried(cx, profile, state, good, memory, &mut later).await {
            Ok(verdict) => (verdict, None),
            Err(error) => (verdict, Some(error)),
        },
        Err(_) => (verdict, None),
    };
    let target = match &verdict {
        Ok(good) if unknown.is_none() => Some(Arc::clone(good)),
        _ => state.in_force().good.clone().or(last),
    };
    let pass = Pass { cx, profile, observed: &observed, state, verdict: &verdict };
    match (target, unknown) {
        (Some(target), None) => pass.enforce(memory, &target, later).await,
        (Some(target), Some(error)) => {
            pass.not_tried(memory, Some(&target), &error).await?;
            Err(ReconcileError::Try(error))
        }
        (None, Some(error)) => {
            pass.not_tried(memory, None, &error).await?;
            Err(ReconcileError::Try(error))
        }
        (None, None) => {
            let [programmed, enforced] = [ConditionType::Programmed, ConditionType::Enforced].map(not_accepted);
            let conditions = [conditions::accepted(&verdict), programmed, enforced];
            say(cx, &observed, memory, conditions, Summary::default()).await?;
            Ok(later.next())
        }
    }
}

/// There is no such profile.
async fn gone(cx: &Arc<Context>, profile: &str, state: &State) -> Result<Next, ReconcileError> {
    if state.in_force().good.is_some() || state.tenancy().is_aimed() {
        remove::leave(cx, profile, state).await;
    }
    cx.prober.forget(profile);
    cx.registration.forget(profile);
    cx.metrics.forget(profile);
    // If the finalizer was taken away by force, the garbage collector removes policies and bindings, and nobody
    // else the parameters. They go last, as always.
    if cx.writer.is_busy(profile) || !cx.world.tenants(profile).params.is_empty() {
        if cx.world.pairs(profile).iter().any(|pair| pair.metadata().next().is_some()) {
            return Ok(Next::After(SETTLE));
        }
        if !remove::params(cx, profile, state).await? {
            return Ok(Next::After(Duration::from_millis(200)));
        }
    }
    cx.world.forget(profile);
    cx.states.forget(profile);
    Ok(Next::Change)
}

/// The profile is being deleted.
async fn deleted(
    cx: &Arc<Context>,
    profile: &str,
    observed: &ObservedProfile,
    state: &State,
    memory: &mut Memory,
) -> Result<Next, ReconcileError> {
    let good = state.in_force().good.clone().or_else(|| memory.last_good.clone());
    let good = match good {
        None if memory.removal == remove::Removal::Bound => {
            compile::verdict(&cx.checks, observed, memory).await.ok().and_then(Result::ok)
        }
        good => good,
    };
    memory.last_good.clone_from(&good);
    let step = remove::step(cx, profile, observed, state, &mut memory.removal, good.as_deref());
    // What is left when the controller stops here is done by the next one.
    match cx.stop.run_until_cancelled(step).await {
        Some(next) => Ok(next?),
        None => Ok(Next::Change),
    }
}

/// After a restart: the generation that was in force last is kept, from before the next one is judged. Unless that
/// was already being put in force.
async fn keep_last(cx: &Context, profile: &str, observed: &ObservedProfile, state: &State, last: &Arc<Good>) {
    let generation = observed.meta.generation.unwrap_or_default();
    if state.in_force().good.is_some() || last.generation() == generation || is_begun(cx, profile, generation) {
        return;
    }
    aim(cx, profile, state, last);
    if let Err(error) = repair::change(cx, profile, state, last).await {
        tracing::warn!(%error, "the last good generation could not be restored; it is tried again");
    }
}

/// Whether something of a generation is in the cluster. Then its parameters are, too, for they come first.
fn is_begun(cx: &Context, profile: &str, generation: i64) -> bool {
    let generation = generation.to_string();
    let of = |meta: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta| {
        meta.annotations.as_ref().and_then(|annotations| annotations.get(names::GENERATION_ANNOTATION))
            == Some(&generation)
    };
    cx.world.pairs(profile).iter().any(|pair| pair.metadata().any(of))
}

/// Parameters are to be for this.
fn aim(cx: &Context, profile: &str, state: &State, target: &Arc<Good>) {
    cx.world.set_effective(&target.profile);
    if state.tenancy().aim(target) {
        cx.queues.tenants.schedule(profile.to_owned(), Duration::ZERO);
    }
}

/// Whether the API server would take a generation. Asked once, before anything of it is written; and again from time
/// to time where it would not.
async fn tried(
    cx: &Context,
    profile: &str,
    state: &State,
    good: &Arc<Good>,
    memory: &mut Memory,
    later: &mut Later,
) -> Result<Verdict, ApiError> {
    let generation = good.generation();
    if state.in_force().generation() == Some(generation) {
        return Ok(Ok(Arc::clone(good)));
    }
    let now = Instant::now();
    let before = memory.tried.as_ref().filter(|tried| tried.generation == generation);
    match before {
        Some(Tried { result: Ok(()), .. }) => return Ok(Ok(Arc::clone(good))),
        Some(Tried { result: Err(refused), again, .. }) if *again > now => {
            later.at(Some(again.duration_since(now)));
            return Ok(Err(Arc::clone(refused)));
        }
        _ => {}
    }
    if apply::is_bundle(cx, profile, good) {
        return Ok(Ok(Arc::clone(good)));
    }
    match trial::dry_run(cx, good).await? {
        Ok(()) => {
            memory.tried = Some(Tried { generation, result: Ok(()), failures: 0, again: now });
            Ok(Ok(Arc::clone(good)))
        }
        Err(refused) => Ok(Err(refuse(memory, generation, refused, later))),
    }
}

/// The API server rejects a generation.
fn refuse(memory: &mut Memory, generation: i64, refused: Refused, later: &mut Later) -> Arc<Refused> {
    let before = memory.tried.as_ref().filter(|tried| tried.generation == generation);
    let failures = before.map_or(0, |tried| tried.failures).saturating_add(1);
    let after = palisade_process::delay(failures.saturating_add(2), Duration::from_mins(1));
    tracing::warn!(message = refused.message, ?after, "the API server rejects the profile; it is asked again");
    later.at(Some(after));
    let refused = Arc::new(refused);
    let (result, again) = (Err(Arc::clone(&refused)), Instant::now() + after);
    memory.tried = Some(Tried { generation, result, failures, again });
    refused
}

async fn say(
    cx: &Context,
    observed: &ObservedProfile,
    memory: &mut Memory,
    conditions: [Judgement; 3],
    summary: Summary,
) -> Result<(), ReconcileError> {
    report(cx, observed, memory, conditions, Namespaces::of(summary)).await.map_err(ReconcileError::Report)
}

/// A pass over a profile of which something is to be in force.
struct Pass<'a> {
    cx: &'a Arc<Context>,
    profile: &'a str,
    observed: &'a ObservedProfile,
    state: &'a State,
    verdict: &'a Verdict,
}

impl Pass<'_> {
    /// Brings the cluster to what `target` says, and reports.
    async fn enforce(&self, memory: &mut Memory, target: &Arc<Good>, mut later: Later) -> Result<Next, ReconcileError> {
        let Self { cx, profile, observed, state, verdict } = *self;
        aim(cx, profile, state, target);
        let in_force = state.in_force().generation() == Some(target.generation());
        let mut changed = Ok(());
        if !in_force {
            let begun =
                memory.revision_saved == Some(target.generation()) || is_begun(cx, profile, target.generation());
            let awaited = if begun { Awaited::Nothing } else { self.awaited(target) };
            if awaited != Awaited::Nothing {
                if let Awaited::Until(at) = awaited {
                    later.at(Some(at.saturating_duration_since(Instant::now())));
                }
                self.pending(memory, target).await?;
                return Ok(later.next());
            }
            if cx.stop.is_cancelled() {
                return Ok(Next::Change);
            }
            match repair::change(cx, profile, state, target).await {
                Err(error) if error.is_refusal() && verdict.is_ok() => {
                    refuse(memory, target.generation(), trial::refused("a policy or binding", &error), &mut later);
                    // From here on it is as if the dry run had said so.
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
            later.at(apply::revision(cx, target, memory).await);
            cx.registration.want(target, Wanted::of(target, engine(observed, memory)));
            later.at(mutate(cx, target, memory).await);
            cx.registration.want(target, Wanted::of(target, engine(observed, memory)));
        }
        later.at(next_end(target));
        // The lane of parameters wakes this one when it has looked at them.
        let Some(summary) = state.tenancy().summary(target) else { return Ok(later.next()) };
        let unregistered = cx.registration.problem(profile);
        let error = error.or_else(|| unregistered.map(|problem| format!("the registration of the webhook: {problem}")));
        let programmed = conditions::programmed(verdict, error.as_deref(), &summary, target);
        let enforced = conditions::without_probe(verdict, &programmed, target).or_else(|| {
            let (known, again) = cx.prober.in_force(target);
            later.at(again);
            known.and_then(|known| mutate::enforced(known.judgement(), memory.mutating.as_ref()))
        });
        if let Some(enforced) = enforced.or_else(|| conditions::unless_known(observed, wrote)) {
            let conditions = [conditions::accepted(verdict), programmed, enforced];
            say(cx, observed, memory, conditions, summary).await?;
        }
        changed.map(|()| later.next())
    }

    /// Whether the parameters of a new generation are still to be waited for.
    fn awaited(&self, target: &Arc<Good>) -> Awaited {
        match self.state.tenancy().summary(target) {
            Some(_) => self.cx.writer.awaited(self.profile),
            None => Awaited::Some,
        }
    }

    /// Says that parameters are being written, once the lane of parameters has looked at all namespaces.
    async fn pending(&self, memory: &mut Memory, target: &Arc<Good>) -> Result<(), ReconcileError> {
        let Some(summary) = self.state.tenancy().summary(target) else { return Ok(()) };
        let programmed = match self.verdict {
            Ok(_) => conditions::pending(&summary),
            Err(_) => conditions::programmed(self.verdict, None, &summary, target),
        };
        let enforced = not_programmed("the profile is not yet programmed");
        let conditions = [conditions::accepted(self.verdict), programmed, enforced];
        say(self.cx, self.observed, memory, conditions, summary).await
    }

    /// Says that the API server did not say whether it takes a generation.
    async fn not_tried(
        &self,
        memory: &mut Memory,
        target: Option<&Arc<Good>>,
        error: &ApiError,
    ) -> Result<(), ReconcileError> {
        let summary = target.and_then(|target| self.state.tenancy().summary(target)).unwrap_or_default();
        let enforced = not_programmed("the profile is not programmed");
        let conditions = [conditions::accepted(self.verdict), conditions::not_tried(error), enforced];
        say(self.cx, self.observed, memory, conditions, summary).await
    }
}

/// Who was seen to change pods: what an earlier process has found holds until somebody is asked.
fn engine(observed: &ObservedProfile, memory: &Memory) -> Option<EngineInForce> {
    match &memory.mutating {
        Some(turn) => turn.status.as_ref().map(|status| status.engine),
        None => Some(observed.profile.as_ref().ok()?.status.as_ref()?.mutation.as_ref()?.engine),
    }
}

/// How long until an exception ends.
fn next_end(good: &Good) -> Option<Duration> {
    let now = Timestamp::now();
    let end = good.compiled.exceptions.next_end(now)?;
    // A little later, so that it surely is over.
    Some(Duration::try_from(end.duration_since(now)).unwrap_or_default() + Duration::from_secs(1))
}
