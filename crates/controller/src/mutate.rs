//! Stage mutate: who mutates pods.
//!
//! Where the API server serves MutatingAdmissionPolicy, and the profile does not want the webhook, the compiled policy
//! is written and kept as it is. Who mutates a pod is asked beside the passes ([`crate::probe`]). What is found goes into
//! the status, and both sides act on it: the webhook stays registered until the policy was seen to work, and the policy
//! stays until the webhook was seen to. Both at once do no harm, for what was written stays; and at each moment one of
//! them does it.
//!
//! The policy is looked at again and again; and at once when the watch shows that somebody else has changed it, or that
//! the API server serves the kind in another version than it did ([`crate::native`]).

use palisade_checks::json::Change as _;
use std::{fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::{
    api::admissionregistration::{v1, v1beta1},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, Resource, api::DeleteParams};
use palisade_api::{
    EngineInForce, MutationStatus,
    conditions::{ConditionType, Reason},
    names,
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;
use tokio::time::Instant;

use crate::{
    accepted::AcceptedProfile,
    call::{ApiError, call, gone},
    compare::{same_meta, same_spec},
    context::Context,
    converge::converge,
    native::{self, Kind, VERSIONS},
    probe::{Mutated, Seen},
    status::{Condition, ConditionStatus},
};

/// How often the policy is looked at when nothing is known to have changed.
const AGAIN: Duration = Duration::from_secs(30);
/// The same, while it could not be kept right.
const SOON: Duration = Duration::from_secs(5);
/// The shortest time between two looks: who changes a policy on each write must not keep this busy.
const PAUSE: Duration = Duration::from_millis(500);

/// What is known of the mutation of one profile.
#[derive(Debug)]
pub struct MutationState {
    generation: i64,
    at: Instant,
    due: Instant,
    /// The version in which the API server served the kind, and whether the policy was what it should be; unless that
    /// could not be found out.
    found: Option<(Option<&'static str>, bool)>,
    /// Whether there may be a policy that the profile does not want.
    surplus: bool,
    /// Whether pods are mutated as the profile says.
    mutated: Mutation,
    /// For the profile's status; `None` if it mutates nothing.
    pub status: Option<MutationStatus>,
}

/// Whether pods are mutated as a profile says.
#[derive(Clone, Debug, PartialEq)]
enum Mutation {
    /// It says nothing, or no pod can show it, or they are.
    Fine,
    /// That is not known yet.
    Awaited,
    /// Somewhere nobody mutates them.
    Nobody(String),
    /// It could not be found out.
    Failed(String),
}

impl MutationState {
    fn new(generation: i64, status: Option<MutationStatus>) -> Self {
        let now = Instant::now();
        Self { generation, at: now, due: now, found: None, surplus: true, mutated: Mutation::Awaited, status }
    }

    /// Whether the watch shows something else than what was found.
    fn is_outdated(&self, cx: &Context, accepted: &AcceptedProfile) -> bool {
        let pair = accepted.compiled.bundle.mutation.as_ref();
        self.found.is_some_and(|(served, kept)| cx.native.differs(served, pair.filter(|_| kept)))
    }
}

/// Brings the policy to what the profile wants, and says who mutates pods as far as that is known. Returns when to look
/// again.
pub async fn mutate(
    cx: &Context,
    accepted: &Arc<AcceptedProfile>,
    state: &mut Option<MutationState>,
) -> Option<Duration> {
    let generation = accepted.generation();
    let mut turn = match state.take() {
        Some(turn) if turn.generation == generation => turn,
        // What was found before, perhaps by an earlier process, holds until something else is found.
        before => MutationState::new(generation, before.map_or_else(|| reported(cx, accepted), |before| before.status)),
    };
    let due = if turn.is_outdated(cx, accepted) { turn.due.min(turn.at + PAUSE) } else { turn.due };
    if due <= Instant::now() {
        look(cx, accepted, &mut turn).await;
    }
    let again = say(cx, accepted, &mut turn).await;
    let outdated = turn.is_outdated(cx, accepted).then_some(turn.at + PAUSE);
    let due = turn.due.min(outdated.unwrap_or(turn.due)).saturating_duration_since(Instant::now());
    let again = turn.status.as_ref().map(|_| again.map_or(due, |again| again.min(due)));
    *state = Some(turn);
    again
}

/// What the status says that is in the cluster.
fn reported(cx: &Context, accepted: &AcceptedProfile) -> Option<MutationStatus> {
    let observed = cx.store.profile(&accepted.compiled.profile)?;
    observed.profile.as_ref().ok()?.status.as_ref()?.mutation.clone()
}

/// Looks at the policy, and brings it to what the profile wants.
async fn look(cx: &Context, accepted: &AcceptedProfile, turn: &mut MutationState) {
    let kept = matches!(turn.found, Some((Some(_), true)));
    turn.found = None;
    turn.surplus = true;
    let looked = keep(cx, accepted, kept, &mut turn.found).await;
    turn.at = Instant::now();
    turn.due = turn.at + if looked.is_ok() { AGAIN } else { SOON };
    if let Err(error) = looked {
        tracing::warn!(%error, "the policy that mutates pods could not be kept right; it is tried again");
        turn.mutated = Mutation::Failed(format!("the policy that mutates pods could not be kept right: {error}"));
    }
}

/// Says who mutates pods. Returns when to consult again.
async fn say(cx: &Context, accepted: &Arc<AcceptedProfile>, turn: &mut MutationState) -> Option<Duration> {
    if accepted.compiled.mutation.is_none() {
        (turn.status, turn.mutated) = (None, Mutation::Fine);
        return None;
    }
    let wanted = accepted.compiled.bundle.mutation.is_some();
    let Some((served, _)) = turn.found else {
        if let Mutation::Failed(why) = &turn.mutated
            && turn.status.is_none()
        {
            turn.status = Some(status(EngineInForce::None, why.clone()));
        }
        return None;
    };
    let Some((known, again)) = cx.prober.mutated(accepted, served.filter(|_| wanted)) else {
        let message = "the profile changes no pod that complies with it";
        (turn.status, turn.mutated) = (Some(status(EngineInForce::None, message)), Mutation::Fine);
        return None;
    };
    let Some(known) = known else {
        turn.mutated = Mutation::Awaited;
        turn.status.get_or_insert_with(|| status(EngineInForce::None, "it is being found out"));
        return again;
    };
    // Everywhere, or an API server that was not asked would be left without.
    let by_webhook = known.seen().is_some_and(|seen| seen.webhook) && known.failed().is_empty();
    if !wanted && by_webhook && turn.surplus {
        match delete(cx, &accepted.compiled.profile, served).await {
            Ok(()) => turn.surplus = false,
            Err(error) => {
                tracing::warn!(%error, "the policy that mutated pods could not be deleted; it is tried again");
                turn.due = turn.due.min(Instant::now() + SOON);
            }
        }
    }
    (turn.status, turn.mutated) = {
        let (status, state) = told(&known, wanted, served.is_some());
        (Some(status), state)
    };
    again
}

/// What is said of it. `wanted` is whether the API server is to do it, `served` whether it serves the kind.
fn told(known: &Mutated, wanted: bool, served: bool) -> (MutationStatus, Mutation) {
    let unserved = if wanted && !served { "; the API server serves no MutatingAdmissionPolicy" } else { "" };
    let (nobody, failed) = (known.nobody(), known.failed());
    let (engine, mut message) = match known.seen() {
        None => (EngineInForce::None, "it could not be found out".to_owned()),
        Some(_) if !nobody.is_empty() => {
            (EngineInForce::None, format!("nobody was seen to mutate a pod at {}{unserved}", nobody.join(" and ")))
        }
        Some(Seen { webhook: true, native }) if !wanted || !native => {
            let idle =
                if wanted && served { ", and the API server not to, though it has the policy" } else { unserved };
            (EngineInForce::Webhook, format!("the webhook was seen to mutate a pod{idle}"))
        }
        Some(Seen { native: true, .. }) => {
            (EngineInForce::Native, "the API server was seen to mutate a pod".to_owned())
        }
        Some(_) => {
            let message = "some API servers were seen to mutate a pod, at the others the webhook was";
            (EngineInForce::Webhook, message.to_owned())
        }
    };
    if !failed.is_empty() {
        message = format!("{message}; {}", failed.join("; "));
    }
    let state = match (nobody.is_empty(), failed.is_empty()) {
        (false, _) => Mutation::Nobody(message.clone()),
        (true, false) => Mutation::Failed(format!("who mutates pods: {message}")),
        (true, true) => Mutation::Fine,
    };
    (status(engine, message), state)
}

fn status(engine: EngineInForce, message: impl Into<String>) -> MutationStatus {
    MutationStatus { engine, message: message.into().chars().take(1000).collect() }
}

/// The condition Enforced of a profile whose policies are in force: it is only if pods are mutated, too. `None` while
/// that is not known.
pub fn enforced(in_force: Condition, turn: Option<&MutationState>) -> Option<Condition> {
    if in_force.status != ConditionStatus::True {
        return Some(in_force);
    }
    let of = |status, reason, message: &str| Some(Condition::new(ConditionType::Enforced, status, reason, message));
    match turn.map(|turn| &turn.mutated) {
        None | Some(Mutation::Fine) => Some(in_force),
        Some(Mutation::Awaited) => None,
        Some(Mutation::Nobody(message)) => of(ConditionStatus::False, Reason::NotMutated, message),
        Some(Mutation::Failed(message)) => of(ConditionStatus::Unknown, Reason::ProbeFailed, message),
    }
}

/// Brings the policy to what the profile wants, but for deleting it where the webhook is to take its place. `kept` is
/// whether it was right before.
async fn keep(
    cx: &Context,
    accepted: &AcceptedProfile,
    kept: bool,
    found: &mut Option<(Option<&'static str>, bool)>,
) -> Result<(), ApiError> {
    let served = native::served(&cx.client).await?;
    // Whoever sees it first tells the others.
    if cx.native.set_served(served) {
        cx.queue.trigger(cx.store.profiles());
    }
    *found = Some((served, false));
    if accepted.compiled.mutation.is_none() {
        return delete(cx, &accepted.compiled.profile, served).await;
    }
    let (Some(pair), Some(version)) = (accepted.compiled.bundle.mutation.as_ref(), served) else { return Ok(()) };
    let [policy, binding] = pair.objects(version);
    if version == VERSIONS[0] {
        write::<v1::MutatingAdmissionPolicy>(cx, accepted, Kind::Policy, &policy, kept).await?;
        write::<v1::MutatingAdmissionPolicyBinding>(cx, accepted, Kind::Binding, &binding, kept).await?;
    } else {
        write::<v1beta1::MutatingAdmissionPolicy>(cx, accepted, Kind::Policy, &policy, kept).await?;
        write::<v1beta1::MutatingAdmissionPolicyBinding>(cx, accepted, Kind::Binding, &binding, kept).await?;
    }
    *found = Some((served, true));
    Ok(())
}

/// Writes an object if it is not as it should be. `kept` is whether it was before.
async fn write<K>(
    cx: &Context,
    accepted: &AcceptedProfile,
    kind: Kind,
    desired: &Json,
    kept: bool,
) -> Result<(), ApiError>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let unreadable = |error| ApiError::Unreachable(kube::Error::SerdeError(error));
    let object: K = serde_json::from_value(desired.clone()).map_err(unreadable)?;
    let spec = |of: &K| serde_json::to_value(of).map(|mut of| of.at_mut(&["spec"]).take()).unwrap_or_default();
    let same = |found: &K| same_meta(object.meta(), found.meta()) && same_spec(&spec(&object), &spec(found));
    let api: Api<K> = Api::all(cx.client.clone());
    let found = call(api.get_opt(object.meta().name.as_deref().unwrap_or_default())).await?;
    if let Some(found) = found.as_ref().filter(|found| same(found)) {
        cx.native.wrote(kind, found.meta(), spec(found));
        return Ok(());
    }
    let (written, verb) = converge(&api, &object, names::field_manager::POLICY, same).await?;
    cx.native.wrote(kind, written.meta(), spec(&written));
    let of_generation =
        |found: K| generation(found.meta()).is_some_and(|generation| generation == accepted.generation().to_string());
    let (kind, drift) = (kind.name(), kept || found.is_some_and(of_generation));
    tracing::info!(kind, ?verb, drift, "wrote what mutates pods");
    cx.metrics.wrote(kind, verb.label());
    if drift {
        cx.metrics.drifted(kind);
        let name = written.meta().name.as_deref().unwrap_or_default();
        let note = format!("{kind} {name} was changed by someone else and restored");
        cx.events.repaired::<K>(&accepted.profile.metadata, written.meta(), &note);
    }
    Ok(())
}

fn generation(meta: &ObjectMeta) -> Option<String> {
    meta.annotations.as_ref()?.get(names::GENERATION_ANNOTATION).cloned()
}

/// Deletes binding and policy, where there can be any.
async fn delete(cx: &Context, profile: &str, served: Option<&str>) -> Result<(), ApiError> {
    let (name, params) = (names::mutation(profile), DeleteParams::default());
    let client = || cx.client.clone();
    let deleted = match served {
        Some("v1") => {
            gone(Api::<v1::MutatingAdmissionPolicyBinding>::all(client()).delete(&name, &params)).await?
                | gone(Api::<v1::MutatingAdmissionPolicy>::all(client()).delete(&name, &params)).await?
        }
        Some(_) => {
            gone(Api::<v1beta1::MutatingAdmissionPolicyBinding>::all(client()).delete(&name, &params)).await?
                | gone(Api::<v1beta1::MutatingAdmissionPolicy>::all(client()).delete(&name, &params)).await?
        }
        None => false,
    };
    if deleted {
        tracing::info!(profile, "deleted the policy that mutated pods");
    }
    Ok(())
}

/// The profile is being deleted: removes what was made for it.
pub async fn remove(cx: &Context, profile: &str) -> Result<(), ApiError> {
    delete(cx, profile, native::served(&cx.client).await?).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: Seen = Seen { native: true, webhook: false };
    const WEBHOOK: Seen = Seen { native: false, webhook: true };
    const BOTH: Seen = Seen { native: true, webhook: true };
    const NOBODY: Seen = Seen { native: false, webhook: false };

    fn told_of(servers: &[Result<Seen, &str>], wanted: bool, served: bool) -> (EngineInForce, Mutation) {
        let named = servers.iter().zip(["https://a", "https://b"]);
        let known = Mutated::new(named.map(|(seen, at)| (at.to_owned(), seen.map_err(str::to_owned))).collect());
        let (status, state) = told(&known, wanted, served);
        (status.engine, state)
    }

    fn passed() -> Condition {
        Condition::new(ConditionType::Enforced, ConditionStatus::True, Reason::ProbesPassed, "passed")
    }

    #[test]
    fn each_api_server_counts() {
        use EngineInForce::{Native, None, Webhook};
        for (servers, wanted, engine) in [
            ([Ok(NATIVE), Ok(NATIVE)], true, Native),
            ([Ok(NATIVE), Ok(WEBHOOK)], true, Webhook),
            ([Ok(WEBHOOK), Ok(WEBHOOK)], true, Webhook),
            ([Ok(BOTH), Ok(BOTH)], true, Native),
            ([Ok(BOTH), Ok(BOTH)], false, Webhook),
            ([Ok(BOTH), Ok(NATIVE)], false, Native),
        ] {
            assert_eq!(told_of(&servers, wanted, true), (engine, Mutation::Fine), "{servers:?} {wanted}");
        }
        let (engine, state) = told_of(&[Ok(NATIVE), Ok(NOBODY)], true, true);
        assert!(matches!(&state, Mutation::Nobody(text) if text.contains("https://b") && !text.contains("https://a")));
        assert_eq!(engine, None);
        let (engine, state) = told_of(&[Ok(NATIVE), Err("no answer")], true, true);
        assert!(matches!(&state, Mutation::Failed(text) if text.contains("https://b: no answer")));
        assert_eq!(engine, Native);
        assert!(matches!(told_of(&[Err("no answer")], true, true), (None, Mutation::Failed(_))));
    }

    #[test]
    fn a_profile_whose_pods_nobody_mutates_is_not_enforced() {
        let turn = |mutated| MutationState { mutated, ..MutationState::new(1, None) };
        let of = |mutated| enforced(passed(), Some(&turn(mutated)));
        assert_eq!(of(Mutation::Awaited), None);
        assert_eq!(of(Mutation::Fine), Some(passed()));
        let nobody = of(Mutation::Nobody("nobody at https://a".into())).unwrap();
        assert_eq!((nobody.status, nobody.reason), (ConditionStatus::False, Reason::NotMutated));
        assert_eq!(of(Mutation::Failed("x".into())).unwrap().status, ConditionStatus::Unknown);
        // What is worse comes first.
        let admitted = Condition::new(ConditionType::Enforced, ConditionStatus::False, Reason::ViolationAdmitted, "x");
        assert_eq!(enforced(admitted.clone(), Some(&turn(Mutation::Nobody("y".into())))), Some(admitted));
    }
}
