//! The server of `/mutate/{profile}`, over TLS, and what `/readyz` and `/metrics` say.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::{Body, Bytes},
    extract::{Path, Request, State},
    http::{
        HeaderValue, StatusCode, Version,
        header::{CONNECTION, CONTENT_TYPE},
    },
    response::{IntoResponse, Response},
    routing::post,
};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::{conn::auto, graceful::GracefulShutdown},
    service::TowerToHyperService,
};
use palisade_process::Health;
use serde_json::json;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{Instant, sleep, timeout},
};
use tokio_rustls::{TlsAcceptor, rustls::ServerConfig};
use tokio_util::sync::CancellationToken;

use crate::{
    certificates::Shown,
    metrics::{Metrics, Outcome},
    review::{self, MAX_BYTES},
    world::World,
};

/// How long a TLS session may take to begin.
const HANDSHAKE: Duration = Duration::from_secs(5);
/// How long the head of a request may take, which is also how long a connection may be idle. API servers close idle
/// connections after 90 s; who closes first must not be the one that the next request goes to.
const HEAD: Duration = Duration::from_mins(2);
/// How long a body may take. API servers wait no longer either.
const BODY: Duration = Duration::from_secs(5);
/// How many connections there may be. An API server has some ten.
const CONNECTIONS: usize = 1024;
/// How many requests there may be at the same time on one connection with HTTP/2.
const STREAMS: u32 = 250;
/// How long requests that are under way may take at the end.
pub const GRACE: Duration = Duration::from_secs(10);

/// What the answers are made of.
#[derive(Clone)]
pub struct Context {
    /// Profiles and parameters.
    pub world: Arc<World>,
    /// The certificate in use.
    pub shown: Arc<Shown>,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Whether this process is about to stop.
    pub stopping: Arc<AtomicBool>,
}

impl Health for Context {
    fn ready(&self) -> Result<(), &'static str> {
        if self.stopping.load(Ordering::Relaxed) {
            Err("stopping")
        } else if !self.world.synced() {
            Err("not synced")
        } else if !self.shown.is_there() {
            Err("no certificate")
        } else {
            Ok(())
        }
    }

    fn metrics(&self) -> Result<String, std::fmt::Error> {
        self.metrics.text()
    }
}

/// Serves `/mutate/{profile}` until `stop` is cancelled, and then as long as requests are under way.
pub async fn serve(listener: TcpListener, tls: ServerConfig, cx: Context, stop: CancellationToken) {
    let metrics = Arc::clone(&cx.metrics);
    let router = Router::new().route("/mutate/{profile}", post(mutate)).with_state(cx);
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let mut http = auto::Builder::new(TokioExecutor::new());
    http.http1().timer(TokioTimer::new()).header_read_timeout(HEAD);
    http.http2().timer(TokioTimer::new()).max_concurrent_streams(STREAMS).keep_alive_interval(HEAD);
    let http = Arc::new(http);
    let (connections, graceful) = (Arc::new(Semaphore::new(CONNECTIONS)), GracefulShutdown::new());
    while let Some(stream) = stop.run_until_cancelled(accept(&listener)).await {
        let Ok(permit) = Arc::clone(&connections).acquire_owned().await else { break };
        let (acceptor, http, metrics) = (acceptor.clone(), Arc::clone(&http), Arc::clone(&metrics));
        let (service, watcher) = (TowerToHyperService::new(router.clone()), graceful.watcher());
        tokio::spawn(async move {
            let _permit = permit;
            let Ok(Ok(stream)) = timeout(HANDSHAKE, acceptor.accept(stream)).await else {
                metrics.handshakes_failed.inc();
                return;
            };
            let connection = http.serve_connection(TokioIo::new(stream), service).into_owned();
            if let Err(error) = watcher.watch(connection).await {
                tracing::debug!(%error, "a connection broke off");
            }
        });
    }
    drop(listener);
    if timeout(GRACE, graceful.shutdown()).await.is_err() {
        tracing::warn!("some requests did not end");
    }
}

async fn accept(listener: &TcpListener) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // An answer is one small packet that nothing follows.
                let _ = stream.set_nodelay(true);
                return stream;
            }
            Err(error) => {
                // No more files, for example: that passes when connections end.
                tracing::warn!(%error, "a connection could not be accepted");
                sleep(Duration::from_millis(100)).await;
            }
        }
    }
}

async fn mutate(State(cx): State<Context>, Path(profile): Path<String>, request: Request) -> Response {
    let version = request.version();
    let mut response = match body(request.into_body()).await {
        Ok(body) => answer(&cx, &profile, &body),
        Err((status, text)) => {
            cx.metrics.answered(Outcome::Unread, Duration::ZERO);
            refusal(status, text)
        }
    };
    if version < Version::HTTP_2 && cx.stopping.load(Ordering::Relaxed) {
        // The client takes its next request elsewhere, instead of sending it while this connection is closed.
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

fn answer(cx: &Context, profile: &str, body: &Bytes) -> Response {
    let start = Instant::now();
    let mut outcome = Outcome::Malformed;
    let answer = review::answer(body, |call| {
        let (found, reply) = cx.world.reply(profile, call);
        outcome = found;
        reply
    });
    let response = match answer {
        Ok(answer) => ([(CONTENT_TYPE, "application/json")], answer).into_response(),
        Err(malformed) => {
            tracing::warn!(profile, error = %malformed, "a review could not be read");
            refusal(StatusCode::BAD_REQUEST, &malformed.to_string())
        }
    };
    cx.metrics.answered(outcome, start.elapsed());
    response
}

async fn body(body: Body) -> Result<Bytes, (StatusCode, &'static str)> {
    match timeout(BODY, Limited::new(body, MAX_BYTES).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            Err((StatusCode::PAYLOAD_TOO_LARGE, "the AdmissionReview has more than 7 MiB"))
        }
        Ok(Err(_)) => Err((StatusCode::BAD_REQUEST, "the body broke off")),
        Err(_) => Err((StatusCode::REQUEST_TIMEOUT, "the body did not come within 5 s")),
    }
}

/// What the API server shows to whoever made the request, if the failure policy is Fail, and writes to its log.
fn refusal(status: StatusCode, message: &str) -> Response {
    let body = json!({
        "apiVersion": "v1", "kind": "Status", "status": "Failure", "code": status.as_u16(),
        "message": format!("palisade-webhook: {message}"),
    });
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}
