//! The lane of rollouts: promotes namespaces to stricter stages in waves, as specified in `spec.rollout`.
//!
//! A namespace is promoted by its label, and only if all of its objects comply. The labels determine the behaviour of
//! the API server and are the starting point of the next process; the status has the number of the wave and the start
//! of its soak time. If any of it is lost, a wave starts again, and no namespace becomes weaker.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, StreamExt as _, TryStreamExt as _, future::BoxFuture, stream};
use k8s_openapi::{
    api::core::v1::Namespace as CoreNamespace, apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp,
};
use kube::{
    Api,
    api::{ListParams, Patch, PatchParams},
    core::ObjectMeta,
    runtime::events::EventType,
};
use palisade_api::{OnDenial, OnViolation, Rollout, RolloutPhase, RolloutStatus, Stage, names};
use palisade_compiler::{Namespace, selects};
use palisade_objects::{existing::is_current, json::set};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    api_request::{ApiError, call},
    context::{
        Context,
        pages::{Page, list_page},
        state::State,
    },
    evaluation::{Findings, Judge},
    generations::accepted::AcceptedProfile,
    message::{counted, few},
    queue::Next,
    watch::store::ObservedProfile,
    waves::{
        clock, denials,
        plan::{self, Hold, Member, Plan},
    },
};

/// Number of namespaces to evaluate and promote before a profile is read again, so that a pause takes effect soon.
const BATCH: usize = 40;
/// How many of them at the same time.
const AT_ONCE: usize = 8;
/// How many objects one request lists at most.
const PAGE: u32 = 250;
/// Interval for evaluating namespaces with violations again.
const AGAIN: Duration = Duration::from_mins(5);
/// How often denials are looked for during a soak time.
const LOOK: Duration = Duration::from_secs(30);
/// The longest pause after a failure.
const MOST: Duration = Duration::from_mins(1);

/// Processes a profile in this lane.
pub fn work(cx: Arc<Context>, profile: String) -> BoxFuture<'static, Next> {
    async move {
        let Some(state) = cx.states.get(&profile) else { return Next::Change };
        go_on(&cx, &profile, &state).await
    }
    .boxed()
}

async fn go_on(cx: &Arc<Context>, profile: &str, state: &Arc<State>) -> Next {
    let Some(observed) = cx.store.profile(profile) else { return Next::Change };
    let accepted = {
        let in_force = state.in_force();
        in_force.accepted.clone().filter(|_| in_force.is_confirmed())
    };
    let Some(accepted) = accepted else { return Next::Change };
    let Some(rollout) = accepted.profile.spec.rollout.as_ref() else {
        state.rollout().status = None;
        return Next::Change;
    };
    if observed.meta.deletion_timestamp.is_some() || cx.stop.is_cancelled() {
        return Next::Change;
    }
    let turn = Turn { cx, profile, observed: &observed, state, accepted: &accepted, rollout };
    let mut status = turn.status();
    let result = turn.take(&mut status).await;
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
            Next::After(palisade_process::delay(failures, MOST))
        }
    };
    turn.publish(status);
    next
}

/// Why a rollout cannot go on now.
#[derive(Debug, thiserror::Error)]
enum RolloutError {
    #[error("the objects in namespace {namespace} could not be listed: {error}{}", help(error))]
    List { namespace: String, error: ApiError },
    #[error("namespace {namespace} could not be changed: {error}{}", help(error))]
    Write { namespace: String, error: ApiError },
    #[error("the events about denials could not be listed: {error}{}", help(error))]
    Denials { error: ApiError },
    #[error("the time could not be read from an API server: {0}")]
    Clock(ApiError),
    #[error("the policies could not be compiled: {0}")]
    Compile(String),
    #[error("the evaluation panicked, which is a bug in Palisade: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

fn help(error: &ApiError) -> &'static str {
    // By RBAC: an admission policy says itself what to do.
    if error.is_forbidden() && !error.to_string().contains("ValidatingAdmissionPolicy") {
        "; grant the permission with kubectl apply -k manifests/rollout, or with rollout.enabled=true in the chart"
    } else {
        ""
    }
}

