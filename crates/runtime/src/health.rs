//! `/livez`, `/readyz` and `/metrics`.

use std::{io, net::SocketAddr, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::IntoResponse,
    routing::get,
};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::{HttpMetrics, HttpServer, Limits, Supervisor};

/// A kubelet needs one connection here, and each reader of metrics another one. Bodies are not read.
const LIMITS: Limits = Limits {
    connections: 64,
    handshake: Duration::from_secs(5),
    head: Duration::from_secs(5),
    body: Duration::from_secs(5),
    request: Duration::from_secs(10),
    idle: Duration::from_mins(2),
    body_bytes: 0,
    streams: 1,
};

/// The state that the health server reports.
pub trait Health: Clone + Send + Sync + 'static {
    /// Checks that the process makes progress; otherwise the kubelet restarts it.
    ///
    /// # Errors
    ///
    /// The error, in a word.
    fn live(&self) -> Result<(), &'static str> {
        Ok(())
    }

    /// Checks that this process can serve requests.
    ///
    /// # Errors
    ///
    /// The missing condition, in a word.
    fn ready(&self) -> Result<(), &'static str>;

    /// The metrics, as `OpenMetrics` text.
    ///
    /// # Errors
    /// They cannot be encoded.
    fn metrics(&self) -> Result<String, std::fmt::Error>;
}

/// Listens, and serves until `stop` is cancelled. Returns the address, because the system may choose the port.
///
/// # Errors
/// The address is taken.
pub async fn serve_health<H: Health>(
    listen: SocketAddr,
    health: H,
    counts: &HttpMetrics,
    tasks: &Supervisor,
    stop: CancellationToken,
) -> io::Result<SocketAddr> {
    let listener = TcpListener::bind(listen).await?;
    let address = listener.local_addr()?;
    let router = Router::new()
        .route("/livez", get(livez::<H>))
        .route("/readyz", get(readyz::<H>))
        .route("/metrics", get(metrics::<H>))
        .with_state(health);
    let server = HttpServer::new("health", LIMITS, counts);
    tasks.spawn("health server", async move { server.serve(listener, None, router, stop).await });
    Ok(address)
}

async fn livez<H: Health>(State(health): State<H>) -> (StatusCode, String) {
    answer(health.live())
}

async fn readyz<H: Health>(State(health): State<H>) -> (StatusCode, String) {
    answer(health.ready())
}

fn answer(found: Result<(), &'static str>) -> (StatusCode, String) {
    match found {
        Ok(()) => (StatusCode::OK, "ok\n".to_owned()),
        Err(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

async fn metrics<H: Health>(State(health): State<H>) -> impl IntoResponse {
    match health.metrics() {
        Ok(text) => Ok(([(CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")], text)),
        Err(_) => Err(StatusCode::INTERNAL_SERVER_ERROR),
    }
}
