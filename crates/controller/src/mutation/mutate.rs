//! Stage mutate: selects the engine that mutates pods.
//!
//! If the API server serves MutatingAdmissionPolicy, and the profile does not require the webhook, this stage writes
//! and maintains the compiled policy. Probes detect the active engine, independent of reconciliations
//! ([`crate::probe`]). Their answer is written to the status, and decides when an engine is removed: the webhook stays
//! registered until a probe has observed the policy, and the policy stays until a probe has observed the webhook. Both
//! at the same time cause no harm, because mutations are idempotent. At each moment, at least one of them mutates pods.
//!
//! This stage checks the policy periodically. It also checks it when the watch shows a change by another writer, or
//! when the API server serves the kind in another version ([`crate::generated::mutating_policies`]).

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
use palisade_kube_json::json::Change as _;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value as Json;
use tokio::time::Instant;

use crate::{
    api_request::{ApiError, call, gone},
    context::Context,
    generated::{
        compare::{same_meta, same_spec},
        converge::converge,
        mutating_policies::{self, Kind, VERSIONS},
    },
    generations::accepted::AcceptedProfile,
    probe::{MutationAnswer, ObservedMutators},
    status::{Condition, ConditionStatus},
};

/// How often the policy is checked when nothing is known to have changed.
const CHECK_INTERVAL: Duration = Duration::from_secs(30);
/// The same, while it could not be written.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// The shortest time between two checks, in case something changes the policy on each write.
const MIN_CHECK_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug)]
pub struct MutationState {
    generation: i64,
    at: Instant,
    due: Instant,
    /// The version in which the API server served the kind, and whether the policy was as desired; `None` if unknown.
    found: Option<(Option<&'static str>, bool)>,
    /// True if there may be a policy that the profile does not want.
    surplus: bool,
    /// Result of the last probe of mutation.
    mutated: PodMutation,
    /// For the profile's status; `None` if it mutates nothing.
    pub status: Option<MutationStatus>,
}

/// Result of the probe of mutation.
#[derive(Clone, Debug, PartialEq)]
enum PodMutation {
    /// Pods are mutated as declared, or the profile mutates no pod that can show it.
    AsDeclared,
    /// There is no observation yet.
    Pending,
    /// No engine mutates the pods of some API server.
    Missing(String),
    /// The observation failed.
    Unknown(String),
}

impl MutationState {
    /// True if pods were observed to be mutated as the profile declares.
    pub fn is_as_declared(&self) -> bool {
        self.mutated == PodMutation::AsDeclared
    }

    fn new(generation: i64, status: Option<MutationStatus>) -> Self {
        let now = Instant::now();
        Self { generation, at: now, due: now, found: None, surplus: true, mutated: PodMutation::Pending, status }
    }

