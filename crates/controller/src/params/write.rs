//! Writes and deletes parameters: runs the jobs of [`crate::param_plan::jobs`] in the background.

use std::{sync::Arc, time::Duration};

use k8s_openapi::api::core::v1::Namespace;
use kube::{
    Api,
    api::{DeleteParams, ListParams, Patch, PatchParams},
    core::PartialObjectMeta,
    runtime::events::EventType,
};
use palisade_api::{ToolSecurityParams, names};
use serde_json::json;

use crate::{
    api_request::{ApiError, call, gone},
    context::Context,
    generated::converge::{self, Verb},
    param_plan::{
        jobs::{Job, StartedJob},
        namespace_plan::Write,
    },
};

/// The kind, in metrics and events.
pub const PARAMS: &str = "ToolSecurityParams";
/// A request that takes longer gives its place to the next one.
const SLOW_REQUEST: Duration = Duration::from_secs(1);

/// Begins as many jobs as the limits allow.
pub fn begin_jobs(cx: &Arc<Context>) {
    while !cx.stop.is_cancelled() {
        let Some(begun) = cx.jobs.begin() else { return };
        let (cx, name) = (Arc::clone(cx), format!("parameters of {}", begun.profile));
        Arc::clone(&cx).supervisor.spawn_job(name, async move { run(&cx, begun).await });
    }
}

async fn run(cx: &Arc<Context>, StartedJob { profile, namespace, job }: StartedJob) {
    let mut work = std::pin::pin!(perform(cx, &profile, &namespace, job));
    if tokio::time::timeout(SLOW_REQUEST, &mut work).await.is_err() {
        cx.jobs.is_slow(&profile, &namespace);
        begin_jobs(cx);
        work.await;
    }
    cx.jobs.ended(&profile, &namespace);
    cx.queues.params.trigger([profile.clone()]);
    begin_jobs(cx);
}

async fn perform(cx: &Context, profile: &str, namespace: &str, job: Job) {
    // If the profile was deleted, the result is not needed.
    let state = cx.states.get(profile).unwrap_or_default();
    let (result, deleting) = match &job {
        Job::Write { write, .. } => (write_one(cx, profile, namespace, write).await, false),
        Job::Delete => (delete_one(cx, profile, namespace).await, true),
    };
    match result {
        Ok(()) => {
            let mut params = state.params();
            params.failures.remove(namespace);
            if matches!(job, Job::Write { drifted: true, .. }) {
                cx.metrics.writes.drifted(PARAMS);
                params.restored.push(namespace.to_owned());
            }
        }
        // The watch shows what happens to the namespace. It admits no new pods.
        Err(error) if error.is_without_namespace() => drop(state.params().failures.remove(namespace)),
        Err(error) => {
            let verb = if deleting { "delete" } else { "write" };
            tracing::warn!(profile, namespace, %error, "could not {verb} parameters");
            state.params().failed(namespace, &error, deleting);
        }
    }
}

async fn write_one(cx: &Context, profile: &str, namespace: &str, write: &Write) -> Result<(), ApiError> {
    let api: Api<ToolSecurityParams> = Api::namespaced(cx.client.clone(), namespace);
    let mut params = ToolSecurityParams::new(&names::params(profile), write.params.get());
    params.metadata.namespace = Some(namespace.to_owned());
    free(cx, &api, profile, namespace).await?;
    let same = |found: &ToolSecurityParams| found.spec == params.spec;
    let written = converge::apply(&api, &params, names::field_manager::PARAMS, same).await?;
    cx.metrics.writes.wrote(PARAMS, Verb::Apply.label());
    if let Some(problem) = write.new_problem(&params.spec) {
        let note = format!("every pod violates the profile: {problem}");
        cx.events.params(&written.metadata, EventType::Warning, "ParameterInvalid", &note);
    }
    cx.store.wrote_params(&written);
    Ok(())
}

async fn delete_one(cx: &Context, profile: &str, namespace: &str) -> Result<(), ApiError> {
    if !cx.store.knows_namespace(namespace) && exists(cx, namespace).await? {
        return Err(ApiError::NamespaceNotShown);
    }
    let api: Api<ToolSecurityParams> = Api::namespaced(cx.client.clone(), namespace);
    free(cx, &api, profile, namespace).await?;
    let version = cx.store.params_version(profile, namespace);
    gone(api.delete(&names::params(profile), &DeleteParams::default())).await?;
    cx.metrics.writes.wrote(PARAMS, "delete");
    cx.store.deleted_params(profile, namespace, version);
    Ok(())
}

/// Removes finalizers and owners that other clients have given to parameters: before the policy that denies that was
/// there, or while it was not. With an owner, the garbage collector deletes them whenever the tenant deletes that.
async fn free(cx: &Context, api: &Api<ToolSecurityParams>, profile: &str, namespace: &str) -> Result<(), ApiError> {
    let (_, observed) = cx.store.tenant(profile, namespace);
    if observed.is_some_and(|observed| observed.held) { strip(api, profile).await } else { Ok(()) }
}

async fn strip(api: &Api<ToolSecurityParams>, profile: &str) -> Result<(), ApiError> {
    let manager =
        PatchParams { field_manager: Some(names::field_manager::PARAMS.to_owned()), ..PatchParams::default() };
    let freed = json!({"metadata": {"finalizers": null, "ownerReferences": null}});
    gone(api.patch_metadata(&names::params(profile), &manager, &Patch::Merge(&freed))).await.map(drop)
}

/// Removes finalizers from deleted parameters in the background.
pub fn let_go(cx: &Arc<Context>, profile: &str, namespace: &str) {
    let api: Api<ToolSecurityParams> = Api::namespaced(cx.client.clone(), namespace);
    let (profile, namespace) = (profile.to_owned(), namespace.to_owned());
    cx.supervisor.spawn_job(format!("held parameters of {profile}"), async move {
        if let Err(error) = strip(&api, &profile).await {
            tracing::warn!(profile, namespace, %error, "could not remove the finalizers of deleted parameters");
        }
    });
}

/// Asks the API server for a namespace. A namespace with parameters that no watch has shown may be new.
async fn exists(cx: &Context, namespace: &str) -> Result<bool, ApiError> {
    let api: Api<PartialObjectMeta<Namespace>> = Api::all(cx.client.clone());
    let named = ListParams::default().fields(&format!("metadata.name={namespace}"));
    Ok(!call(api.list_metadata(&named)).await?.items.is_empty())
}
