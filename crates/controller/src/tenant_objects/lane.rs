//! The lane of generated objects: makes the objects of all profiles in a namespace as their templates require. It
//! processes one namespace at a time, independent of all others.
//!
//! Everything is decided from the controller's copy of the cluster, so a turn without differences sends no request.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use palisade_compiler::{ResolvedTemplate, selects};
use tokio::sync::OwnedSemaphorePermit;

use super::write::{Written, perform};
use crate::{
    context::Context,
    generations::accepted::AcceptedProfile,
    object_name::{NamespaceName, ProfileName},
    object_plan::{
        outcomes::Outcome,
        plan::{ObjectAction, ObjectPlan, plan},
    },
    queue::{MinDelay, Requeue},
    watch::{object_store::ObjectInNamespace, store::ObservedNamespace},
};

/// A namespace that takes longer gives its place to the next one.
const SLOW_NAMESPACE: Duration = Duration::from_secs(1);
/// How often to check whether all kinds are listed.
const SETTLE_INTERVAL: Duration = Duration::from_millis(200);
/// How often a status is brought up to date while thousands are written.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(1);
/// The longest problem of a namespace, in characters.
const MAX_PROBLEM_CHARS: usize = 1000;

/// Processes a namespace in this lane.
pub fn work(cx: Arc<Context>, namespace: NamespaceName) -> BoxFuture<'static, Requeue> {
    async move {
        // Without permission for any kind, there is nothing to do.
        if cx.store.objects.is_off() {
            return Requeue::Change;
        }
        let Ok(place) = Arc::clone(&cx.object_places).acquire_owned().await else { return Requeue::Change };
        let mut place: Option<OwnedSemaphorePermit> = Some(place);
        let mut turn = std::pin::pin!(process(&cx, &namespace));
        tokio::select! {
            next = &mut turn => return next,
            () = tokio::time::sleep(SLOW_NAMESPACE) => drop(place.take()),
        }
        turn.await
    }
    .boxed()
}

async fn process(cx: &Context, namespace: &NamespaceName) -> Requeue {
    if !cx.store.objects.settled() {
        return Requeue::After(SETTLE_INTERVAL);
    }
    let mut later = MinDelay::default();
    let existing = cx.store.objects.in_namespace(namespace);
    let mut profiles = cx.store.profiles();
    let generated = existing.iter().filter(|one| one.observed.is_generated());
    profiles.extend(generated.map(|one| ProfileName::new(&one.observed.profile)));
    // A namespace that is being deleted is left alone.
    let (found, _) = cx.store.tenant("", namespace);
    let found = found.filter(|found| !found.terminating);
    for profile in profiles {
        let before = cx.object_outcomes.get(&profile, namespace);
        let outcome = match &found {
            None => None,
            Some(found) => {
                let Some(desired) = desired(cx, &profile, found) else { continue };
                converge(cx, &profile, namespace, desired, &existing, before, &mut later).await
            }
        };
        if cx.object_outcomes.set(&profile, namespace, outcome) {
            cx.queue.schedule(profile, PROGRESS_INTERVAL);
        }
    }
    later.next()
}

/// The objects of a profile that a namespace must have.
struct Desired {
    /// The generation, if the profile selects the namespace; otherwise the namespace must have no objects.
    generation: Option<i64>,
    templates: Vec<ResolvedTemplate>,
}

/// The objects of a profile that a namespace must have; `None` if that is not known yet.
fn desired(cx: &Context, profile: &str, namespace: &ObservedNamespace) -> Option<Desired> {
    let none = Desired { generation: None, templates: Vec::new() };
    let target = cx.states.get(profile).and_then(|state| state.params().target.clone());
    let accepted = match (cx.store.profile(profile), target) {
        (Some(_), Some(target)) => target,
        // A removal begins when the target is gone.
        (Some(observed), None) if observed.meta.deletion_timestamp.is_some() => return Some(none),
        // Not compiled yet, or never accepted.
        (Some(_), None) => return None,
        (None, _) => return Some(none),
    };
    if accepted.compiled.templates.is_empty() {
        return Some(none);
    }
    let found = namespace.namespace.get();
    if !selects(&accepted.profile.spec, &found) {
        return Some(none);
    }
    Some(Desired { generation: Some(accepted.generation()), templates: accepted.compiled.generated(&found) })
}

