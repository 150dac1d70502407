//! The server of `/mutate/{profile}`, over TLS, and the state that `/readyz` and `/metrics` report.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    extract::{Path, Request, State},
    http::{
        HeaderValue, StatusCode, Version,
        header::{CONNECTION, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use palisade_runtime::{BodyError, Health, HttpServer};
use serde_json::json;
use tokio::time::Instant;

use crate::{
    certificates::CurrentCertificate,
    cluster::ClusterState,
    metrics::{Metrics, ReviewOutcome},
    review::{self, MAX_BYTES},
};

/// The name of this port in the metrics.
pub const PORT: &str = "webhook";

/// Shared resources of handlers.
#[derive(Clone)]
pub struct Context {
    /// Profiles and parameters.
    pub cluster: Arc<ClusterState>,
    pub certificate: Arc<CurrentCertificate>,
    pub metrics: Arc<Metrics>,
    pub http: HttpServer,
    /// True if this process is about to stop.
    pub stopping: Arc<AtomicBool>,
}

impl Health for Context {
    fn ready(&self) -> Result<(), &'static str> {
        if self.stopping.load(Ordering::Relaxed) {
            Err("stopping")
        } else if !self.cluster.synced() {
            Err("not synced")
        } else if !self.certificate.is_there() {
            Err("no certificate")
        } else {
            self.http.ready()
        }
    }

    fn metrics(&self) -> Result<String, std::fmt::Error> {
        self.metrics.text()
    }
}

/// The routes: `/mutate/{profile}`.
pub fn router(cx: Context) -> Router {
    Router::new().route("/mutate/{profile}", post(mutate)).with_state(cx)
}

async fn mutate(State(cx): State<Context>, Path(profile): Path<String>, request: Request) -> Response {
    let version = request.version();
    let mut response = match cx.http.body(request, MAX_BYTES).await {
        // The memory of the body is released after the response.
        Ok((body, _share)) => answer(&cx, &profile, &body),
        Err(error) => {
            cx.metrics.answered(ReviewOutcome::Unread, Duration::ZERO);
            refusal(status(error), &error.to_string())
        }
    };
    if version < Version::HTTP_2 && cx.stopping.load(Ordering::Relaxed) {
        // The client must send its next request elsewhere, not on this connection while it closes.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn answer(cx: &Context, profile: &str, body: &[u8]) -> Response {
    let start = Instant::now();
    let mut outcome = ReviewOutcome::Malformed;
    let answer = review::answer(body, |call| {
        let (found, reply) = cx.cluster.reply(profile, call);
        outcome = found;
        reply
    });
    let response = match answer {
        Ok(answer) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(malformed) => {
            tracing::warn!(profile, error = %malformed, "malformed admission review");
            refusal(StatusCode::BAD_REQUEST, &malformed.to_string())
        }
    };
    cx.metrics.answered(outcome, start.elapsed());
    response
}

fn status(error: BodyError) -> StatusCode {
    match error {
        BodyError::TooLarge { .. } => StatusCode::PAYLOAD_TOO_LARGE,
        BodyError::Slow { .. } => StatusCode::REQUEST_TIMEOUT,
        // The API server does not retry, and validates the pod as it is.
        BodyError::NoMemory => StatusCode::SERVICE_UNAVAILABLE,
        BodyError::ClosedEarly => StatusCode::BAD_REQUEST,
    }
}

/// The API server always logs it, and with the failure policy Fail it shows it to the user.
fn refusal(status: StatusCode, message: &str) -> Response {
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": status.as_u16(),
        "message": format!("palisade-webhook: {message}"),
    });
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
