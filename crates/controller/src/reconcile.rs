//! The driver: one pass over one profile, `compile -> check -> resolve -> apply -> probe -> report`.

use std::{fmt::Write as _, sync::Arc, time::Duration};

use k8s_openapi::jiff::Timestamp;
use kube::Client;
use palisade_api::{
    Stage, ToolSecurityProfileStatus,
    conditions::{ConditionType, Reason},
};
use palisade_compiler::exempt_tenants;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::{
    Options, apply,
    call::ApiError,
    compile::{self, Good, Verdict},
    events::Events,
    memory::{Memory, SETTLE},
    metrics::Metrics,
    mutate::{self, mutate},
    probe::Prober,
    queue::Queue,
    remove::{self, RemoveError},
    report::{self, Namespaces, report},
    resolve::{self, Plan},
    status::{Judgement, Truth},
    world::{ObservedProfile, World},
};

/// What every stage may use.
pub struct Context {
    /// To the API server.
    pub client: Client,
    /// What is known of the cluster.
    pub world: Arc<World>,
    /// What is to be done next.
    pub queue: Arc<Queue>,
    /// As the controller was started.
    pub options: Options,
    /// Asks whether profiles are in force.
    pub prober: Arc<Prober>,
    /// Where events are handed in.
    pub events: Events,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Cancelled when the controller is to stop: no write is begun then.
    pub stop: CancellationToken,
}

/// When a profile is to be looked at again, if nothing happens before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Never: it is gone.
    Never,
    /// When something changes.
    Change,
    /// After this time.
    After(Duration),
}

/// Why a pass failed. It is tried again; what is wrong with a profile is no error but in its status.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// Before anything was written.
    #[error("the finalizer could not be added: {0}")]
    Finalizer(#[source] ApiError),
    /// Stage compile.
    #[error("the last good spec could not be read: {0}")]
    LastGood(#[source] ApiError),
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
            Self::Apply(_) => "apply_error",
            Self::Report(_) => "report_error",
            Self::Remove(_) => "remove_error",
        }
    }
}

/// One pass.
pub async fn reconcile(cx: &Context, profile: &str, memory: &mut Memory) -> Result<Next, ReconcileError> {
    let Some(observed) = cx.world.profile(profile) else {
        forget(cx, profile);
        // If the finalizer was taken away by force, the garbage collector removes policies and bindings, and nobody
        // else the parameters. They go last, as always.
        if !cx.world.tenants(profile).params.is_empty() {
            if cx.world.pairs(profile).iter().all(|pair| pair.metadata().next().is_none()) {
                remove::params(cx, profile).await?;
            } else {
                return Ok(Next::After(SETTLE));
            }
        }
        return Ok(Next::Never);
    };
    let uid = observed.meta.uid.clone().unwrap_or_default();
    if memory.uid != uid {
        *memory = Memory::new(uid);
    }
    let verdict = compile::verdict(&observed, memory).await;
    if observed.meta.deletion_timestamp.is_some() {
        if !memory.removed {
            let good = verdict.ok().or_else(|| memory.last_good.clone());
            // What is left when the controller stops here is done by the next one.
            let removal = remove::remove(cx, profile, &observed, good);
            let Some(removed) = cx.stop.run_until_cancelled(removal).await else { return Ok(Next::Change) };
            removed?;
            memory.removed = true;
        }
        return Ok(Next::Change);
    }
    apply::finalizer(cx, &observed).await.map_err(ReconcileError::Finalizer)?;
    let good = match &verdict {
        Ok(good) => Some(Arc::clone(good)),
        Err(_) => compile::last_good(&cx.client, &observed, memory).await.map_err(ReconcileError::LastGood)?,
    };
    if let Some(good) = good {
        return enforce(cx, profile, &observed, memory, &verdict, &good).await;
    }
    let [programmed, enforced] = [ConditionType::Programmed, ConditionType::Enforced].map(not_accepted);
    let conditions = [accepted(&verdict), programmed, enforced];
    report(cx, &observed, memory, conditions, Namespaces::default()).await.map_err(ReconcileError::Report)?;
    Ok(Next::Change)
}