/// Makes the objects of a profile in a namespace as required. Returns the result; `None` if there is nothing to report.
async fn converge(
    cx: &Context,
    profile: &ProfileName,
    namespace: &NamespaceName,
    desired: Desired,
    existing: &[ObjectInNamespace],
    before: Option<Outcome>,
    later: &mut MinDelay,
) -> Option<Outcome> {
    let Desired { generation, templates } = desired;
    let ObjectPlan { desired: count, mut ready, actions, problems } = plan(profile, templates, existing);
    let mut problems: Vec<_> =
        problems.into_iter().map(|(template, problem)| format!("template {template}: {problem}")).collect();
    let known = before.unwrap_or_default();
    let mut outcome = Outcome { generation, desired: count, attempts: known.attempts.clone(), ..Outcome::default() };
    let keys: Vec<_> = actions.iter().map(|action| action.key().0).collect();
    // Objects without an action need no limit, except after repairs.
    outcome.attempts.retain(|object, attempts| keys.contains(object) || attempts.has_repairs());
    let was_ready = known.generation == generation && known.ready == known.desired && known.problem.is_none();
    for action in actions {
        let key = action.key();
        // A list of the kind triggers all namespaces.
        if let Err(why) = cx.store.objects.kind(action.object_type()) {
            problems.push(format!("{}: {why}", key.0));
            continue;
        }
        if let Some((rest, why)) = outcome.wait(&key) {
            later.at(Some(rest));
            problems.push(format!("{}: {why}", key.0));
            continue;
        }
        if cx.stop.is_cancelled() {
            break;
        }
        let is_new = matches!(&action, ObjectAction::Apply { observed: None, .. });
        let is_repair = action.is_repair() || (was_ready && is_new);
        match perform(cx, profile, namespace, &action).await {
            Ok(Written::Applied) => {
                ready += 1;
                if is_repair {
                    tracing::info!(
                        profile = profile.as_str(),
                        namespace = namespace.as_str(),
                        object = key.0,
                        "repaired a generated object"
                    );
                    cx.metrics.writes.drifted("GeneratedObject");
                }
                outcome.succeeded(key, is_repair);
            }
            Ok(Written::Removed) => outcome.succeeded(key, false),
            // The watches of namespaces and of objects show it.
            Err(error) if error.is_without_namespace() => {}
            Err(error) => {
                let problem = error.to_string();
                tracing::warn!(
                    profile = profile.as_str(),
                    namespace = namespace.as_str(),
                    object = key.0,
                    error = problem,
                    "could not write a generated object; will retry"
                );
                problems.push(format!("{}: {problem}", key.0));
                later.at(Some(outcome.failed(key, problem)));
            }
        }
    }
    outcome.ready = ready;
    let problem: String = problems.join("; ").chars().take(MAX_PROBLEM_CHARS).collect();
    outcome.problem = (!problem.is_empty()).then_some(problem);
    (generation.is_some() || outcome.problem.is_some()).then_some(outcome)
}

/// Triggers the namespaces with objects of a profile.
pub fn trigger_existing(cx: &Context, profile: &str) {
    cx.queues.objects.trigger(cx.store.objects.namespaces_of(profile));
}

/// Triggers the namespaces of a profile with a new target.
pub fn trigger_target(cx: &Context, target: &AcceptedProfile) {
    if !target.compiled.templates.is_empty() {
        let all = cx.store.namespaces();
        cx.queues.objects.trigger(all.iter().map(|namespace| NamespaceName::new(namespace.namespace.get().name)));
    }
    trigger_existing(cx, &target.compiled.profile);
}

/// True if no namespace has objects of a profile that is being deleted. Those in namespaces that are being deleted do
/// not count.
pub fn is_removed(cx: &Context, profile: &str) -> bool {
    cx.store.objects.settled()
        && cx.store.objects.namespaces_of(profile).iter().all(|namespace| !cx.store.has_namespace(namespace))
}
