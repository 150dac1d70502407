//! Requests to the API server, and what its answers mean.

use std::time::Duration;

use kube::{Client, Error};
use palisade_tests::send;
use serde_json::{Value as Json, json};
use tokio::time::{sleep, timeout};

use crate::Result;

/// The media type of objects.
pub(crate) const JSON: &str = "application/json";

/// Longer than any fault by which the API server does not answer.
const PATIENCE: Duration = Duration::from_mins(1);

/// What the API server said.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// It would be done, or was done: the object.
    Admitted(Json),
    /// A policy has judged it and denied it.
    Denied(String),
    /// A policy denies all, because the API server cannot read what the policy needs: it is starting, or somebody has
    /// deleted the definition of parameters.
    Closed,
    /// No answer, or one that says nothing of policies: a server that is starting, stopping or without etcd.
    Unanswered(String),
}

impl Answer {
    fn of(answer: Option<std::result::Result<Json, Error>>) -> Self {
        match answer {
            None => Self::Unanswered("no answer within a minute".to_owned()),
            Some(Ok(object)) => Self::Admitted(object),
            Some(Err(Error::Api(status))) if status.message.contains("ValidatingAdmissionPolicy '") => {
                let text = status.message.clone();
                // What follows "denied request" is then the server's own trouble.
                let unreadable = ["failed to find resource referenced by paramKind", "not yet synced to use"];
                if unreadable.iter().any(|says| text.contains(says)) { Self::Closed } else { Self::Denied(text) }
            }
            Some(Err(Error::Api(status))) => Self::Unanswered(format!("{} {}", status.code, status.message)),
            Some(Err(other)) => Self::Unanswered(full(&other)),
        }
    }
}

/// An error with its causes.
fn full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}

pub(crate) async fn create(client: &Client, path: &str, object: &Json) -> Answer {
    Answer::of(timeout(PATIENCE, send(client, "POST", path, JSON, object)).await.ok())
}

/// Does what a user does whose request fails: tries again, for at most this long.
///
/// # Errors
/// The last error; or at once what the API server refuses.
pub(crate) async fn insist<T>(
    limit: Duration,
    mut ask: impl AsyncFnMut() -> std::result::Result<T, Error>,
) -> Result<T> {
    let last = async {
        loop {
            match ask().await {
                Ok(answer) => return Ok(answer),
                // It will say the same again.
                Err(Error::Api(status)) if matches!(status.code, 400 | 404 | 409 | 422) => {
                    return Err(Error::Api(status).into());
                }
                Err(_) => sleep(Duration::from_millis(250)).await,
            }
        }
    };
    timeout(limit, last).await.map_err(|_| format!("not within {limit:?}"))?
}

/// A Deployment with the spec of a pod.
pub(crate) fn deployment(name: &str, pod: &Json) -> Json {
    let mut spec = pod["spec"].clone();
    spec["restartPolicy"] = json!("Always");
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name},
        "spec": {"selector": {"matchLabels": {"app": "x"}}, "template": {
            "metadata": {"labels": {"app": "x", "toolforge": "tool"}}, "spec": spec,
        }},
    })
}
