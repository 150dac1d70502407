//! The lane of parameters: keeps those of each namespace as they must be for the generation that a profile aims at.
//!
//! All namespaces are planned when that changes, and afterwards only those that have changed themselves. Nothing is
//! awaited here but the plan: what is to be written is handed to the [`crate::writer`], whose answers wake this lane.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::jiff::Timestamp;
use kube::{Api, api::DeleteParams, core::ObjectMeta};
use palisade_api::{ToolSecurityParams, names};
use tokio::time::Instant;

use crate::{
    apply::{self, few},
    call::{ApiError, gone},
    compile::Good,
    context::Context,
    converge::{self, Verb},
    events::Tone,
    lane::{Later, Next},
    resolve::{self, Keep, Plan, Rules, Standing, Todo, Write},
    state::{SETTLE, State},
    world::ObservedParams,
    writer::{Awaited, Class, Job},
};

/// The kind, in metrics and events.
pub const PARAMS: &str = "ToolSecurityParams";
/// So many namespaces that change at once are as many as if all had.
const MANY: usize = 256;
/// How often a status is brought up to date while thousands are written.
const PROGRESS: Duration = Duration::from_secs(1);
/// How long after a plan that panicked the next one is made.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// How it stands in the namespaces.
#[derive(Debug, Default)]
pub struct Tenancy {
    /// What parameters are kept for.
    target: Option<Arc<Good>>,
    planned: Option<Planned>,
    /// Namespaces whose parameters could not be written or deleted.
    failures: BTreeMap<String, Failure>,
    /// Namespaces whose parameters are to be removed, and since when.
    removable: BTreeMap<String, Instant>,
    /// Namespaces whose parameters somebody else had changed, and that are right again.
    restored: Vec<String>,
}

#[derive(Debug)]
struct Planned {
    /// For which one.
    target: Arc<Good>,
    keep: Keep,
    /// When an exception ends.
    until: Option<Timestamp>,
    plan: Plan,
    /// Whether the writer knows what is to be done.
    handed_over: bool,
}

/// Parameters that could not be written.
#[derive(Debug)]
struct Failure {
    failures: u32,
    /// When to try again.
    again: Instant,
    /// Why.
    message: String,
    /// Whether they were to be deleted.
    deleting: bool,
}

/// What there is to say about the namespaces.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// How many the profile selects.
    pub selected: usize,
    /// In how many of them pods can be judged.
    pub ready: usize,
    /// Those that deny every pod because of a parameter, and why.
    pub problems: BTreeMap<String, String>,
    /// Those whose parameters could not be written, and why.
    pub unwritten: BTreeMap<String, String>,
}

impl Tenancy {
    /// From now on parameters are kept for this. Returns whether that is new.
    pub fn aim(&mut self, target: &Arc<Good>) -> bool {
        let new = self.target.as_ref().is_none_or(|now| !Arc::ptr_eq(now, target));
        self.target = Some(Arc::clone(target));
        new
    }

    /// Whether parameters are kept for anything.
    pub fn is_aimed(&self) -> bool {
        self.target.is_some()
    }

    /// From now on parameters are left as they are.
    pub fn stop(&mut self) {
        *self = Self::default();
    }

    /// What there is to say, once the namespaces were looked at for this.
    pub fn summary(&self, target: &Arc<Good>) -> Option<Summary> {
        let planned = self.planned.as_ref().filter(|it| it.handed_over && Arc::ptr_eq(&it.target, target))?;
        let unwritten = self.failures.iter().filter(|(_, failure)| !failure.deleting);
        Some(Summary {
            selected: planned.plan.selected,
            ready: planned.plan.ready,
            problems: planned.plan.problems.clone(),
            unwritten: unwritten.map(|(name, failure)| (name.clone(), failure.message.clone())).collect(),
        })
    }

    /// The first namespace whose parameters could not be deleted, how many there are besides, and why.
    pub fn take_undeleted(&mut self) -> Option<(String, usize, String)> {
        let failures = std::mem::take(&mut self.failures);
        let more = failures.len().saturating_sub(1);
        failures.into_iter().next().map(|(namespace, failure)| (namespace, more, failure.message))
    }

