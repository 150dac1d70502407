//! Stage try: what the API server says of a generation, before anything of it is written.
//!
//! The gate knows what an API server rejects; whatever it does not know must not lead to policies of one generation
//! beside parameters of another. So each policy and binding is sent as a dry run, and where one is rejected, the
//! profile is not accepted and the last good generation stays, whole.

use std::{fmt::Debug, sync::Arc};

use k8s_openapi::api::admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding};
use kube::{
    Api, Resource,
    api::{ApiResource, DynamicObject, Patch, PatchParams},
};
use palisade_api::{conditions::Reason, names};
use palisade_compiler::Pair;
use palisade_objects::json::Change as _;
use serde::{Serialize, de::DeserializeOwned};
use tokio::time::Instant;

use crate::{
    call::{ApiError, call},
    compile::{Good, Refused},
    context::Context,
    native,
};

/// What the API server said of a generation.
#[derive(Debug)]
pub struct Tried {
    /// Of which one.
    pub generation: i64,
    /// Why it rejects it, if it does.
    pub result: Result<(), Arc<Refused>>,
    /// How often in a row.
    pub failures: u32,
    /// When it is asked again, if it rejects.
    pub again: Instant,
}

/// Asks the API server whether it would take all of it.
///
/// # Errors
/// It gave no verdict.
pub async fn dry_run(cx: &Context, good: &Good) -> Result<Result<(), Refused>, ApiError> {
    for (shape, pair) in good.compiled.bundle.pairs() {
        // Destructured, so that a new object cannot be forgotten.
        let Pair { policy, binding, updates } = pair;
        let found = cx.world.pair(&good.compiled.profile, shape).policy;
        let read = |policy: &ValidatingAdmissionPolicy| policy.spec.as_ref().and_then(|spec| spec.param_kind.clone());
        // Who binds parameters must be allowed to read them, and which those are the API server learns from the policy,
        // which is not yet there.
        let unknown = found.is_none_or(|found| read(&found) != read(policy));
        let client = || cx.client.clone();
        if let Some(refused) = ask(&Api::<ValidatingAdmissionPolicy>::all(client()), policy).await? {
            return Ok(Err(refused));
        }
        for binding in [binding].into_iter().chain(updates) {
            let mut binding = binding.clone();
            binding.spec.param_ref = binding.spec.param_ref.filter(|_| !unknown);
            if let Some(refused) = ask(&Api::<ValidatingAdmissionPolicyBinding>::all(client()), &binding).await? {
                return Ok(Err(refused));
            }
        }
    }
    let Some(pair) = &good.compiled.bundle.mutation else { return Ok(Ok(())) };
    let Some(version) = native::served(&cx.client).await? else { return Ok(Ok(())) };
    let mut objects = pair.objects(version);
    if let Some(spec) = objects[1].at_mut(&["spec"]).as_object_mut() {
        // As above; it is not watched here whether the policy is there.
        spec.remove("paramRef");
    }
    for (kind, object) in [native::Kind::Policy, native::Kind::Binding].into_iter().zip(objects) {
        let resource: ApiResource = kind.resource(version);
        let api: Api<DynamicObject> = Api::all_with(cx.client.clone(), &resource);
        let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let answer = call(api.patch(&name, &params(), &Patch::Apply(&object))).await;
        if let Some(refused) = verdict(kind.name(), &name, answer.map(drop))? {
            return Ok(Err(refused));
        }
    }
    Ok(Ok(()))
}

fn params() -> PatchParams {
    PatchParams::apply(names::field_manager::POLICY).force().dry_run()
}

async fn ask<K>(api: &Api<K>, object: &K) -> Result<Option<Refused>, ApiError>
where
    K: Resource<DynamicType = ()> + Clone + Debug + Serialize + DeserializeOwned,
{
    let name = object.meta().name.as_deref().unwrap_or_default();
    let answer = call(api.patch(name, &params(), &Patch::Apply(object))).await;
    verdict(&K::kind(&()), name, answer.map(drop))
}

/// Why an object is rejected, if it is.
///
/// # Errors
/// That is not known.
fn verdict(kind: &str, name: &str, answer: Result<(), ApiError>) -> Result<Option<Refused>, ApiError> {
    match answer {
        Ok(()) => Ok(None),
        Err(error) if error.is_refusal() => Ok(Some(refused(&format!("{kind} {name}"), &error))),
        Err(error) => Err(error),
    }
}

/// What the API server rejects, as a verdict on the profile.
pub fn refused(what: &str, error: &ApiError) -> Refused {
    let message = format!("the API server rejects {what}: {error}");
    Refused { reason: Reason::RefusedByApiServer, message: message.chars().take(3000).collect() }
}