fn forget(cx: &Context, profile: &str) {
    cx.world.forget(profile);
    cx.prober.forget(profile);
    cx.metrics.forget(profile);
}

/// Brings the cluster to what `good` says, and reports.
async fn enforce(
    cx: &Context,
    profile: &str,
    observed: &ObservedProfile,
    memory: &mut Memory,
    verdict: &Verdict,
    good: &Arc<Good>,
) -> Result<Next, ReconcileError> {
    cx.world.set_effective(&good.profile);
    if let Err(error) = announce(cx, profile, observed, memory, verdict, good).await {
        tracing::warn!(%error, "the status could not be written; it is tried again at the end of the pass");
    }

    let plan = apply::params(cx, profile, good, memory).await;
    if cx.stop.is_cancelled() {
        return Ok(Next::Change);
    }
    let applied = apply::bundle(cx, profile, good, memory).await;
    let mut later = Later::default();
    if applied.is_ok() {
        later.at(apply::removals(cx, profile, memory, &plan).await);
        later.at(apply::revision(cx, good, memory).await);
    }
    if applied.is_ok() && !cx.stop.is_cancelled() {
        later.at(mutate(cx, good, memory).await);
    }
    let now = Instant::now();
    later.at(next_end(good));
    later.at(memory.write_failures.values().map(|failure| failure.again.saturating_duration_since(now)).min());

    let programmed = programmed(verdict, &applied, memory, good);
    let (enforced, again) = enforced(cx, verdict, &programmed, memory, good);
    later.at(again);
    let namespaces = Namespaces::of(&plan, memory);
    if let Some(enforced) = enforced.or_else(|| unless_known(observed, memory)) {
        let conditions = [accepted(verdict), programmed, enforced];
        report::report(cx, observed, memory, conditions, namespaces).await.map_err(ReconcileError::Report)?;
    }
    applied.map_err(ReconcileError::Apply)?;
    Ok(later.next())
}

/// How long until an exception ends.
fn next_end(good: &Good) -> Option<Duration> {
    let now = Timestamp::now();
    let end = good.compiled.exceptions.next_end(now)?;
    // A little later, so that it surely is over.
    Some(Duration::try_from(end.duration_since(now)).unwrap_or_default() + Duration::from_secs(1))
}

/// The earliest of some times.
#[derive(Default)]
struct Later(Option<Duration>);

impl Later {
    fn at(&mut self, after: Option<Duration>) {
        self.0 = self.0.into_iter().chain(after).min();
    }

    fn next(self) -> Next {
        self.0.map_or(Next::Change, Next::After)
    }
}

/// A first word on a generation, before thousands of parameters are written.
async fn announce(
    cx: &Context,
    profile: &str,
    observed: &ObservedProfile,
    memory: &mut Memory,
    verdict: &Verdict,
    good: &Good,
) -> Result<(), ApiError> {
    if verdict.is_err() || said(observed, ConditionType::Programmed).is_some() {
        return Ok(());
    }
    let keep = apply::keep(cx, profile, memory);
    let plan: Plan = resolve::plan(&good.profile, &good.compiled, &cx.world.tenants(profile), &keep, Timestamp::now());
    let pending = Judgement::new(
        ConditionType::Programmed,
        Truth::False,
        Reason::Pending,
        format!("{} of {} namespaces have their parameters", plan.ready, plan.selected),
    );
    let enforced = not_programmed("the profile is not yet programmed");
    report(cx, observed, memory, [accepted(verdict), pending, enforced], Namespaces::of(&plan, memory)).await
}

/// The status of a condition, if it is about the profile's generation.
fn said(observed: &ObservedProfile, type_: ConditionType) -> Option<&str> {
    let status: &ToolSecurityProfileStatus = observed.profile.as_ref().ok()?.status.as_ref()?;
    let condition = status.conditions.iter().find(|condition| condition.type_ == type_.to_string())?;
    (condition.observed_generation == observed.meta.generation).then_some(condition.status.as_str())
}