    /// Whether the plan is still good. It may keep more than it must where it keeps nothing at all.
    fn is_planned(&mut self, target: &Arc<Good>, keep: &Keep, now: Timestamp) -> bool {
        let Some(planned) = &mut self.planned else { return false };
        let current = Arc::ptr_eq(&planned.target, target) && planned.until.is_none_or(|until| now <= until);
        let kept = planned.keep == *keep || (planned.plan.carried == 0 && planned.keep.covers(keep));
        if current && kept {
            planned.keep = keep.clone();
        }
        current && kept
    }

    /// What is to be done in a namespace.
    fn job(
        &self,
        namespace: &str,
        class: Class,
        drifted: bool,
        settles: bool,
        later: &mut Later,
    ) -> Option<(Class, Job)> {
        let now = Instant::now();
        let standing = self.planned.as_ref()?.plan.get(namespace)?;
        let job = match &standing.todo {
            Todo::Nothing(_) => return None,
            Todo::Write(write) => Job::Write { write: Arc::clone(write), drifted },
            // Only when the API server has surely seen both the policy and the namespace's labels: until then it may
            // still judge the namespace's pods by the profile.
            Todo::Remove => {
                let due = self.removable.get(namespace).map_or(now, |since| *since) + SETTLE;
                if settles || due > now {
                    later.at(Some(due.saturating_duration_since(now)));
                    return None;
                }
                Job::Delete
            }
        };
        match self.failures.get(namespace) {
            None => Some((class, job)),
            Some(failure) if failure.again <= now => Some((Class::Retry, job)),
            Some(failure) => {
                later.at(Some(failure.again.duration_since(now)));
                None
            }
        }
    }

    fn failed(&mut self, namespace: &str, error: &ApiError, deleting: bool) {
        let failures = self.failures.get(namespace).map_or(1, |failure| failure.failures.saturating_add(1));
        let again = Instant::now() + palisade_process::delay(failures, Duration::from_mins(1));
        let failure = Failure { failures, again, message: error.to_string(), deleting };
        self.failures.insert(namespace.to_owned(), failure);
    }
}

/// A turn of this lane.
pub fn work(cx: Arc<Context>, profile: String) -> BoxFuture<'static, Next> {
    async move { turn(&cx, &profile).await }.boxed()
}

/// Nothing is kept for the profile. If there is none, somebody has removed its finalizer by force, and a pass deletes the
/// parameters that are left.
fn untargeted(cx: &Context, profile: &str) -> Next {
    if cx.world.profile(profile).is_none() {
        cx.queues.passes.trigger([profile.to_owned()]);
    }
    Next::Change
}

async fn turn(cx: &Arc<Context>, profile: &str) -> Next {
    let Some(state) = cx.states.get(profile) else { return untargeted(cx, profile) };
    let Some(target) = state.tenancy().target.clone() else { return untargeted(cx, profile) };
    // Before anything is read: what changes from here on is looked at in the next turn.
    let changed = cx.world.take_changed(profile);
    let (keep, now) = (apply::keep(cx, profile, &state), Timestamp::now());
    let settles_in = state.in_force().settles_in(Instant::now());
    let is_planned = state.tenancy().is_planned(&target, &keep, now);
    let mut later = Later::default();
    let looked_at = if is_planned {
        let rules = Rules { profile: &target.profile, compiled: &target.compiled, keep: &keep, now };
        look_at(cx, profile, &state, rules, &changed)
    } else {
        match plan_all(cx, profile, &target, &keep, now).await {
            Ok(plan) => {
                let until = target.compiled.exceptions.next_end(now);
                let planned = Planned { target: Arc::clone(&target), keep, until, plan, handed_over: false };
                replan(cx, profile, &state, planned)
            }
            Err(error) => {
                tracing::error!(profile, %error, "a plan of all namespaces panicked and is made again");
                return Next::After(AFTER_PANIC);
            }
        }
    };
    hand_over(cx, profile, &state, looked_at, settles_in.is_some(), &mut later);
    cx.writer.pump(cx);
    told(cx, profile, &state, &target);
    // When nothing must be kept for a former policy any more.
    later.at(settles_in);
    later.at(next_end(&target, now));
    later.next()
}

