//! The lane of parameters: keeps the parameters of each namespace as the target generation of a profile requires.
//!
//! It plans all namespaces when the target changes, and afterwards only changed namespaces. It awaits only the plan:
//! writes and deletions are handed to the [`crate::param_plan::jobs`], which trigger this lane when they end.

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
    apply::bundle,
    context::{Context, state::State},
    generations::accepted::AcceptedProfile,
    message::few,
    object_name::{NamespaceName, ProfileName},
    param_plan::{
        jobs::{Class, PendingWrites},
        namespace_plan::{self, NamespacePlan, ParamsAction, Rules},
        plan::Plan,
        profile_params::{Planned, ProfileParams},
        retained::RetainedParams,
    },
    params::write::{PARAMS, begin_jobs},
    queue::{MinDelay, Requeue},
};

/// If more namespaces change at once, none of them is urgent.
const MAX_URGENT_NAMESPACES: usize = 256;
/// How often a status is brought up to date while thousands are written.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// Time until the next plan after a plan panicked.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// Processes a profile in this lane.
pub fn work(cx: Arc<Context>, profile: ProfileName) -> BoxFuture<'static, Requeue> {
    async move { keep_up_to_date(&cx, &profile).await }.boxed()
}

/// The profile needs no parameters. If the profile was deleted, its finalizer was removed by force, and a
/// reconciliation deletes the remaining parameters.
fn untargeted(cx: &Context, profile: &ProfileName) -> Requeue {
    if cx.store.profile(profile).is_none() {
        cx.queues.reconcile.trigger([profile.clone()]);
    }
    Requeue::Change
}

async fn keep_up_to_date(cx: &Arc<Context>, profile: &ProfileName) -> Requeue {
    let Some(state) = cx.states.get(profile) else { return untargeted(cx, profile) };
    let Some(target) = state.params().target.clone() else { return untargeted(cx, profile) };
    // Taken before anything is read: later changes are planned next time.
    let changed = cx.store.take_changed(profile);
    let (keep, now) = (bundle::retained(cx, profile, &state), Timestamp::now());
    let propagates_in = state.in_force().propagates_in(Instant::now());
    let is_planned = state.params().is_planned(&target, &keep, now);
    let mut later = MinDelay::default();
    let planning = if is_planned {
        let rules = Rules { profile: &target.profile, compiled: &target.compiled, keep: &keep, now };
        plan_changed(cx, profile, &state, rules, &changed)
    } else {
        match plan_all(cx, profile, &target, &keep, now).await {
            Ok(plan) => {
                let until = target.compiled.exceptions.next_end(now);
                let planned = Planned { target: Arc::clone(&target), keep, until, plan, handed_over: false };
                replan(cx, profile, &state, planned)
            }
            Err(error) => {
                tracing::error!(profile = profile.as_str(), %error, "planning the parameters of all namespaces panicked; will retry");
                return Requeue::After(AFTER_PANIC);
            }
        }
    };
    hand_over(cx, profile, &state, planning, propagates_in.is_some(), &mut later);
    // The state of an exception depends on the parameters in the namespace.
    let with_exceptions =
        changed.into_iter().filter(|namespace| !cx.store.exceptions.of(profile, namespace).is_empty());
    cx.queues.exceptions.trigger(with_exceptions.map(NamespaceName::new));
    begin_jobs(cx);
    report(cx, profile, &state, &target);
    // Then no former policy needs its parameters.
    later.at(propagates_in);
    later.at(target.exception_ends_in(now));
    later.next()
}

/// The planned namespaces: whether another writer has changed their parameters, and how urgent they are.
struct Planning {
    namespaces: BTreeMap<String, bool>,
    class: Class,
}

fn plan_changed(cx: &Context, profile: &str, state: &State, rules: Rules<'_>, changed: &BTreeSet<String>) -> Planning {
    let mut namespaces = BTreeMap::new();
    for namespace in changed {
        let (found, observed) = cx.store.tenant(profile, namespace);
        let exceptions = cx.store.exceptions.of(profile, namespace);
        let namespace_plan = match (&found, &observed) {
            (None, Some(_)) => Some(NamespacePlan::without_namespace()),
            _ => found.and_then(|found| rules.plan(&found, observed.as_ref(), &exceptions)),
        };
        let mut params = state.params();
        let Some(planned) = &mut params.planned else { break };
        let before = planned.plan.set(namespace, namespace_plan);
        let drifted = drifted(before.as_ref(), planned.plan.get(namespace));
        namespaces.insert(namespace.clone(), drifted);
    }
    Planning { class: if namespaces.len() > MAX_URGENT_NAMESPACES { Class::Bulk } else { Class::Urgent }, namespaces }
}

