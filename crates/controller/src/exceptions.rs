//! The lane of exceptions that tenants ask for: says in the status of each how it stands, and has the parameters of its
//! namespace written anew when one ends. It works on a namespace at a time, and never writes an approval.
//!
//! What holds is decided where parameters are computed (`Compiled::params`); this lane only says it.

use std::{sync::Arc, time::Duration};

use futures::{FutureExt, future::BoxFuture};
use k8s_openapi::jiff::Timestamp;
use kube::{
    Api,
    api::{Patch, PatchParams},
};
use palisade_api::{ExceptionState, MAX_CONTAINERS, MAX_WORKLOADS, ToolSecurityException, names};
use palisade_compiler::{Exceptions, selects};
use serde_json::json;

use crate::{
    accepted::AcceptedProfile,
    asked::{ObservedException, ReportedState},
    call::{ApiError, call},
    context::Context,
    queue::{Later, Next},
};

/// How long after a failed write it is tried again.
const AGAIN: Duration = Duration::from_secs(10);

/// What this lane does with a namespace.
pub fn work(cx: Arc<Context>, namespace: String) -> BoxFuture<'static, Next> {
    async move { report_all(&cx, &namespace).await }.boxed()
}

async fn report_all(cx: &Context, namespace: &str) -> Next {
    let now = Timestamp::now();
    let mut later = Later::default();
    for exception in cx.store.asked.in_namespace(namespace) {
        if cx.stop.is_cancelled() {
            return Next::Change;
        }
        let Some((state, message)) = standing(cx, namespace, &exception, now) else { continue };
        if let Ok(rest) = Duration::try_from(exception.request.expires.duration_since(now)) {
            // A little later, so that it is surely over.
            later.at((!rest.is_zero()).then(|| rest + Duration::from_secs(1)));
        }
        let reported =
            ReportedState { state: Some(state), message: Some(message), generation: Some(exception.generation) };
        if reported == exception.reported {
            continue;
        }
        let profile = &exception.request.profile;
        if state == ExceptionState::Expired {
            cx.store.touch(profile, namespace);
            cx.queues.params.trigger([profile.clone()]);
        }
        match write(cx, namespace, &exception, &reported).await {
            // The status of the profile counts it.
            Ok(()) => cx.queue.trigger([profile.clone()]),
            // It was deleted, or made anew, and the watch shows that.
            Err(error) if error.is_not_found() || error.is_conflict() => {}
            Err(error) => {
                tracing::warn!(namespace, exception = exception.name, %error, "could not write the status of an exception");
                later.at(Some(AGAIN));
            }
        }
    }
    later.next()
}

/// How an exception stands; `None` if that is not known yet.
fn standing(
    cx: &Context,
    namespace: &str,
    exception: &ObservedException,
    now: Timestamp,
) -> Option<(ExceptionState, String)> {
    let profile = &exception.request.profile;
    let invalid = |message: String| Some((ExceptionState::Invalid, message));
    if cx.store.profile(profile).is_none() {
        return invalid(format!("there is no ToolSecurityProfile {profile}"));
    }
    let target: Arc<AcceptedProfile> = cx.states.get(profile)?.tenancy().target.clone()?;
    let found = cx.store.tenant(profile, namespace).0?;
    if !selects(&target.profile.spec, &found.namespace) {
        return invalid(format!("profile {profile} does not select this namespace"));
    }
    let (state, message) = target.compiled.exceptions.standing(&exception.request, now);
    if state == ExceptionState::Approved {
        let all = cx.store.asked.of(profile, namespace);
        let params = target.compiled.params(&found.namespace, all.iter().map(|one| &one.request), now)?;
        if !Exceptions::has_room(&exception.request, &params.spec) {
            let message = format!(
                "there are too many: exceptions hold for at most {MAX_WORKLOADS} workloads of a namespace, and \
                 {MAX_CONTAINERS} for single containers"
            );
            return invalid(message);
        }
    }
    Some((state, message))
}

/// Writes state and message, and nothing else.
async fn write(
    cx: &Context,
    namespace: &str,
    exception: &ObservedException,
    reported: &ReportedState,
) -> Result<(), ApiError> {
    let api: Api<ToolSecurityException> = Api::namespaced(cx.client.clone(), namespace);
    let parameters = PatchParams { field_manager: Some(names::field_manager::EXCEPTION.into()), ..Default::default() };
    let ReportedState { state, message, generation } = reported;
    let patch = Patch::Merge(json!({
        // Another object of the same name is not meant.
        "metadata": {"uid": exception.uid},
        "status": {"state": state, "message": message, "observedGeneration": generation},
    }));
    let written = call(api.patch_status(&exception.name, &parameters, &patch)).await?;
    cx.metrics.wrote("ToolSecurityException", "patch");
    cx.store.asked.wrote(&written);
    Ok(())
}
