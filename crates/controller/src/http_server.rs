//! `/livez`, `/readyz` and `/metrics`.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use axum::{
    Router, extract::State, http::StatusCode, http::header::CONTENT_TYPE, response::IntoResponse, routing::get,
};
use tokio::{net::TcpListener, time::Instant};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{metrics::Metrics, world::World};

/// A loop that has not turned for so long is dead.
const DEAD: Duration = Duration::from_mins(1);

/// When the loop turned last.
#[derive(Debug)]
pub struct Heartbeat {
    start: Instant,
    last: AtomicU64,
}

impl Heartbeat {
    /// Now.
    pub fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }

    /// The loop turned.
    pub fn beat(&self) {
        self.last.store(self.start.elapsed().as_secs(), Ordering::Relaxed);
    }

    fn alive(&self) -> bool {
        let last = Duration::from_secs(self.last.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(last) < DEAD
    }
}

/// What the answers are made of.
#[derive(Clone)]
pub struct Health {
    /// Of the loop.
    pub heartbeat: Arc<Heartbeat>,
    /// Whether it is complete.
    pub world: Arc<World>,
    /// Counts.
    pub metrics: Arc<Metrics>,
}

/// Listens, and answers until the end. Returns the address: the port may have been left to the system.
pub async fn start(
    listen: SocketAddr,
    health: Health,
    tasks: &TaskTracker,
    stop: CancellationToken,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/livez", get(livez))
        .route("/readyz", get(readyz))
        .route("/metrics", get(metrics))
        .with_state(health);
    tasks.spawn(async move {
        let server = axum::serve(listener, router).with_graceful_shutdown(stop.cancelled_owned());
        if let Err(error) = server.await {
            tracing::error!(%error, "the HTTP server failed");
        }
    });
    Ok(address)
}

async fn livez(State(health): State<Health>) -> (StatusCode, &'static str) {
    if health.heartbeat.alive() { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "stuck\n") }
}

async fn readyz(State(health): State<Health>) -> (StatusCode, &'static str) {
    if health.world.synced() { (StatusCode::OK, "ok\n") } else { (StatusCode::SERVICE_UNAVAILABLE, "not synced\n") }
}

async fn metrics(State(health): State<Health>) -> impl IntoResponse {
    match health.metrics.text() {
        Ok(text) => Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