/// One turn: the work between two reads of the profile.
struct Turn<'a> {
    cx: &'a Arc<Context>,
    profile: &'a str,
    observed: &'a ObservedProfile,
    state: &'a Arc<State>,
    accepted: &'a Arc<AcceptedProfile>,
    rollout: &'a Rollout,
}

impl Turn<'_> {
    /// The state of the rollout in this process, otherwise as reported by the previous one.
    fn status(&self) -> RolloutStatus {
        let known = self.state.rollout().status.clone();
        let reported = || self.observed.profile.as_ref().ok()?.status.as_ref()?.rollout.clone();
        let plan = plan::digest(&self.rollout.waves);
        let waves = i32::try_from(self.rollout.waves.len()).unwrap_or(i32::MAX);
        match known.or_else(reported).filter(|status| status.plan == plan) {
            Some(status) => RolloutStatus { wave: status.wave.clamp(1, waves), waves, ..status },
            None => RolloutStatus { wave: 1, waves, plan, ..RolloutStatus::default() },
        }
    }

    /// Promotes some namespaces, or begins the next wave.
    async fn take(&self, status: &mut RolloutStatus) -> Result<Next, RolloutError> {
        let namespaces = self.cx.store.tenants(self.profile).namespaces;
        let selected: Vec<Namespace> = namespaces
            .iter()
            .filter(|one| !one.terminating)
            .map(|one| one.namespace.get())
            .filter(|one| selects(&self.accepted.profile.spec, one))
            .collect();
        let stages = |one| self.accepted.compiled.stages_in(one);
        let members: Vec<Member<'_>> =
            selected.iter().map(|one| Member { namespace: one, stages: stages(one) }).collect();
        let wave = usize::try_from(status.wave).unwrap_or(1);
        let plan = Plan::new(self.profile, self.rollout, wave, &members);
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        (status.promoted, status.pending, status.held) =
            (number(plan.promoted), number(plan.outstanding), number(plan.held));
        status.held_namespaces.clone_from(&plan.named);
        // As it was written last, not as it was accepted last: a pause must not wait for anything.
        let paused = self.observed.profile.as_ref().is_ok_and(|it| it.spec.rollout.as_ref().is_some_and(|it| it.pause));
        if paused || self.rollout.pause {
            (status.phase, status.message) = (RolloutPhase::Paused, "spec.rollout.pause is true".to_owned());
            return Ok(Next::Change);
        }
        let (due, again) = self.due(&plan);
        if !due.is_empty() {
            status.phase = RolloutPhase::Promoting;
            if !self.state.rollout().mutated {
                "no namespace is promoted until an engine is observed mutating pods; see status.mutation"
                    .clone_into(&mut status.message);
                return Ok(Next::Change);
            }
            let batch: Vec<_> =
                selected.iter().filter_map(|one| Some((one, *due.get(one.name.as_str())?))).take(BATCH).collect();
            status.message = format!("{} to evaluate", counted(due.len(), "namespace"));
            self.promote(&batch).await?;
            return Ok(Next::After(Duration::ZERO));
        }
        if plan.is_stopped(self.rollout) {
            status.phase = RolloutPhase::Stopped;
            let names: Vec<_> = plan.violating.keys().collect();
            status.message = format!("objects violate the profile in {}; onViolation is Stop", few(&names));
            return Ok(again);
        }
        let denying = members.iter().filter(|one| one.stages.pods == Stage::Deny);
        self.soak(status, wave, &denying.map(|one| one.namespace.name.as_str()).collect(), again).await
    }

    /// The namespaces to evaluate, and the time of the next evaluation of others.
    fn due<'p>(&self, plan: &Plan<'p>) -> (BTreeMap<&'p str, Stage>, Next) {
        let now = Instant::now();
        let mut memory = self.state.rollout();
        // Another generation may admit what an earlier one did not.
        if memory.generation != Some(self.accepted.generation()) {
            memory.judged.clear();
        }
        memory.judged.retain(|name, at| plan.violating.contains_key(name.as_str()) && now.duration_since(*at) < AGAIN);
        let judged = |name: &str| memory.judged.contains_key(name);
        let mut due: BTreeMap<_, _> =
            plan.violating.iter().filter(|(name, _)| !judged(name)).map(|(name, stage)| (*name, *stage)).collect();
        if due.is_empty() && !plan.is_stopped(self.rollout) {
            due.clone_from(&plan.pending);
        }
        let oldest = memory.judged.values().min().map(|at| AGAIN.saturating_sub(now.duration_since(*at)));
        (due, oldest.map_or(Next::Change, Next::After))
    }

    /// Waits for the soak time, or begins the next wave. `denying` are the namespaces in Deny.
    async fn soak(
        &self,
        status: &mut RolloutStatus,
        wave: usize,
        denying: &BTreeSet<&str>,
        again: Next,
    ) -> Result<Next, RolloutError> {
        let soak = self.rollout.waves.get(wave - 1).map_or(0, |wave| wave.soak_seconds);
        let is_last = wave >= self.rollout.waves.len();
        if status.phase == RolloutPhase::Complete && is_last {
            status.message = over(status.held);
            return Ok(again);
        }
        let now = clock::now(&self.cx.client).await.map_err(RolloutError::Clock)?;
        let since = status.soak_started.get_or_insert(Time(now)).0;
        let looks = self.rollout.on_denial == OnDenial::SoakAgain && soak > 0;
        if looks && let Some(denied) = self.denied(denying, since).await? {
            status.soak_started = Some(Time(now));
            status.phase = RolloutPhase::Stopped;
            status.message = format!("{denied}; onDenial is SoakAgain: wave {wave} soaks until {}", ends(now, soak));
            return Ok(Next::After(LOOK.min(seconds(soak))));
        }
        let left = soak.saturating_sub(now.duration_since(since).as_secs());
        if left > 0 {
            status.phase = RolloutPhase::Soaking;
            status.message = format!("wave {wave} soaks until {}", ends(since, soak));
            let left = if looks { seconds(left).min(LOOK) } else { seconds(left) };
            return Ok(match again {
                Next::After(again) => Next::After(left.min(again)),
                Next::Change => Next::After(left),
            });
        }
        if is_last {
            status.phase = RolloutPhase::Complete;
            status.message = over(status.held);
            self.announce(EventType::Normal, "RolloutComplete", &status.message);
            return Ok(again);
        }
        status.wave = status.wave.saturating_add(1);
        (status.phase, status.soak_started) = (RolloutPhase::Promoting, None);
        // Each wave judges those again that were held before.
        self.state.rollout().judged.clear();
        self.announce(EventType::Normal, "WaveStarted", &format!("wave {} of {} started", status.wave, status.waves));
        Ok(Next::After(Duration::ZERO))
    }

    /// The namespaces with denied pods since then; `None` if there are none.
    async fn denied(&self, among: &BTreeSet<&str>, since: Timestamp) -> Result<Option<String>, RolloutError> {
        let mut denials = denials::since(&self.cx.client, self.profile, since)
            .await
            .map_err(|error| RolloutError::Denials { error })?;
        denials.retain(|namespace, _| among.contains(namespace.as_str()));
        let names: Vec<_> = denials.keys().collect();
        let first = denials.first_key_value();
        Ok(first.map(|(_, message)| format!("the profile denied pods of workloads in {}: {message}", few(&names))))
    }

    /// Evaluates some namespaces, promotes compliant ones and holds the others.
    async fn promote(&self, batch: &[(&Namespace, Stage)]) -> Result<(), RolloutError> {
        let judge = self.judge().await?;
        let verdicts = batch.iter().map(|(one, _)| self.verdict(Arc::clone(&judge), one).boxed());
        let verdicts = together(verdicts.collect()).await?;
        let judged = || batch.iter().zip(&verdicts);
        let held: Vec<_> = judged().filter_map(|((one, _), why)| Some((*one, why.as_ref()?))).collect();
        for (one, _) in &held {
            self.state.rollout().judged.insert(one.name.clone(), Instant::now());
        }
        let stop = self.rollout.on_violation == OnViolation::Stop && !held.is_empty();
        let changes = judged().filter_map(|((one, stage), why)| match why {
            Some(why) => {
                let hold = Hold::Violations { why: why.clone(), generation: Some(self.accepted.generation()) };
                Some(self.change(one, None, Some(hold)).boxed())
            }
            None if stop => None,
            None => Some(self.change(one, Some(*stage), None).boxed()),
        });
        let written = together(changes.collect()).await?;
        if let Some((first, why)) = held.first().filter(|_| written.contains(&true)) {
            let names: Vec<_> = held.iter().map(|(one, _)| one.name.as_str()).collect();
            let note = format!("not promoted: {}; in {}: {why}", few(&names), first.name);
            self.announce(EventType::Warning, "NamespaceHeld", &note);
        }
        Ok(())
    }

    async fn judge(&self) -> Result<Arc<Judge>, RolloutError> {
        let (state, accepted) = (Arc::clone(self.state), Arc::clone(self.accepted));
        let judge = tokio::task::spawn_blocking(move || state.judge(&accepted)).await?;
        judge.map_err(RolloutError::Compile)
    }

    /// The violations in a namespace, by current objects that belong to no other evaluated workload. Objects are
    /// evaluated a page at a time, and then dropped: those of one namespace can exceed the memory.
    async fn verdict(&self, judge: Arc<Judge>, one: &Namespace) -> Result<Option<String>, RolloutError> {
        let (name, namespace) = (&one.name, Arc::new(one.clone()));
        let asked = self.cx.store.asked.of(self.profile, name);
        let params =
            self.accepted.compiled.params(one, asked.iter().map(|one| &one.request), Timestamp::now()).map(Arc::new);
        let mut findings = Findings::default();
        for of in judge.kinds() {
            let mut page = ListParams::default().limit(PAGE);
            loop {
                let listed = list_page(self.cx, Some(name), of, &page).await;
                let Page { mut objects, next, room } =
                    listed.map_err(|error| RolloutError::List { namespace: name.clone(), error })?;
                objects.retain(|existing| is_current(existing.kind, &existing.object));
                if !objects.is_empty() {
                    let (judge, accepted) = (Arc::clone(&judge), Arc::clone(self.accepted));
                    let (namespace, params) = (Arc::clone(&namespace), params.clone());
                    let _permit = self.cx.plans.acquire().await;
                    findings = tokio::task::spawn_blocking(move || {
                        findings.judge(&judge.tenant(&accepted, &namespace, params.as_deref()).in_deny(), &objects);
                        drop((objects, room));
                        findings
                    })
                    .await?;
                }
                match next {
                    Some(token) => page = page.continue_token(&token),
                    None => break,
                }
            }
        }
        Ok(findings.end())
    }

    /// Changes the label and the annotation of a namespace. Returns whether a hold was written.
    async fn change(&self, one: &Namespace, stage: Option<Stage>, hold: Option<Hold>) -> Result<bool, RolloutError> {
        let name = &one.name;
        let known = one.annotations.get(&names::rollout_annotation(self.profile));
        let text = hold.as_ref().map(Hold::text);
        if stage.is_none() && known == text.as_ref() {
            return Ok(false);
        }
        let mut metadata = json!({});
        if let Some(stage) = stage {
            set(&mut metadata, &["labels", &names::stage_label(self.profile)], stage.to_string());
        }
        if known != text.as_ref() {
            set(&mut metadata, &["annotations", &names::rollout_annotation(self.profile)], text);
        }
        let api: Api<CoreNamespace> = Api::all(self.cx.client.clone());
        let parameters =
            PatchParams { field_manager: Some(names::field_manager::ROLLOUT.into()), ..Default::default() };
        let patch = Patch::Merge(json!({"metadata": metadata}));
        match call(api.patch_metadata(name, &parameters, &patch)).await {
            Ok(written) => {
                let concerned = self.cx.store.wrote_namespace(written);
                // If somebody else has changed it meanwhile, other profiles may be concerned, too.
                self.cx.queues.params.trigger(concerned.clone());
                self.cx.queues.rollouts.trigger(concerned);
            }
            // It was deleted meanwhile.
            Err(error) if error.is_not_found() => return Ok(false),
            Err(error) => return Err(RolloutError::Write { namespace: name.clone(), error }),
        }
        self.cx.metrics.wrote("Namespace", "patch");
        tracing::info!(profile = self.profile, namespace = name, ?stage, ?hold, "changed the stage of a namespace");
        let Some(Hold::Violations { why, .. }) = &hold else { return Ok(hold.is_some()) };
        // Another generation with the same result is no news.
        let is_news =
            !matches!(Hold::of(one, self.profile), Some(Hold::Violations { why: known, .. }) if known == *why);
        if is_news {
            // Where those who work in it look.
            self.tell(name, why);
        }
        Ok(is_news)
    }

    /// An event in a namespace that is held now, and was not or for another reason.
    fn tell(&self, namespace: &str, why: &str) {
        let params = ObjectMeta {
            name: Some(names::params(self.profile)),
            namespace: Some(namespace.to_owned()),
            ..ObjectMeta::default()
        };
        let note = format!("profile {} holds this namespace at its stage: {why}", self.profile);
        self.cx.events.params(&params, EventType::Warning, "NamespaceHeld", &note);
    }

    fn announce(&self, severity: EventType, reason: &str, note: &str) {
        self.cx.events.profile(&self.observed.meta, severity, reason, note);
    }

    /// Remembers the status, and has it reported if it differs.
    fn publish(&self, status: RolloutStatus) {
        let stopped = (status.phase == RolloutPhase::Stopped).then(|| status.message.clone());
        let generation = Some(self.accepted.generation());
        let mut memory = self.state.rollout();
        if memory.status.as_ref() == Some(&status) && memory.generation == generation {
            return;
        }
        memory.generation = generation;
        let before = memory.status.replace(status);
        drop(memory);
        if let Some(why) = stopped.filter(|_| before.is_none_or(|before| before.phase != RolloutPhase::Stopped)) {
            self.announce(EventType::Warning, "RolloutStopped", &why);
        }
        self.cx.queue.trigger([self.profile.to_owned()]);
    }
}

/// Some requests, a few at the same time: their answers, or the first error.
async fn together<T>(requests: Vec<BoxFuture<'_, Result<T, RolloutError>>>) -> Result<Vec<T>, RolloutError> {
    stream::iter(requests).buffered(AT_ONCE).try_collect().await
}

fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or_default())
}

/// The message after the last wave.
fn over(held: i64) -> String {
    match usize::try_from(held).unwrap_or_default() {
        0 => "all waves are complete".to_owned(),
        held => format!(
            "all waves are complete; {} held at their stage, evaluated again every {} minutes",
            counted(held, "namespace"),
            AGAIN.as_secs() / 60
        ),
    }
}

/// When a soak time ends, for people.
fn ends(since: Timestamp, soak: i64) -> String {
    let soak = k8s_openapi::jiff::SignedDuration::from_secs(soak);
    since.checked_add(soak).map_or_else(|_| "the end of time".to_owned(), |end| end.to_string())
}
