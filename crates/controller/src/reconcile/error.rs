//! Errors of reconciliations.

use crate::{api_request::ApiError, removal::remove::RemoveError};

/// Error of a reconciliation. It is retried. An invalid profile is not an error here; the status reports it.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The finalizer. Nothing was written before.
    #[error("the finalizer could not be added: {0}")]
    Finalizer(#[source] ApiError),
    #[error("the last good spec could not be read: {0}")]
    LastGood(#[source] ApiError),
    #[error("the API server did not validate the policies and bindings: {0}")]
    DryRun(#[source] ApiError),
    #[error("a policy or binding could not be written: {0}")]
    Apply(#[source] ApiError),
    #[error("the status could not be written: {0}")]
    Report(#[source] ApiError),
    /// The removal of the profile.
    #[error(transparent)]
    Remove(#[from] RemoveError),
}

impl ReconcileError {
    /// The result of the reconciliation for metrics.
    pub fn result(&self) -> &'static str {
        match self {
            Self::Finalizer(_) => "finalizer_error",
            Self::LastGood(_) => "compile_error",
            Self::DryRun(_) => "try_error",
            Self::Apply(_) => "apply_error",
            Self::Report(_) => "report_error",
            Self::Remove(_) => "remove_error",
        }
    }
}