/// The namespaces that were looked at: whether somebody else has changed their parameters; and how urgent they are.
struct LookedAt {
    namespaces: BTreeMap<String, bool>,
    class: Class,
}

fn look_at(cx: &Context, profile: &str, state: &State, rules: Rules<'_>, changed: &BTreeSet<String>) -> LookedAt {
    let mut namespaces = BTreeMap::new();
    for namespace in changed {
        let (found, observed) = cx.world.tenant(profile, namespace);
        let standing = found.and_then(|found| rules.standing(&found, observed.as_ref()));
        let mut tenancy = state.tenancy();
        let Some(planned) = &mut tenancy.planned else { break };
        let before = planned.plan.set(namespace, standing);
        let drifted = drifted(before.as_ref(), planned.plan.get(namespace));
        namespaces.insert(namespace.clone(), drifted);
    }
    LookedAt { class: if namespaces.len() > MANY { Class::Bulk } else { Class::Urgent }, namespaces }
}

/// Whether parameters that must be written were right before.
fn drifted(before: Option<&Standing>, now: Option<&Standing>) -> bool {
    match (before.map(|before| &before.todo), now.map(|now| &now.todo)) {
        (Some(Todo::Nothing(Some(right))), Some(Todo::Write(write))) => resolve::is(&write.params, right),
        _ => false,
    }
}

/// Plans all namespaces, on a thread of its own: that takes some tenths of a second for thousands.
async fn plan_all(
    cx: &Context,
    profile: &str,
    target: &Arc<Good>,
    keep: &Keep,
    now: Timestamp,
) -> Result<Plan, tokio::task::JoinError> {
    let _permit = cx.plans.acquire().await;
    let (tenants, target, keep) = (cx.world.tenants(profile), Arc::clone(target), keep.clone());
    tokio::task::spawn_blocking(move || {
        let rules = Rules { profile: &target.profile, compiled: &target.compiled, keep: &keep, now };
        Plan::new(rules, &tenants)
    })
    .await
}

fn replan(cx: &Context, profile: &str, state: &State, planned: Planned) -> LookedAt {
    let mut tenancy = state.tenancy();
    let before = tenancy.planned.replace(planned);
    // What waits is of a former plan.
    cx.writer.clear(profile);
    let (before, now) = (before.map(|before| before.plan), tenancy.planned.as_ref().map(|planned| &planned.plan));
    let mut namespaces = BTreeMap::new();
    for namespace in now.into_iter().flat_map(|plan| plan.writes().map(|(name, _)| name).chain(&plan.removable)) {
        let before = before.as_ref().and_then(|before| before.get(namespace));
        namespaces.insert(namespace.clone(), drifted(before, now.and_then(|now| now.get(namespace))));
    }
    LookedAt { namespaces, class: Class::Bulk }
}

/// Hands what is to be done to the writer.
fn hand_over(cx: &Context, profile: &str, state: &State, mut looked_at: LookedAt, settles: bool, later: &mut Later) {
    let mut tenancy = state.tenancy();
    let Tenancy { planned, failures, removable, .. } = &mut *tenancy;
    let Some(Planned { plan, .. }) = planned else { return };
    let (now, class) = (Instant::now(), looked_at.class);
    removable.retain(|namespace, _| plan.removable.contains(namespace));
    for namespace in &plan.removable {
        removable.entry(namespace.clone()).or_insert(now);
        looked_at.namespaces.entry(namespace.clone()).or_default();
    }
    let todo = |namespace: &str| plan.get(namespace).is_some_and(|it| !matches!(it.todo, Todo::Nothing(_)));
    failures.retain(|namespace, _| todo(namespace));
    for namespace in failures.keys() {
        looked_at.namespaces.entry(namespace.clone()).or_default();
    }
    // Of thousands, those that have no parameters come first.
    let mut all: Vec<_> = looked_at.namespaces.into_iter().collect();
    let has_some = |namespace: &str| match plan.get(namespace).map(|standing| &standing.todo) {
        Some(Todo::Write(write)) => write.observed.is_some(),
        _ => true,
    };
    all.sort_by_cached_key(|(namespace, _)| has_some(namespace));
    for (namespace, drifted) in all {
        cx.writer.set(profile, &namespace, tenancy.job(&namespace, class, drifted, settles, later));
    }
    if let Some(planned) = &mut tenancy.planned {
        planned.handed_over = true;
    }
}

