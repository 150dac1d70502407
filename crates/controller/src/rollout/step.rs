//! One step of a rollout: counts the namespaces of the wave, and promotes some, waits for the soak time or begins the
//! next wave.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use k8s_openapi::{apimachinery::pkg::apis::meta::v1::Time, jiff::Timestamp};
use kube::runtime::events::EventType;
use palisade_api::{OnDenial, Rollout, RolloutPhase, RolloutStatus, Stage};
use palisade_compiler::{Namespace, selects};
use tokio::time::Instant;

use super::error::RolloutError;
use crate::{
    context::{Context, state::State},
    generations::accepted::AcceptedProfile,
    message::{counted, few},
    object_name::ProfileName,
    queue::Requeue,
    watch::store::ObservedProfile,
    waves::{
        clock, denials,
        plan::{self, Member, Plan},
    },
};

/// Number of namespaces to evaluate and promote before a profile is read again, so that a pause takes effect soon.
const BATCH_SIZE: usize = 40;
/// Interval for evaluating namespaces with violations again.
const REEVALUATION_INTERVAL: Duration = Duration::from_mins(5);
/// How often denials are looked for during a soak time.
const DENIAL_POLL_INTERVAL: Duration = Duration::from_secs(30);

/// One step: the work between two reads of the profile.
pub struct RolloutStep<'a> {
    pub cx: &'a Arc<Context>,
    pub profile: &'a str,
    pub observed: &'a ObservedProfile,
    pub state: &'a Arc<State>,
    /// The generation in effect.
    pub accepted: &'a Arc<AcceptedProfile>,
    pub rollout: &'a Rollout,
}

impl RolloutStep<'_> {
    /// The state of the rollout in this process, otherwise as reported by the previous one.
    pub fn status(&self) -> RolloutStatus {
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
    pub async fn take(&self, status: &mut RolloutStatus) -> Result<Requeue, RolloutError> {
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
            return Ok(Requeue::Change);
        }
        let (due, again) = self.due(&plan);
        if !due.is_empty() {
            status.phase = RolloutPhase::Promoting;
            if !self.state.rollout().mutated {
                "no namespace is promoted until an engine is observed mutating pods; see status.mutation"
                    .clone_into(&mut status.message);
                return Ok(Requeue::Change);
            }
            let batch: Vec<_> =
                selected.iter().filter_map(|one| Some((one, *due.get(one.name.as_str())?))).take(BATCH_SIZE).collect();
            status.message = format!("{} to evaluate", counted(due.len(), "namespace"));
            self.promote(&batch).await?;
            return Ok(Requeue::After(Duration::ZERO));
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
    fn due<'p>(&self, plan: &Plan<'p>) -> (BTreeMap<&'p str, Stage>, Requeue) {
        let now = Instant::now();
        let mut memory = self.state.rollout();
        // Another generation may admit what an earlier one did not.
        if memory.generation != Some(self.accepted.generation()) {
            memory.evaluated.clear();
        }
        memory.evaluated.retain(|name, at| {
            plan.violating.contains_key(name.as_str()) && now.duration_since(*at) < REEVALUATION_INTERVAL
        });
        let evaluated = |name: &str| memory.evaluated.contains_key(name);
        let mut due: BTreeMap<_, _> =
            plan.violating.iter().filter(|(name, _)| !evaluated(name)).map(|(name, stage)| (*name, *stage)).collect();
        if due.is_empty() && !plan.is_stopped(self.rollout) {
            due.clone_from(&plan.pending);
        }
        let oldest =
            memory.evaluated.values().min().map(|at| REEVALUATION_INTERVAL.saturating_sub(now.duration_since(*at)));
        (due, oldest.map_or(Requeue::Change, Requeue::After))
    }

    /// Waits for the soak time, or begins the next wave. `denying` are the namespaces in Deny.
    async fn soak(
        &self,
        status: &mut RolloutStatus,
        wave: usize,
        denying: &BTreeSet<&str>,
        again: Requeue,
    ) -> Result<Requeue, RolloutError> {
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
            return Ok(Requeue::After(DENIAL_POLL_INTERVAL.min(seconds(soak))));
        }
        let left = soak.saturating_sub(now.duration_since(since).as_secs());
        if left > 0 {
            status.phase = RolloutPhase::Soaking;
            status.message = format!("wave {wave} soaks until {}", ends(since, soak));
            let left = if looks { seconds(left).min(DENIAL_POLL_INTERVAL) } else { seconds(left) };
            return Ok(match again {
                Requeue::After(again) => Requeue::After(left.min(again)),
                Requeue::Change => Requeue::After(left),
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
        // Each wave evaluates held namespaces again.
        self.state.rollout().evaluated.clear();
        self.announce(EventType::Normal, "WaveStarted", &format!("wave {} of {} started", status.wave, status.waves));
        Ok(Requeue::After(Duration::ZERO))
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

    /// Sends an event about the profile.
    pub fn announce(&self, severity: EventType, reason: &str, note: &str) {
        self.cx.events.profile(&self.observed.meta, severity, reason, note);
    }

    /// Remembers the status, and has it reported if it differs.
    pub fn publish(&self, status: RolloutStatus) {
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
        self.cx.queue.trigger([ProfileName::new(self.profile)]);
    }
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
            REEVALUATION_INTERVAL.as_secs() / 60
        ),
    }
}

/// When a soak time ends, for people.
fn ends(since: Timestamp, soak: i64) -> String {
    let soak = k8s_openapi::jiff::SignedDuration::from_secs(soak);
    since.checked_add(soak).map_or_else(|_| "the end of time".to_owned(), |end| end.to_string())
}
