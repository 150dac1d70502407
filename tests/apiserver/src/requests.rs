//! Requests for pods, and what the API server says to them.

use kube::{Client, Error};
use serde_json::{Value as Json, json};

use crate::eventually;

/// What the API server said to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It would be done.
    Admitted,
    /// A policy refused it, with this text.
    Denied(String),
    /// Something else refused it: status code and text.
    Refused(u16, String),
}

impl Verdict {
    /// Reads the answer to a request.
    pub fn of<T>(answer: Result<T, Error>) -> Self {
        match answer {
            Ok(_) => Self::Admitted,
            Err(Error::Api(status)) if status.message.contains("ValidatingAdmissionPolicy '") => {
                Self::Denied(status.message.clone())
            }
            Err(Error::Api(status)) => Self::Refused(status.code, status.message.clone()),
            Err(other) => Self::Refused(0, other.to_string()),
        }
    }

    pub fn denial(&self) -> Option<&str> {
        match self {
            Self::Denied(text) => Some(text),
            _ => None,
        }
    }
}

/// Sends a request with a JSON body of this media type.
///
/// # Errors
/// No answer, or the API server's refusal.
pub async fn send(client: &Client, method: &str, path: &str, kind: &str, body: &Json) -> Result<Json, Error> {
    let request = http::Request::builder()
        .method(method)
        .uri(path)
        .header("content-type", kind)
        .body(serde_json::to_vec(body).map_err(Error::SerdeError)?)
        .map_err(Error::HttpError)?;
    client.request(request).await
}

/// Asks about a pod once, as a dry run.
pub async fn dry_run_once(client: &Client, namespace: &str, pod: &Json) -> Verdict {
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    Verdict::of(send(client, "POST", &path, "application/json", pod).await)
}

/// The pod that would be created, as a dry run.
///
/// # Errors
/// What the API server says instead.
pub async fn dry_run_answer(client: &Client, namespace: &str, pod: &Json) -> Result<Json, Error> {
    let path = format!("/api/v1/namespaces/{namespace}/pods?dryRun=All");
    send(client, "POST", &path, "application/json", pod).await
}

/// Creates a pod, as a dry run or for real.
pub(crate) async fn create_pod(client: &Client, namespace: &str, pod: &Json, dry_run: bool) -> Verdict {
    let query = if dry_run { "?dryRun=All" } else { "" };
    let path = format!("/api/v1/namespaces/{namespace}/pods{query}");
    // The controller manager makes a namespace's default service account a moment after the namespace.
    let answer = eventually("the default service account", || async {
        let verdict = Verdict::of(send(client, "POST", &path, "application/json", pod).await);
        match &verdict {
            Verdict::Refused(_, text) if text.contains("serviceaccount \"default\" not found") => Err(text.clone()),
            _ => Ok(verdict),
        }
    });
    answer.await.unwrap_or_else(|error| Verdict::Refused(0, error))
}

/// Adds ephemeral containers to a pod, as a dry run.
pub(crate) async fn add_ephemeral(client: &Client, namespace: &str, pod: &str, containers: &Json) -> Verdict {
    let path = format!("/api/v1/namespaces/{namespace}/pods/{pod}/ephemeralcontainers?dryRun=All");
    let patch = json!({"spec": {"ephemeralContainers": containers}});
    Verdict::of(send(client, "PATCH", &path, "application/strategic-merge-patch+json", &patch).await)
}