/// Tells what has happened: those that were restored in an event, all else by a pass.
fn told(cx: &Context, profile: &str, state: &State, target: &Good) {
    let mut restored = std::mem::take(&mut state.tenancy().restored);
    if !restored.is_empty() {
        restored.sort();
        let note = format!("{PARAMS} were changed by someone else and restored in {}", few(&restored));
        let first = ObjectMeta {
            name: Some(names::params(profile)),
            namespace: restored.first().cloned(),
            ..ObjectMeta::default()
        };
        cx.events.repaired::<ToolSecurityParams>(&target.profile.metadata, &first, &note);
    }
    match cx.writer.awaited(profile) {
        Awaited::Nothing => cx.queue.trigger([profile.to_owned()]),
        // A pass waits for it, or tells how far it is.
        Awaited::Some | Awaited::Until(_) => cx.queue.schedule(profile.to_owned(), PROGRESS),
    }
}

/// How long until an exception ends.
fn next_end(good: &Good, now: Timestamp) -> Option<Duration> {
    let end = good.compiled.exceptions.next_end(now)?;
    // A little later, so that it surely is over.
    Some(Duration::try_from(end.duration_since(now)).unwrap_or_default() + Duration::from_secs(1))
}

/// Does a job of the writer.
pub async fn run(cx: &Context, profile: &str, namespace: &str, job: Job) {
    // It may be gone by now, and then nobody asks how this ended.
    let state = cx.states.get(profile).unwrap_or_default();
    let (result, deleting) = match &job {
        Job::Write { write, .. } => (write_one(cx, namespace, write).await, false),
        Job::Delete => (delete_one(cx, profile, namespace).await, true),
    };
    match result {
        Ok(()) => {
            let mut tenancy = state.tenancy();
            tenancy.failures.remove(namespace);
            if matches!(job, Job::Write { drifted: true, .. }) {
                cx.metrics.drifted(PARAMS);
                tenancy.restored.push(namespace.to_owned());
            }
        }
        // What happens to the namespace will be seen; nothing in it is judged any more.
        Err(error) if error.is_without_namespace() => drop(state.tenancy().failures.remove(namespace)),
        Err(error) => {
            let what = if deleting { "deleted" } else { "written" };
            tracing::warn!(profile, namespace, %error, "parameters could not be {what}");
            state.tenancy().failed(namespace, &error, deleting);
        }
    }
}

async fn write_one(cx: &Context, namespace: &str, write: &Write) -> Result<(), ApiError> {
    let api: Api<ToolSecurityParams> = Api::namespaced(cx.client.clone(), namespace);
    let same =
        |found: &ToolSecurityParams| resolve::is(&write.params, &ObservedParams { spec: Some(found.spec.clone()) });
    let written = converge::apply(&api, &write.params, names::field_manager::PARAMS, same).await?;
    cx.wrote(PARAMS, Verb::Apply);
    if let Some(problem) = write.new_problem() {
        let note = format!("all pods are denied: {problem}");
        cx.events.params(&written.metadata, Tone::Warning, "ParameterInvalid", &note);
    }
    cx.world.wrote_params(written);
    Ok(())
}

async fn delete_one(cx: &Context, profile: &str, namespace: &str) -> Result<(), ApiError> {
    let api: Api<ToolSecurityParams> = Api::namespaced(cx.client.clone(), namespace);
    gone(api.delete(&names::params(profile), &DeleteParams::default())).await?;
    cx.metrics.wrote(PARAMS, "delete");
    cx.world.deleted_params(profile, namespace);
    Ok(())
}
