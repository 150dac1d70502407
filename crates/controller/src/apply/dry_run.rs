//! Stage dry run: asks the API server to validate a generation before any of its objects is written.
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
use palisade_api::names;
use palisade_kube_json::json::Change as _;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;

use crate::{
    api_request::{ApiError, call},
    context::{Context, state::State},
    generated::{
        compare::is_bundle,
        converge::{DryRun, send},
        mutating_policies,
    },
    generations::{
        accepted::{AcceptedProfile, Rejection},
        target::DryRunAnswer,
    },
    queue::MinDelay,
};

/// State of this stage for a profile.
#[derive(Debug, Default)]
pub struct DryRunState {
    last: Option<DryRunResult>,
}

/// The last answer of the API server.
#[derive(Debug)]
struct DryRunResult {
    generation: i64,
    /// Why it rejects the generation, if it does.
    result: Result<(), Arc<Rejection>>,
    /// How often in a row it has rejected the generation.
    failures: u32,
    /// The time of the next dry run, if it rejects.
    retry_at: Instant,
}

/// The answer of the API server about a generation. This stage asks once before writing, and again periodically while
/// the API server rejects the generation.
pub async fn answer(
    cx: &Context,
    profile: &str,
    state: &State,
    accepted: &AcceptedProfile,
    dry_run: &mut DryRunState,
    later: &mut MinDelay,
) -> DryRunAnswer {
    let generation = accepted.generation();
    if state.in_force().generation() == Some(generation) {
        return DryRunAnswer::Accepted;
    }
    let now = Instant::now();
    match dry_run.last.as_ref().filter(|last| last.generation == generation) {
        Some(DryRunResult { result: Ok(()), .. }) => return DryRunAnswer::Accepted,
        Some(DryRunResult { result: Err(rejection), retry_at, .. }) if *retry_at > now => {
            later.at(Some(retry_at.duration_since(now)));
            return DryRunAnswer::Rejected(Arc::clone(rejection));
        }
        _ => {}
    }
    if is_bundle(&cx.store, profile, accepted) {
        return DryRunAnswer::Accepted;
    }
    match send_all(cx, accepted).await {
        Ok(Ok(())) => {
            dry_run.last = Some(DryRunResult { generation, result: Ok(()), failures: 0, retry_at: now });
            DryRunAnswer::Accepted
        }
        Ok(Err(rejection)) => DryRunAnswer::Rejected(reject(dry_run, generation, rejection, later)),
        Err(error) => DryRunAnswer::NoVerdict(error),
    }
}

/// The API server rejects a generation: remembers the rejection and the time of the next dry run.
pub fn reject(
    dry_run: &mut DryRunState,
    generation: i64,
    rejection: Rejection,
    later: &mut MinDelay,
) -> Arc<Rejection> {
    let before = dry_run.last.as_ref().filter(|last| last.generation == generation);
    let failures = before.map_or(0, |last| last.failures).saturating_add(1);
    let after = palisade_runtime::delay(failures.saturating_add(2), Duration::from_mins(1));
    tracing::warn!(error = rejection.message, ?after, "the API server rejects the profile; will retry");
    later.at(Some(after));
    let rejection = Arc::new(rejection);
    let (result, retry_at) = (Err(Arc::clone(&rejection)), Instant::now() + after);
    dry_run.last = Some(DryRunResult { generation, result, failures, retry_at });
    rejection
}

/// Asks the API server whether it would accept all policies and bindings.
///
/// # Errors
/// The API server gave no verdict.
async fn send_all(cx: &Context, accepted: &AcceptedProfile) -> Result<Result<(), Rejection>, ApiError> {
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
            let found = observed.binding(binding);
            let mut binding = binding.clone();
            binding.spec.param_ref = binding.spec.param_ref.filter(|_| !unknown);
            let api = Api::<ValidatingAdmissionPolicyBinding>::all(client());
            if let Some(rejection) = ask(&api, &binding, found).await? {
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
    match send(api, object, found, names::field_manager::POLICY, DryRun(true)).await {
        Ok(_) => Ok(None),
        Err(error) if error.is_refusal() => Ok(Some(Rejection::by_api_server(&format!("{kind} {name}"), &error))),
        Err(error) => Err(error),
    }
}
