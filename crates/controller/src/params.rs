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
use kube::core::ObjectMeta;
use palisade_api::{ToolSecurityParams, names};
use tokio::time::Instant;

use crate::{
    accepted::AcceptedProfile,
    apply,
    context::Context,
    jobs::{Awaited, Class},
    queue::{Later, Next},
    resolve::{self, Keep, Plan, Rules, Standing, Todo},
    state::State,
    tenancy::{Planned, Tenancy},
    text::few,
    write::{PARAMS, begin_jobs},
};

/// So many namespaces that change at once are as many as if all had.
const MANY: usize = 256;
/// How often a status is brought up to date while thousands are written.
const PROGRESS: Duration = Duration::from_secs(1);
/// How long after a plan that panicked the next one is made.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// A turn of this lane.
pub fn work(cx: Arc<Context>, profile: String) -> BoxFuture<'static, Next> {
    async move { turn(&cx, &profile).await }.boxed()
}

/// Nothing is kept for the profile. If there is none, somebody has removed its finalizer by force, and a pass deletes the
/// parameters that are left.
fn untargeted(cx: &Context, profile: &str) -> Next {
    if cx.store.profile(profile).is_none() {
        cx.queues.reconcile.trigger([profile.to_owned()]);
    }
    Next::Change
}

async fn turn(cx: &Arc<Context>, profile: &str) -> Next {
    let Some(state) = cx.states.get(profile) else { return untargeted(cx, profile) };
    let Some(target) = state.tenancy().target.clone() else { return untargeted(cx, profile) };
    // Before anything is read: what changes from here on is looked at in the next turn.
    let changed = cx.store.take_changed(profile);
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
    begin_jobs(cx);
    report(cx, profile, &state, &target);
    // When nothing must be kept for a former policy any more.
    later.at(settles_in);
    later.at(target.exception_ends_in(now));
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
        let (found, observed) = cx.store.tenant(profile, namespace);
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
    target: &Arc<AcceptedProfile>,
    keep: &Keep,
    now: Timestamp,
) -> Result<Plan, tokio::task::JoinError> {
    let _permit = cx.plans.acquire().await;
    let (tenants, target, keep) = (cx.store.tenants(profile), Arc::clone(target), keep.clone());
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
    cx.jobs.clear(profile);
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
        cx.jobs.set(profile, &namespace, tenancy.job(&namespace, class, drifted, settles, later));
    }
    if let Some(planned) = &mut tenancy.planned {
        planned.handed_over = true;
    }
}

/// Tells what has happened: those that were restored in an event, all else by a pass.
fn report(cx: &Context, profile: &str, state: &State, target: &AcceptedProfile) {
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
    match cx.jobs.awaited(profile) {
        Awaited::Nothing => cx.queue.trigger([profile.to_owned()]),
        // A pass waits for it, or tells how far it is.
        Awaited::Some | Awaited::Until(_) => cx.queue.schedule(profile.to_owned(), PROGRESS),
    }
}