fn accepted(verdict: &Verdict) -> Judgement {
    match verdict {
        Ok(good) => {
            let (checks, parameters) = (good.compiled.checks.len(), good.compiled.parameters.len());
            let mut message = format!("{} and {}", counted(checks, "check"), counted(parameters, "parameter"));
            let warnings = exempt_tenants(&good.profile.spec.exemptions);
            if !warnings.is_empty() {
                let _ = write!(message, "; warning: {}", compile::told(&warnings));
            }
            Judgement::new(ConditionType::Accepted, Truth::True, Reason::Accepted, message)
        }
        Err(refused) => Judgement::new(ConditionType::Accepted, Truth::False, refused.reason, refused.message.clone()),
    }
}

fn counted(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn not_accepted(type_: ConditionType) -> Judgement {
    let message = "the profile is not accepted, and no earlier state of it is known";
    Judgement::new(type_, Truth::False, Reason::NotAccepted, message)
}

fn not_programmed(message: impl Into<String>) -> Judgement {
    Judgement::new(ConditionType::Enforced, Truth::False, Reason::NotProgrammed, message)
}

fn programmed(verdict: &Verdict, applied: &Result<(), ApiError>, memory: &Memory, good: &Good) -> Judgement {
    let judgement = |truth, reason, message| Judgement::new(ConditionType::Programmed, truth, reason, message);
    let mut wrong = String::new();
    if let Err(error) = applied {
        let _ = write!(wrong, "a policy or binding could not be written: {error}");
    }
    if let Some((namespace, failure)) = memory.write_failures.iter().next() {
        let separator = if wrong.is_empty() { "" } else { "; " };
        let namespaces = counted(memory.write_failures.len(), "namespace");
        let _ = write!(
            wrong,
            "{separator}the parameters of {namespaces} could not be written, first {namespace}: {}",
            failure.message
        );
    }
    if verdict.is_err() {
        let mut message = format!("the spec of generation {} stays in force", good.generation());
        if !wrong.is_empty() {
            let _ = write!(message, "; {wrong}");
        }
        judgement(Truth::False, Reason::LastGoodInForce, message)
    } else if wrong.is_empty() {
        let message = "the policies, the bindings and the parameters of each namespace are in the API server";
        judgement(Truth::True, Reason::Programmed, message.to_owned())
    } else {
        judgement(Truth::False, Reason::ApplyFailed, wrong)
    }
}

/// Whether the profile is in force, and when to ask again. `None` while the first answer is awaited.
fn enforced(
    cx: &Context,
    verdict: &Verdict,
    programmed: &Judgement,
    memory: &Memory,
    good: &Arc<Good>,
) -> (Option<Judgement>, Option<Duration>) {
    let judgement = |truth, reason, message: &str| Judgement::new(ConditionType::Enforced, truth, reason, message);
    let stage = match good.compiled.stage {
        Stage::Deny => None,
        Stage::Warn => Some(judgement(Truth::False, Reason::StageWarn, "violations are admitted with a warning")),
        Stage::Audit => Some(judgement(Truth::False, Reason::StageAudit, "violations are admitted and audited")),
    };
    if verdict.is_err() {
        return (Some(not_programmed("an earlier state of the profile is in force")), None);
    }
    if programmed.status != Truth::True {
        return (Some(not_programmed("the profile is not programmed")), None);
    }
    if let Some(stage) = stage {
        return (Some(stage), None);
    }
    if good.compiled.probes.violating.is_none() {
        let nothing = judgement(Truth::False, Reason::NothingRestricted, "the profile allows everything");
        return (Some(nothing), None);
    }
    let (known, again) = cx.prober.in_force(good);
    (known.and_then(|known| mutate::enforced(known.judgement(), memory.mutating.as_ref())), again)
}

/// While the first answer is awaited: not enforced, unless the status says already that this generation is and
/// this process has not touched it. A restart must not make an alarm.
fn unless_known(observed: &ObservedProfile, memory: &Memory) -> Option<Judgement> {
    let known = said(observed, ConditionType::Enforced) == Some("True") && !memory.wrote_bundle;
    (!known).then(|| not_programmed("the API server has not yet given the right answers"))
}

/// How long to wait after a pass that failed.
pub fn backoff(memory: &mut Memory) -> Duration {
    memory.failures = memory.failures.saturating_add(1);
    palisade_process::delay(memory.failures, Duration::from_mins(1))
}
