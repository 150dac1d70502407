//! Requests to the API server: each one ends, and each failure has a kind.

use std::{error::Error as _, future::Future, time::Duration};

use kube::{core::response::Status, runtime::watcher};

/// Time limit of a request. Watches do not use [`call`].
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
/// After this time each API server evaluates a newly written policy: it reads policies and bindings about once a
/// second.
pub const POLICY_PROPAGATION: Duration = Duration::from_secs(2);
/// Time for which parameters are kept while an API server may still read them. It is longer than
/// [`POLICY_PROPAGATION`]: a busy API server may need more time, and not every profile can be probed. Parameters that
/// are removed too early deny all pods, while parameters that remain cause no harm.
pub const PARAMS_RETENTION: Duration = Duration::from_secs(10);

/// Why a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    #[error("{} (HTTP {})", .0.message, .0.code)]
    Refused(Box<Status>),
    #[error("no answer within {} s", .0.as_secs())]
    Timeout(Duration),
    #[error("{}", chain(.0))]
    Unreachable(#[source] kube::Error),
    /// A list without a version cannot be watched.
    #[error("the list has no resource version")]
    NoResourceVersion,
    /// A namespace that was treated as deleted.
    #[error("the namespace exists, but the watch has not received it yet")]
    NamespaceNotShown,
    /// A policy that takes over from another one is written, and does not deny yet.
    #[error("the API server does not enforce policy {0} yet; until it does, the previous policy remains")]
    NotInForce(String),
    #[error("the process is stopping")]
    Stopped,
    /// An answer does not say when it was given.
    #[error("the response has no valid date")]
    NoDate,
    /// The object differs from the written object when it is read again.
    #[error("{kind} {name} was written but still differs: another component changes it on each write")]
    Differs { kind: String, name: String },
}

/// The error and its causes on one line.
fn chain(error: &kube::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    text
}

impl From<kube::Error> for ApiError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) => Self::Refused(status),
            other => Self::Unreachable(other),
        }
    }
}

impl From<watcher::Error> for ApiError {
    fn from(error: watcher::Error) -> Self {
        match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => error.into(),
            watcher::Error::WatchError(status) => Self::Refused(status),
            watcher::Error::NoResourceVersion => Self::NoResourceVersion,
        }
    }
}

impl ApiError {
    /// The object or its namespace does not exist, or the API server does not serve the API (in that case it answers in
    /// plain text).
    pub fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 404)
    }

    /// The namespace does not exist or is being deleted, so that nothing can be written into it.
    pub fn is_without_namespace(&self) -> bool {
        let Self::Refused(status) = self else { return false };
        let details = status.details.as_ref();
        let missing = details.is_some_and(|details| details.kind == "namespaces");
        let terminating =
            details.is_some_and(|details| details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating"));
        (status.is_not_found() && missing) || (status.is_forbidden() && terminating)
    }

    /// The controller has no permission, or a policy of the cluster denies it.
    pub fn is_forbidden(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_forbidden())
    }

    /// A `ResourceQuota` has no room for it (`checkRequest` in apiserver
    /// `pkg/admission/plugin/resourcequota/controller.go`).
    pub fn is_quota(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_forbidden() && status.message.contains("exceeded quota"))
    }

    /// The API server has read the object and rejects it, so that a retry is useless. A missing permission is not a
    /// rejection of the object, and an API server that has just started denies all requests until it has read the
    /// roles.
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused(status) if matches!(status.code, 400 | 403 | 413 | 422) && !is_missing_right(status))
    }

    /// The API server no longer keeps the place where the next page of a list begins.
    pub fn is_expired(&self) -> bool {
        matches!(self, Self::Refused(status) if status.code == 410)
    }

    /// Another writer was faster.
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Refused(status) if status.is_conflict())
    }
}

/// True if the controller lacks a permission: from RBAC (`ForbiddenMessage` in apiserver
/// `pkg/endpoints/handlers/responsewriters/errors.go`), or from the registry of policies and bindings, which requires
/// permission to read the parameters (`authz.go` in kube-apiserver `pkg/registry/admissionregistration`).
fn is_missing_right(status: &Status) -> bool {
    let causes = status.details.as_ref().map_or(&[][..], |details| &details.causes);
    let of_parameters = causes.iter().any(|cause| {
        cause.reason == "FieldValueForbidden" && matches!(cause.field.as_str(), "spec.paramKind" | "spec.paramRef")
    });
    of_parameters
        || (status.is_forbidden() && status.message.contains("User \"") && status.message.contains("\" cannot "))
}

pub async fn call<T>(request: impl Future<Output = kube::Result<T>>) -> Result<T, ApiError> {
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(answer) => answer.map_err(ApiError::from),
        Err(_) => Err(ApiError::Timeout(REQUEST_TIMEOUT)),
    }
}

/// Makes a request to delete something. Returns whether it existed.
pub async fn gone<T>(request: impl Future<Output = kube::Result<T>>) -> Result<bool, ApiError> {
    match call(request).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn missing_permission_is_no_rejection() {
        let user = "User \"system:serviceaccount:palisade-system:palisade-controller\" cannot patch resource \"x\"";
        let denied = "x is forbidden: ValidatingAdmissionPolicy 'other' with binding 'other' denied request: no";
        for (code, message, field, refusal) in [
            (403, format!("x is forbidden: {user}"), "", false),
            (403, denied.to_owned(), "", true),
            (422, "spec.paramKind: Forbidden: x".to_owned(), "spec.paramKind", false),
            (422, "spec.paramRef: Forbidden: x".to_owned(), "spec.paramRef", false),
            (422, "spec.matchConditions: Forbidden: x".to_owned(), "spec.matchConditions", true),
            (409, "conflict".to_owned(), "", false),
        ] {
            let status = json!({
                "status": "Failure", "code": code, "message": message,
                "reason": if code == 403 { "Forbidden" } else { "Invalid" },
                "details": {"causes": [{"reason": "FieldValueForbidden", "message": "x", "field": field}]},
            });
            let status: Status = serde_json::from_value(status).expect("a status");
            assert_eq!(ApiError::Refused(Box::new(status)).is_refusal(), refusal, "{message}");
        }
    }
}