    /// True if the watch shows another state than this stage found.
    fn is_outdated(&self, cx: &Context, accepted: &AcceptedProfile) -> bool {
        let pair = accepted.compiled.bundle.mutation.as_ref();
        self.found.is_some_and(|(served, kept)| cx.native.differs(served, pair.filter(|_| kept)))
    }
}

/// Writes the policy that the profile demands, and reports which engine mutates pods, if it is known. Returns when to
/// check again.
pub async fn mutate(
    cx: &Context,
    accepted: &Arc<AcceptedProfile>,
    remembered: &mut Option<MutationState>,
) -> Option<Duration> {
    let generation = accepted.generation();
    let mut state = match remembered.take() {
        Some(state) if state.generation == generation => state,
        // The previous observation, perhaps by an earlier process, counts until the next one.
        before => MutationState::new(generation, before.map_or_else(|| reported(cx, accepted), |before| before.status)),
    };
    let due = if state.is_outdated(cx, accepted) { state.due.min(state.at + MIN_CHECK_INTERVAL) } else { state.due };
    if due <= Instant::now() {
        refresh(cx, accepted, &mut state).await;
    }
    let again = observe(cx, accepted, &mut state).await;
    let outdated = state.is_outdated(cx, accepted).then_some(state.at + MIN_CHECK_INTERVAL);
    let due = state.due.min(outdated.unwrap_or(state.due)).saturating_duration_since(Instant::now());
    let again = state.status.as_ref().map(|_| again.map_or(due, |again| again.min(due)));
    *remembered = Some(state);
    again
}

/// The mutation status in the cluster.
fn reported(cx: &Context, accepted: &AcceptedProfile) -> Option<MutationStatus> {
    let observed = cx.store.profile(&accepted.compiled.profile)?;
    observed.profile.as_ref().ok()?.status.as_ref()?.mutation.clone()
}

/// Checks the policy, and writes it if it is not as desired.
async fn refresh(cx: &Context, accepted: &AcceptedProfile, state: &mut MutationState) {
    let kept = matches!(state.found, Some((Some(_), true)));
    state.found = None;
    state.surplus = true;
    let written = write_policies(cx, accepted, kept, &mut state.found).await;
    state.at = Instant::now();
    state.due = state.at + if written.is_ok() { CHECK_INTERVAL } else { RETRY_INTERVAL };
    if let Err(error) = written {
        tracing::warn!(%error, "could not write the mutating policy; will retry");
        state.mutated = PodMutation::Unknown(format!("the mutating policy could not be written: {error}"));
    }
}

/// Observes which engine mutates pods. Returns when to consult again.
async fn observe(cx: &Context, accepted: &Arc<AcceptedProfile>, state: &mut MutationState) -> Option<Duration> {
    if accepted.compiled.mutation.is_none() {
        (state.status, state.mutated) = (None, PodMutation::AsDeclared);
        return None;
    }
    let wanted = accepted.compiled.bundle.mutation.is_some();
    let Some((served, _)) = state.found else {
        if let PodMutation::Unknown(why) = &state.mutated
            && state.status.is_none()
        {
            state.status = Some(status(EngineInForce::None, why.clone()));
        }
        return None;
    };
    let Some((known, again)) = cx.prober.mutation(accepted, served.filter(|_| wanted)) else {
        let message = "the profile does not mutate compliant pods";
        (state.status, state.mutated) = (Some(status(EngineInForce::None, message)), PodMutation::AsDeclared);
        return None;
    };
    let Some(known) = known else {
        state.mutated = PodMutation::Pending;
        state.status.get_or_insert_with(|| status(EngineInForce::None, "not observed yet"));
        return again;
    };
    // At all of them: otherwise an API server that gave no answer would be left without an engine.
    let by_webhook = known.everywhere().is_some_and(|seen| seen.webhook) && known.failed().is_empty();
    if !wanted && by_webhook && state.surplus {
        match delete(cx, &accepted.compiled.profile, served).await {
            Ok(()) => state.surplus = false,
            Err(error) => {
                tracing::warn!(%error, "could not delete the mutating policy; will retry");
                state.due = state.due.min(Instant::now() + RETRY_INTERVAL);
            }
        }
    }
    (state.status, state.mutated) = {
        let (status, state) = summarize(&known, wanted, served.is_some());
        (Some(status), state)
    };
    again
}

/// The status for an answer. `wanted` is whether the API server is to mutate pods, `served` whether it serves the kind.
fn summarize(known: &MutationAnswer, wanted: bool, served: bool) -> (MutationStatus, PodMutation) {
    let unserved = if wanted && !served { "; the API server does not serve MutatingAdmissionPolicy" } else { "" };
    let (unmutated, failed) = (known.unmutated(), known.failed());
    let (engine, mut message) = match known.everywhere() {
        None => (EngineInForce::None, "could not be observed".to_owned()),
        Some(_) if !unmutated.is_empty() => (
            EngineInForce::None,
            format!("no engine was observed mutating pods at {}{unserved}", unmutated.join(" and ")),
        ),
        Some(ObservedMutators { webhook: true, native }) if !wanted || !native => {
            let idle =
                if wanted && served { ", but the API server was not, although it has the policy" } else { unserved };
            (EngineInForce::Webhook, format!("the webhook was observed mutating pods{idle}"))
        }
        Some(ObservedMutators { native: true, .. }) => {
            (EngineInForce::Native, "the API server was observed mutating pods".to_owned())
        }
        Some(_) => {
            let message = "some API servers were observed mutating pods, and the webhook was observed for the others";
            (EngineInForce::Webhook, message.to_owned())
        }
    };
    if !failed.is_empty() {
        message = format!("{message}; {}", failed.join("; "));
    }
    let state = match (unmutated.is_empty(), failed.is_empty()) {
        (false, _) => PodMutation::Missing(message.clone()),
        (true, false) => PodMutation::Unknown(format!("mutation engine: {message}")),
        (true, true) => PodMutation::AsDeclared,
    };
    (status(engine, message), state)
}

fn status(engine: EngineInForce, message: impl Into<String>) -> MutationStatus {
    MutationStatus { engine, message: message.into().chars().take(1000).collect() }
}

/// The condition Enforced of a profile with its policies in effect: true only if mutation was also observed. `None`
/// while that is unknown.
pub fn enforced(in_force: Condition, state: Option<&MutationState>) -> Option<Condition> {
    if in_force.status != ConditionStatus::True {
        return Some(in_force);
    }
    let of = |status, reason, message: &str| Some(Condition::new(ConditionType::Enforced, status, reason, message));
    match state.map(|state| &state.mutated) {
        None | Some(PodMutation::AsDeclared) => Some(in_force),
        Some(PodMutation::Pending) => None,
        Some(PodMutation::Missing(message)) => of(ConditionStatus::False, Reason::NotMutated, message),
        Some(PodMutation::Unknown(message)) => of(ConditionStatus::Unknown, Reason::ProbeFailed, message),
    }
}

/// Writes the policy that the profile demands. If the webhook shall replace it, this does not delete it. `kept` is
/// whether the policy was as desired before.
async fn write_policies(
    cx: &Context,
    accepted: &AcceptedProfile,
    kept: bool,
    found: &mut Option<(Option<&'static str>, bool)>,
) -> Result<(), ApiError> {
    let served = mutating_policies::served(&cx.client).await?;
    // The first to notice triggers the other profiles.
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

/// Writes an object if it is not as desired. `kept` is whether it was before.
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
    let (written, verb) = converge(&api, &object, found.as_ref(), names::field_manager::POLICY, same).await?;
    cx.native.wrote(kind, written.meta(), spec(&written));
    let of_generation =
        |found: K| generation(found.meta()).is_some_and(|generation| generation == accepted.generation().to_string());
    let (kind, drift) = (kind.name(), kept || found.is_some_and(of_generation));
    tracing::info!(kind, ?verb, drift, "wrote a mutating policy or binding");
    cx.metrics.writes.wrote(kind, verb.label());
    if drift {
        cx.metrics.writes.drifted(kind);
        let name = written.meta().name.as_deref().unwrap_or_default();
        let note = format!("{kind} {name} was changed by another client and restored");
        cx.events.repaired::<K>(&accepted.profile.metadata, written.meta(), &note);
    }
    Ok(())
}

fn generation(meta: &ObjectMeta) -> Option<String> {
    meta.annotations.as_ref()?.get(names::GENERATION_ANNOTATION).cloned()
}

/// Deletes binding and policy, where the API server serves their kinds.
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
        tracing::info!(profile, "deleted the mutating policy");
    }
    Ok(())
}