/// True if parameters that must be written were right before.
fn drifted(before: Option<&NamespacePlan>, now: Option<&NamespacePlan>) -> bool {
    match (before.map(|before| &before.action), now.map(|now| &now.action)) {
        (Some(ParamsAction::Nothing(Some(right))), Some(ParamsAction::Write(write))) => {
            namespace_plan::is_as_desired(&write.params, right)
        }
        _ => false,
    }
}

/// Plans all namespaces on a separate thread: this takes some tenths of a second for thousands of namespaces.
async fn plan_all(
    cx: &Context,
    profile: &str,
    target: &Arc<AcceptedProfile>,
    keep: &RetainedParams,
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

fn replan(cx: &Context, profile: &str, state: &State, planned: Planned) -> Planning {
    let mut params = state.params();
    let before = params.planned.replace(planned);
    // The waiting jobs belong to a former plan.
    cx.jobs.clear(profile);
    let (before, now) = (before.map(|before| before.plan), params.planned.as_ref().map(|planned| &planned.plan));
    let mut namespaces = BTreeMap::new();
    for namespace in now.into_iter().flat_map(|plan| plan.writes().map(|(name, _)| name).chain(&plan.removable)) {
        let before = before.as_ref().and_then(|before| before.get(namespace));
        namespaces.insert(namespace.clone(), drifted(before, now.and_then(|now| now.get(namespace))));
    }
    Planning { namespaces, class: Class::Bulk }
}

/// Hands over the parameters to write and delete.
fn hand_over(
    cx: &Context,
    profile: &ProfileName,
    state: &State,
    mut planning: Planning,
    settles: bool,
    later: &mut MinDelay,
) {
    let mut params = state.params();
    let ProfileParams { planned, failures, removable, .. } = &mut *params;
    let Some(Planned { plan, .. }) = planned else { return };
    let (now, class) = (Instant::now(), planning.class);
    removable.retain(|namespace, _| plan.removable.contains(namespace));
    for namespace in &plan.removable {
        removable.entry(namespace.clone()).or_insert(now);
        planning.namespaces.entry(namespace.clone()).or_default();
    }
    let has_action =
        |namespace: &str| plan.get(namespace).is_some_and(|it| !matches!(it.action, ParamsAction::Nothing(_)));
    failures.retain(|namespace, _| has_action(namespace));
    for namespace in failures.keys() {
        planning.namespaces.entry(namespace.clone()).or_default();
    }
    // Among thousands, namespaces without parameters come first.
    let mut all: Vec<_> = planning.namespaces.into_iter().collect();
    let has_some = |namespace: &str| match plan.get(namespace).map(|namespace_plan| &namespace_plan.action) {
        Some(ParamsAction::Write(write)) => write.observed.is_some(),
        _ => true,
    };
    all.sort_by_cached_key(|(namespace, _)| has_some(namespace));
    for (namespace, drifted) in all {
        let namespace = NamespaceName::new(namespace);
        cx.jobs.set(profile, &namespace, params.job(&namespace, class, drifted, settles, later));
    }
    if let Some(planned) = &mut params.planned {
        planned.handed_over = true;
    }
}

/// Reports restored parameters in an event, and other changes through a reconciliation.
fn report(cx: &Context, profile: &ProfileName, state: &State, target: &AcceptedProfile) {
    let mut restored = std::mem::take(&mut state.params().restored);
    if !restored.is_empty() {
        restored.sort();
        let note = format!("{PARAMS} were changed by another client and restored in {}", few(&restored));
        let first = ObjectMeta {
            name: Some(names::params(profile)),
            namespace: restored.first().cloned(),
            ..ObjectMeta::default()
        };
        cx.events.repaired::<ToolSecurityParams>(&target.profile.metadata, &first, &note);
    }
    match cx.jobs.pending(profile) {
        PendingWrites::Nothing => cx.queue.trigger([profile.clone()]),
        // A reconcile waits for it, or reports progress.
        PendingWrites::Some | PendingWrites::Until(_) => cx.queue.schedule(profile.clone(), PROGRESS_INTERVAL),
    }
}
