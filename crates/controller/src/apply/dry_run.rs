//! Stage try: asks the API server to validate a generation before any of its objects is written.
//!
//! The gate implements the validation of the API server. Gaps in it must not lead to policies of one generation beside
//! parameters of another. Therefore this stage sends each policy and binding as a dry run. If the API server rejects
//! one, the profile is not accepted, and the last good generation stays complete.

use std::{fmt::Debug, sync::Arc, time::Duration};

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject},
};
use palisade_api::{
    conditions::{ConditionType, Reason},
    names,
};
use palisade_objects::json::Change as _;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;

use crate::{
    api_request::{ApiError, call},
    context::{Context, state::State},
    generated::{
        compare::is_bundle,
        converge::{Dry, send},
        mutating_policies,
    },
    generations::accepted::{AcceptedProfile, Rejection, Verdict},
    queue::Later,
    watch::store::ObservedProfile,
};

/// The longest message about a generation that was refuted, in characters.
const MESSAGE: usize = 3000;

/// State of this stage for a profile.
#[derive(Debug, Default)]
pub struct TrialState {
    /// The last answer.
    last: Option<Tried>,
}

/// The answer of the API server for a generation.
#[derive(Debug)]
struct Tried {
    /// The generation.
    generation: i64,
    /// Why it rejects the generation, if it does.
    result: Result<(), Arc<Rejection>>,
    /// How often in a row it has rejected the generation.
    failures: u32,
    /// When to ask again, if it rejects.
    again: Instant,
}

/// The verdict of the API server on a generation. This stage asks once before writing, and again periodically while the
/// API server rejects the generation.
pub async fn tried(
    cx: &Context,
    profile: &str,
    state: &State,
    accepted: &Arc<AcceptedProfile>,
    trial: &mut TrialState,
    later: &mut Later,
) -> Result<Verdict, ApiError> {
    let generation = accepted.generation();
    if state.in_force().generation() == Some(generation) {
        return Ok(Ok(Arc::clone(accepted)));
    }
    let now = Instant::now();
    let before = trial.last.as_ref().filter(|tried| tried.generation == generation);
    match before {
        Some(Tried { result: Ok(()), .. }) => return Ok(Ok(Arc::clone(accepted))),
        Some(Tried { result: Err(rejection), again, .. }) if *again > now => {
            later.at(Some(again.duration_since(now)));
            return Ok(Err(Arc::clone(rejection)));
        }
        _ => {}
    }
    if is_bundle(&cx.store, profile, accepted) {
        return Ok(Ok(Arc::clone(accepted)));
    }
    match dry_run(cx, accepted).await? {
        Ok(()) => {
            trial.last = Some(Tried { generation, result: Ok(()), failures: 0, again: now });
            Ok(Ok(Arc::clone(accepted)))
        }
        Err(rejection) => Ok(Err(reject(trial, generation, rejection, later))),
    }
}

/// The API server rejects a generation: remembers that, and when to ask again.
pub fn reject(trial: &mut TrialState, generation: i64, rejection: Rejection, later: &mut Later) -> Arc<Rejection> {
    let before = trial.last.as_ref().filter(|tried| tried.generation == generation);
    let failures = before.map_or(0, |tried| tried.failures).saturating_add(1);
    let after = palisade_process::delay(failures.saturating_add(2), Duration::from_mins(1));
    tracing::warn!(error = rejection.message, ?after, "the API server rejects the profile; will retry");
    later.at(Some(after));
    let rejection = Arc::new(rejection);
    let (result, again) = (Err(Arc::clone(&rejection)), Instant::now() + after);
    trial.last = Some(Tried { generation, result, failures, again });
    rejection
}

/// A generation that probes refuted: with it in effect, an API server denied a compliant object.
#[derive(Clone, Debug)]
pub struct Refuted {
    /// The generation.
    pub generation: i64,
    /// Why it is not accepted.
    pub rejection: Arc<Rejection>,
}

impl Refuted {
    /// The generation is refuted, and another one is put back.
    pub fn new(generation: i64, why: &str, put_back: i64) -> Self {
        let message = format!(
            "{why}; therefore the spec of generation {put_back} was restored. Another component of the cluster may \
             change objects before they are evaluated. Change the profile to try again"
        );
        let message = message.chars().take(MESSAGE).collect();
        Self { generation, rejection: Arc::new(Rejection { reason: Reason::CompliantPodDenied, message }) }
    }

