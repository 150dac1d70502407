//! Stage mutate: who fills in pods.
//!
//! Where the API server serves MutatingAdmissionPolicy, and the profile does not want the webhook, the compiled policy
//! is written and kept as it is. Then the API server is asked, by a dry run, who fills in a pod. What is found goes into
//! the status, and both sides act on it: the webhook stays registered until the policy was seen to work, and the policy
//! stays until the webhook was seen to. Both at once do no harm, for what is filled in stays; and at each moment one of
//! them does it.
//!
//! All of this is looked at again and again; and at once when the watch shows that somebody else has changed the policy,
//! or that the API server serves the kind in another version than it did ([`crate::native`]).

use std::{fmt::Debug, time::Duration};

use k8s_openapi::{
    api::admissionregistration::{v1, v1beta1},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use kube::{Api, Resource, api::DeleteParams};
use palisade_api::{EngineInForce, MutationStatus, names};
use palisade_compiler::Mutation;
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value as Json, json};
use tokio::time::Instant;

use crate::{
    call::{ApiError, call, gone},
    compile::Good,
    context::Context,
    converge::{converge, same_meta, same_spec},
    memory::Memory,
    native::{self, Kind, VERSIONS},
};

/// How often all of this is looked at when nothing is known to have changed.
const AGAIN: Duration = Duration::from_secs(30);
/// The same, while it is not as the profile wants it.
const SOON: Duration = Duration::from_secs(5);
/// The shortest time between two turns: who changes a policy on each write must not keep this busy.
const PAUSE: Duration = Duration::from_millis(500);

/// What was found at the last turn.
#[derive(Debug)]
pub struct Turn {
    generation: i64,
    at: Instant,
    due: Instant,
    /// The version in which the API server served the kind, and whether the policy was what it should be; unless that
    /// could not be found out.
    found: Option<(Option<&'static str>, bool)>,
    /// For the profile's status; `None` if it changes nothing.
    pub status: Option<MutationStatus>,
}

impl Turn {
    /// Whether the watch shows something else than what was found.
    fn is_outdated(&self, cx: &Context, good: &Good) -> bool {
        let pair = good.compiled.bundle.mutation.as_ref();
        self.found.is_some_and(|(served, kept)| cx.world.native.differs(served, pair.filter(|_| kept)))
    }
}

/// Who was seen to fill in a pod.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The API server.
    pub native: bool,
    /// The webhook, or it would have, had the API server left something.
    pub webhook: bool,
}

/// Brings the policy to what the profile wants, and finds out who fills in pods. Returns when to look again.
pub async fn mutate(cx: &Context, good: &Good, memory: &mut Memory) -> Option<Duration> {
    let now = Instant::now();
    let before = memory.mutating.as_ref().filter(|turn| turn.generation == good.generation());
    if let Some(turn) = before {
        let due = if turn.is_outdated(cx, good) { turn.at + PAUSE } else { turn.due };
        if due > now {
            return turn.status.as_ref().map(|_| due.duration_since(now));
        }
    }
    let kept = before.is_some_and(|turn| matches!(turn.found, Some((Some(_), true))));
    let (generation, mut found) = (good.generation(), None);
    let (status, settled) = match turn(cx, good, kept, &mut found).await {
        Ok(Some(result)) => result,
        Ok(None) => {
            let status = before.and_then(|turn| turn.status.clone());
            (status.or_else(|| Some(self::status(EngineInForce::None, "it is being found out"))), false)
        }
        Err(error) => {
            tracing::warn!(%error, "the policy that fills in pods could not be kept right; it is tried again");
            (Some(status(EngineInForce::None, format!("it could not be found out: {error}"))), false)
        }
    };
    let at = Instant::now();
    let turn = Turn { generation, at, due: at + if settled { AGAIN } else { SOON }, found, status };
    let again = turn.status.as_ref().map(|_| turn.due.duration_since(at));
    memory.mutating = Some(turn);
    again
}

fn status(engine: EngineInForce, message: impl Into<String>) -> MutationStatus {
    MutationStatus { engine, message: message.into().chars().take(1000).collect() }
}

