//! Errors of the lane of rollouts.

use crate::api_request::ApiError;

/// Why a rollout cannot go on now.
#[derive(Debug, thiserror::Error)]
pub enum RolloutError {
    #[error("the objects in namespace {namespace} could not be listed: {error}{}", help(error))]
    List { namespace: String, error: ApiError },
    #[error("whether the API server has {kind} could not be determined: {why}")]
    Discovery { kind: String, why: String },
    #[error("namespace {namespace} could not be changed: {error}{}", help(error))]
    Write { namespace: String, error: ApiError },
    #[error("the events about denials could not be listed: {error}{}", help(error))]
    Denials { error: ApiError },
    #[error("the time could not be read from an API server: {0}")]
    Clock(ApiError),
    #[error("the policies could not be compiled: {0}")]
    Compile(String),
    #[error("the evaluation panicked, which is a bug in Palisade: {0}")]
    Panicked(#[from] tokio::task::JoinError),
}

fn help(error: &ApiError) -> &'static str {
    // By RBAC: an admission policy says itself what to do.
    if error.is_forbidden() && !error.to_string().contains("ValidatingAdmissionPolicy") {
        "; grant the permission with kubectl apply -k manifests/rollout, or with rollout.enabled=true in the chart"
    } else {
        ""
    }
}