    /// The report of an earlier process about the generation in the cluster: a restart must not try it again.
    pub fn reported(observed: &ObservedProfile) -> Option<Self> {
        let status = observed.profile.as_ref().ok()?.status.as_ref()?;
        let accepted = ConditionType::Accepted.to_string();
        let condition = status.conditions.iter().find(|condition| condition.type_ == accepted)?;
        let reason = Reason::CompliantPodDenied;
        let generation = observed.meta.generation?;
        let is_this = condition.reason == reason.to_string() && condition.observed_generation == Some(generation);
        let rejection = || Arc::new(Rejection { reason, message: condition.message.clone() });
        is_this.then(|| Self { generation, rejection: rejection() })
    }
}

/// Asks the API server whether it would accept all policies and bindings.
///
/// # Errors
/// It gave no verdict.
async fn dry_run(cx: &Context, accepted: &AcceptedProfile) -> Result<Result<(), Rejection>, ApiError> {
    for (part, pair) in accepted.compiled.bundle.pairs() {
        let policy = &pair.policy;
        let observed = cx.store.pair(&accepted.compiled.profile, part);
        let found = observed.policy.as_deref();
        let read = |policy: &ValidatingAdmissionPolicy| policy.spec.as_ref().and_then(|spec| spec.param_kind.clone());
        // The author of a binding must be allowed to read its parameters, and the API server learns their kind from the
        // policy, which may not be there yet.
        let unknown = found.is_none_or(|found| read(found) != read(policy));
        let client = || cx.client.clone();
        if let Some(rejection) = ask(&Api::<ValidatingAdmissionPolicy>::all(client()), policy, found).await? {
            return Ok(Err(rejection));
        }
        for binding in pair.bindings() {
            let found = binding.metadata.name.as_ref().and_then(|name| observed.bindings.get(name));
            let mut binding = binding.clone();
            binding.spec.param_ref = binding.spec.param_ref.filter(|_| !unknown);
            let api = Api::<ValidatingAdmissionPolicyBinding>::all(client());
            if let Some(rejection) = ask(&api, &binding, found.map(AsRef::as_ref)).await? {
                return Ok(Err(rejection));
            }
        }
    }
    let Some(pair) = &accepted.compiled.bundle.mutation else { return Ok(Ok(())) };
    let Some(version) = mutating_policies::served(&cx.client).await? else { return Ok(Ok(())) };
    let mut objects = pair.objects(version);
    if let Some(spec) = objects[1].at_mut(&["spec"]).as_object_mut() {
        // As above. This does not look whether the policy is there.
        spec.remove("paramRef");
    }
    for (kind, object) in [mutating_policies::Kind::Policy, mutating_policies::Kind::Binding].into_iter().zip(objects) {
        let resource: ApiResource = kind.resource(version);
        let api: Api<DynamicObject> = Api::all_with(cx.client.clone(), &resource);
        let unreadable = |error| ApiError::Unreachable(kube::Error::SerdeError(error));
        let object: DynamicObject = serde_json::from_value(object).map_err(unreadable)?;
        let found = call(api.get_opt(object.metadata.name.as_deref().unwrap_or_default())).await?;
        if let Some(rejection) = ask_of(kind.name(), &api, &object, found.as_ref()).await? {
            return Ok(Err(rejection));
        }
    }
    Ok(Ok(()))
}

async fn ask<K>(api: &Api<K>, object: &K, found: Option<&K>) -> Result<Option<Rejection>, ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    ask_of(&K::kind(&()), api, object, found).await
}

/// Why the API server rejects an object, if it does.
///
/// # Errors
/// That is unknown.
async fn ask_of<K>(kind: &str, api: &Api<K>, object: &K, found: Option<&K>) -> Result<Option<Rejection>, ApiError>
where
    K: Resource + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = object.meta().name.as_deref().unwrap_or_default();
    match send(api, object, found, names::field_manager::POLICY, Dry::Run).await {
        Ok(_) => Ok(None),
        Err(error) if error.is_refusal() => Ok(Some(Rejection::by_api_server(&format!("{kind} {name}"), &error))),
        Err(error) => Err(error),
    }
}