/// The status, and whether all is as the profile wants it; `None` if the policy was changed before that was known.
/// `kept` is whether the policy was right before.
async fn turn(
    cx: &Context,
    good: &Good,
    kept: bool,
    found: &mut Option<(Option<&'static str>, bool)>,
) -> Result<Option<(Option<MutationStatus>, bool)>, ApiError> {
    let served = native::served(&cx.client).await?;
    // Whoever sees it first tells the others.
    if cx.world.native.set_served(served) {
        cx.queue.trigger(cx.world.profiles());
    }
    *found = Some((served, false));
    let profile = &good.compiled.profile;
    let Some(mutation) = &good.compiled.mutation else {
        delete(cx, profile, served).await?;
        return Ok(Some((None, true)));
    };
    let wanted = good.compiled.bundle.mutation.as_ref();
    if let (Some(pair), Some(version)) = (wanted, served) {
        let [policy, binding] = pair.objects(version);
        if version == VERSIONS[0] {
            keep::<v1::MutatingAdmissionPolicy>(cx, good, Kind::Policy, &policy, kept).await?;
            keep::<v1::MutatingAdmissionPolicyBinding>(cx, good, Kind::Binding, &binding, kept).await?;
        } else {
            keep::<v1beta1::MutatingAdmissionPolicy>(cx, good, Kind::Policy, &policy, kept).await?;
            keep::<v1beta1::MutatingAdmissionPolicyBinding>(cx, good, Kind::Binding, &binding, kept).await?;
        }
        *found = Some((served, true));
    }
    let seen = match bare(mutation, good) {
        Some(pod) => tokio::select! {
            seen = cx.prober.mutated(good, mutation, &pod, wanted.is_some() && served.is_some()) => seen,
            () = cx.world.native.until_it_differs(served, wanted.filter(|_| served.is_some())) => return Ok(None),
        },
        None => Err("the profile changes no pod that complies with it".to_owned()),
    };
    let seen = match seen {
        Ok(seen) => seen,
        Err(message) => return Ok(Some((Some(status(EngineInForce::None, message)), false))),
    };
    if wanted.is_none() && seen.webhook {
        delete(cx, profile, served).await?;
    }
    let unserved = "the API server serves no MutatingAdmissionPolicy";
    Ok(Some(match (seen, wanted.is_some(), served) {
        (Seen { webhook: true, .. }, false, _) => {
            (Some(status(EngineInForce::Webhook, "the webhook was seen to fill in a pod")), true)
        }
        (Seen { native: true, .. }, wanted, _) => {
            (Some(status(EngineInForce::Native, "the API server was seen to fill in a pod")), wanted)
        }
        (Seen { webhook: true, .. }, true, None) => {
            (Some(status(EngineInForce::Webhook, format!("the webhook was seen to fill in a pod; {unserved}"))), true)
        }
        (Seen { webhook: true, .. }, true, Some(_)) => {
            let message = "the webhook was seen to fill in a pod, and the API server not to, though it has the policy";
            (Some(status(EngineInForce::Webhook, message)), false)
        }
        (_, true, None) => (Some(status(EngineInForce::None, format!("nobody fills in pods; {unserved}"))), false),
        _ => (Some(status(EngineInForce::None, "nobody was seen to fill in a pod")), false),
    }))
}

/// Writes an object if it is not as it should be. `kept` is whether it was before.
async fn keep<K>(cx: &Context, good: &Good, kind: Kind, desired: &Json, kept: bool) -> Result<(), ApiError>
where
    K: Resource<DynamicType = (), Scope = k8s_openapi::ClusterResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned,
{
    let unreadable = |error| ApiError::Unreachable(kube::Error::SerdeError(error));
    let object: K = serde_json::from_value(desired.clone()).map_err(unreadable)?;
    let spec = |of: &K| serde_json::to_value(of).map(|mut of| of["spec"].take()).unwrap_or_default();
    let same = |found: &K| same_meta(object.meta(), found.meta()) && same_spec(&spec(&object), &spec(found));
    let api: Api<K> = Api::all(cx.client.clone());
    let found = call(api.get_opt(object.meta().name.as_deref().unwrap_or_default())).await?;
    if let Some(found) = found.as_ref().filter(|found| same(found)) {
        cx.world.native.wrote(kind, found.meta(), spec(found));
        return Ok(());
    }
    let (written, verb) = converge(&api, &object, names::field_manager::POLICY, same).await?;
    cx.world.native.wrote(kind, written.meta(), spec(&written));
    let of_generation =
        |found: K| generation(found.meta()).is_some_and(|generation| generation == good.generation().to_string());
    let (kind, drift) = (kind.name(), kept || found.is_some_and(of_generation));
    tracing::info!(kind, ?verb, drift, "wrote what fills in pods");
    cx.wrote(kind, verb);
    if drift {
        cx.metrics.drifted(kind);
        let name = written.meta().name.as_deref().unwrap_or_default();
        let note = format!("{kind} {name} was changed by someone else and restored");
        cx.events.repaired::<K>(&good.profile.metadata, written.meta(), &note);
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
        tracing::info!(profile, "deleted the policy that filled in pods");
    }
    Ok(())
}

/// The profile is being deleted: removes what was made for it.
pub async fn remove(cx: &Context, profile: &str) -> Result<(), ApiError> {
    delete(cx, profile, native::served(&cx.client).await?).await
}

/// The pod of the probe that complies, without what would be filled in; `None` if nothing would.
fn bare(mutation: &Mutation, good: &Good) -> Option<Json> {
    use palisade_mutation::{Plan, Request};

    let mut pod = good.compiled.probes.compliant.pod.clone();
    pod["metadata"]["name"] = "palisade-probe-bare".into();
    pod["metadata"]["annotations"] = json!({names::PROBE_MUTATION_ANNOTATION: ""});
    let unset = |object: &mut Json, path: &[String]| {
        let (last, before) = path.split_last()?;
        let parent = before.iter().try_fold(object, |object, key| object.get_mut(key))?;
        parent.as_object_mut()?.remove(last)
    };
    for (_, fill) in &mutation.fills {
        unset(&mut pod["spec"], &fill.path);
        for list in ["containers", "initContainers"] {
            for container in pod["spec"].get_mut(list).and_then(Json::as_array_mut).into_iter().flatten() {
                unset(container, &fill.path);
            }
        }
    }
    let plan = Plan::new([(mutation, good.compiled.probes.params.as_ref())]);
    let would = plan.patch(&Request::create(names::PROBE_NAMESPACE, &pod));
    (!would.is_empty()).then_some(pod)
}