/// The profile is being deleted: deletes binding and policy.
pub async fn remove(cx: &Context, profile: &str) -> Result<(), ApiError> {
    delete(cx, profile, mutating_policies::served(&cx.client).await?).await
}

#[cfg(test)]
mod tests {
    use super::*;

    const NATIVE: ObservedMutators = ObservedMutators { native: true, webhook: false };
    const WEBHOOK: ObservedMutators = ObservedMutators { native: false, webhook: true };
    const BOTH: ObservedMutators = ObservedMutators { native: true, webhook: true };
    const NEITHER: ObservedMutators = ObservedMutators { native: false, webhook: false };

    fn summarize_of(
        servers: &[Result<ObservedMutators, &str>],
        wanted: bool,
        served: bool,
    ) -> (EngineInForce, PodMutation) {
        let named = servers.iter().zip(["https://a", "https://b"]);
        let known = MutationAnswer::new(named.map(|(seen, at)| (at.to_owned(), seen.map_err(str::to_owned))).collect());
        let (status, state) = summarize(&known, wanted, served);
        (status.engine, state)
    }

    fn passed() -> Condition {
        Condition::new(ConditionType::Enforced, ConditionStatus::True, Reason::ProbesPassed, "passed")
    }

    #[test]
    fn engine_in_force_summarizes_all_api_servers() {
        use EngineInForce::{Native, None, Webhook};
        for (servers, wanted, engine) in [
            ([Ok(NATIVE), Ok(NATIVE)], true, Native),
            ([Ok(NATIVE), Ok(WEBHOOK)], true, Webhook),
            ([Ok(WEBHOOK), Ok(WEBHOOK)], true, Webhook),
            ([Ok(BOTH), Ok(BOTH)], true, Native),
            ([Ok(BOTH), Ok(BOTH)], false, Webhook),
            ([Ok(BOTH), Ok(NATIVE)], false, Native),
        ] {
            assert_eq!(summarize_of(&servers, wanted, true), (engine, PodMutation::AsDeclared), "{servers:?} {wanted}");
        }
        let (engine, state) = summarize_of(&[Ok(NATIVE), Ok(NEITHER)], true, true);
        assert!(
            matches!(&state, PodMutation::Missing(text) if text.contains("https://b") && !text.contains("https://a"))
        );
        assert_eq!(engine, None);
        let (engine, state) = summarize_of(&[Ok(NATIVE), Err("no answer")], true, true);
        assert!(matches!(&state, PodMutation::Unknown(text) if text.contains("https://b: no answer")));
        assert_eq!(engine, Native);
        assert!(matches!(summarize_of(&[Err("no answer")], true, true), (None, PodMutation::Unknown(_))));
    }

    #[test]
    fn profile_without_a_working_engine_is_not_enforced() {
        let state = |mutated| MutationState { mutated, ..MutationState::new(1, None) };
        let of = |mutated| enforced(passed(), Some(&state(mutated)));
        assert_eq!(of(PodMutation::Pending), None);
        assert_eq!(of(PodMutation::AsDeclared), Some(passed()));
        let missing = of(PodMutation::Missing("no engine at https://a".into())).unwrap();
        assert_eq!((missing.status, missing.reason), (ConditionStatus::False, Reason::NotMutated));
        assert_eq!(of(PodMutation::Unknown("x".into())).unwrap().status, ConditionStatus::Unknown);
        // An admitted violation comes first.
        let admitted = Condition::new(ConditionType::Enforced, ConditionStatus::False, Reason::ViolationAdmitted, "x");
        assert_eq!(enforced(admitted.clone(), Some(&state(PodMutation::Missing("y".into())))), Some(admitted));
    }
}
