//! Deletes all generated objects of a profile that is being deleted, in an order that never denies a request. Before,
//! the status reports that the profile is no longer enforced ([`crate::reconcile`]).
//!
//! The bindings are deleted first: without a binding, a policy has no effect. Then the API server needs time to notice
//! the deletion, because it would deny requests if parameters were deleted first. Each step may find its work done, so
//! an interrupted removal can be repeated. No step waits: it returns the time of the next one.

use std::{sync::Arc, time::Duration};

use kube::{Api, api::ListParams, core::PartialObjectMeta};
use palisade_api::{
    ToolSecurityParams,
    names::{self, Part},
};
use palisade_runtime::lists::all_metadata;
use tokio::time::{Instant, timeout};

use crate::{
    api_request::{ApiError, PARAMS_RETENTION, POLICY_PROPAGATION, call},
    apply::{delete, transition},
    context::{Context, state::State},
    generations::{accepted::AcceptedProfile, revision},
    mutation::mutate,
    object_name::{NamespaceName, ProfileName},
    param_plan::jobs::{Class, Job},
    params::write::{begin_jobs, let_go},
    queue::Requeue,
    removal::finalizer,
    tenant_objects::lane::{is_removed, trigger_existing},
    watch::store::ObservedProfile,
};

/// How long to probe whether the API server has noticed that the bindings are gone.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// How long between two such probes.
const PROBE_INTERVAL: Duration = Duration::from_millis(200);
/// How often to check whether the parameters are deleted.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Why a profile could not be removed yet.
#[derive(Debug, thiserror::Error)]
pub enum RemoveError {
    #[error("a binding could not be deleted: {0}")]
    Binding(#[source] ApiError),
    #[error("a policy could not be deleted: {0}")]
    Policy(#[source] ApiError),
    #[error("the parameters could not be listed: {0}")]
    List(#[source] ApiError),
    #[error("the parameters in {namespace} and {more} more namespaces could not be deleted: {message}")]
    Params {
        /// The first of them.
        namespace: String,
        /// How many others there are.
        more: usize,
        message: String,
    },
    #[error("its objects in namespace {namespace} could not be deleted: {message}")]
    Objects { namespace: String, message: String },
    #[error("its webhook entry could not be removed: {0}")]
    Registration(#[source] ApiError),
    #[error("the last good spec could not be deleted: {0}")]
    Revision(#[source] ApiError),
    #[error("the finalizer could not be removed: {0}")]
    Finalizer(#[source] ApiError),
}

/// How far the removal of a profile is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Removal {
    /// The bindings may still be there.
    #[default]
    Bound,
    /// The bindings are deleted, and the API server may not have noticed.
    Releasing {
        /// The time of the deletion.
        since: Instant,
    },
    /// The API server no longer evaluates the policies, from this time on.
    Released { at: Instant },
    /// The policies are deleted; the parameters are being deleted.
    Params,
    /// Nothing is left; the watch has not yet shown that the profile is gone.
    Done,
}

impl Removal {
    /// True if nothing is left.
    pub fn is_done(self) -> bool {
        self == Self::Done
    }
}

/// Removes a part of the profile's objects, and returns when the next part is due; removes the finalizer in the end.
pub async fn step(
    cx: &Arc<Context>,
    profile: &str,
    observed: &ObservedProfile,
    state: &State,
    removal: &mut Removal,
    accepted: Option<&AcceptedProfile>,
) -> Result<Requeue, RemoveError> {
    if !finalizer::is_present(observed) {
        return Ok(Requeue::Change);
    }
    loop {
        let now = Instant::now();
        *removal = match *removal {
            Removal::Bound => {
                stop_writing(cx, profile, state).await;
                let policies = cx.store.pairs(profile).iter().any(|pair| pair.policy.is_some());
                let mut bound = false;
                for part in Part::ALL {
                    bound |= delete::bindings(cx, profile, part).await.map_err(RemoveError::Binding)?;
                }
                if bound || policies {
                    tracing::info!(profile, "deleted the bindings");
                    Removal::Releasing { since: Instant::now() }
                } else {
                    Removal::Released { at: now }
                }
            }
            Removal::Releasing { since } => {
                match accepted.filter(|accepted| accepted.compiled.denying_part().is_some()) {
                    Some(accepted) if now.duration_since(since) < PROBE_TIMEOUT => {
                        // While other probes run, this one may get no turn, and so no answer.
                        match timeout(PROBE_TIMEOUT, cx.prober.some_denies(accepted)).await.ok().flatten() {
                            Some(true) => return Ok(Requeue::After(PROBE_INTERVAL)),
                            // There may be other API servers, which read bindings about once a second, too.
                            Some(false) => Removal::Released { at: since + POLICY_PROPAGATION },
                            None => Removal::Released { at: now + PARAMS_RETENTION },
                        }
                    }
                    // After a restart, the former policies are not known, so no probe is possible.
                    None if accepted.is_none() => Removal::Released { at: now + PARAMS_RETENTION },
                    Some(_) | None => Removal::Released { at: now + POLICY_PROPAGATION },
                }
            }
            Removal::Released { at } if at > now => return Ok(Requeue::After(at.duration_since(now))),
            Removal::Released { .. } => {
                cx.registration.forget(profile);
                let kept = cx.registration.keep(&cx.client, &cx.store.profiles()).await;
                kept.map_err(RemoveError::Registration)?;
                mutate::remove(cx, profile).await.map_err(RemoveError::Policy)?;
                for part in Part::ALL {
                    delete::policy(cx, profile, part).await.map_err(RemoveError::Policy)?;
                }
                Removal::Params
            }
            Removal::Params => {
                if !params(cx, profile, state).await? {
                    return Ok(Requeue::After(POLL_INTERVAL));
                }
                if !is_removed(cx, profile) {
                    if let Some((namespace, message)) = cx.object_outcomes.first_problem(profile) {
                        return Err(RemoveError::Objects { namespace, message });
                    }
                    return Ok(Requeue::After(POLL_INTERVAL));
                }
                finish(cx, profile).await?;
                Removal::Done
            }
            Removal::Done => return Ok(Requeue::Change),
        };
    }
}

/// Stops repairs and writes of parameters.
pub async fn stop_writing(cx: &Context, profile: &str, state: &State) {
    transition::stop(state).await;
    state.params().stop();
    cx.jobs.clear(profile);
    trigger_existing(cx, profile);
}

/// Deletes some of the profile's parameters, as listed by the API server. Returns true if the only remaining ones are
/// being deleted: finalizers on them belong to other controllers, and the profile does not wait for them.
pub async fn params(cx: &Arc<Context>, profile: &str, state: &State) -> Result<bool, RemoveError> {
    if cx.jobs.is_busy(profile) {
        return Ok(false);
    }
    if let Some((namespace, more, message)) = state.params().take_undeleted() {
        return Err(RemoveError::Params { namespace, more, message });
    }
    let api: Api<PartialObjectMeta<ToolSecurityParams>> = Api::all(cx.client.clone());
    let of_profile = ListParams::default().fields(&format!("metadata.name={}", names::params(profile)));
    let found = call(all_metadata(&api, &of_profile)).await.map_err(RemoveError::List)?;
    let (going, left): (Vec<_>, Vec<_>) = found.iter().partition(|meta| meta.deletion_timestamp.is_some());
    for namespace in left.iter().filter_map(|meta| meta.namespace.as_ref()) {
        cx.jobs.set(&ProfileName::new(profile), &NamespaceName::new(namespace), Some((Class::Bulk, Job::Delete)));
    }
    begin_jobs(cx);
    if left.is_empty() {
        let held = going.iter().filter(|meta| meta.finalizers.as_ref().is_some_and(|all| !all.is_empty()));
        held.filter_map(|meta| meta.namespace.as_ref()).for_each(|namespace| let_go(cx, profile, namespace));
    }
    Ok(left.is_empty())
}

async fn finish(cx: &Context, profile: &str) -> Result<(), RemoveError> {
    revision::delete(&cx.client, profile).await.map_err(RemoveError::Revision)?;
    if cx.store.has_namespace(names::PROBE_NAMESPACE) {
        match timeout(PROBE_TIMEOUT, cx.prober.unlabel()).await {
            Ok(Ok(())) => {}
            // The next probe sets its own labels.
            Ok(Err(error)) => tracing::debug!(%error, "could not remove the labels of the probe namespace"),
            Err(_) => tracing::debug!("kept the labels of the probe namespace: other probes are running"),
        }
    }
    finalizer::remove(cx, profile).await.map_err(RemoveError::Finalizer)?;
    tracing::info!(profile, "deleted all generated objects of the profile");
    Ok(())
}
