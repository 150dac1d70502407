//! Starts the webhook.

use std::{
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use kube::Client;
use palisade_runtime::{GRACE, HttpServer, Limits, Supervisor, TaskFailure, serve_health, tls::server_config};
use tokio::{
    net::TcpListener,
    task::{JoinError, JoinHandle},
    time::sleep,
};
use tokio_util::sync::CancellationToken;

use crate::{
    certificates::{
        CurrentCertificate,
        clients::{self, ClientCaError},
    },
    cluster::ClusterState,
    metrics::Metrics,
    options::Options,
    server::{self, Context},
    upkeep::Upkeep,
};

/// Why the webhook could not run, or ran no longer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
    #[error(transparent)]
    Clients(#[from] ClientCaError),
    /// A task that the webhook needs.
    #[error(transparent)]
    Task(#[from] TaskFailure),
    #[error("the webhook stopped: {0}")]
    Stopped(#[from] JoinError),
}

/// A webhook that runs.
#[derive(Debug)]
pub struct Running {
    /// The address of `/mutate`.
    pub addr: SocketAddr,
    /// The address of `/livez`, `/readyz` and `/metrics`.
    pub health_addr: SocketAddr,
    /// Ends it when cancelled.
    pub shutdown: CancellationToken,
    /// Resolves once it has ended.
    pub join: JoinHandle<Result<(), TaskFailure>>,
}

impl Running {
    /// Ends it, after it has answered the requests in progress.
    ///
    /// # Errors
    /// One of its tasks failed.
    pub async fn stop(self) -> Result<(), Error> {
        self.shutdown.cancel();
        Ok(self.join.await??)
    }
}

/// Starts the webhook; it ends when `shutdown` is cancelled.
///
/// # Errors
/// An address is taken.
pub async fn start(client: Client, options: Options, shutdown: CancellationToken) -> Result<Running, Error> {
    let metrics = Arc::new(Metrics::new());
    let limits =
        Limits { connections: options.max_connections, body_bytes: options.max_body_bytes, ..Limits::default() };
    let (tasks, ended) = (Supervisor::new(shutdown.clone()), CancellationToken::new());
    let cx = Context {
        cluster: ClusterState::start(&client, &metrics, &tasks, &ended),
        certificate: Arc::new(CurrentCertificate::default()),
        http: HttpServer::new(server::PORT, limits, &metrics.ports),
        metrics,
        stopping: Arc::new(AtomicBool::new(false)),
    };
    let clients =
        options.client_ca.as_deref().map(|file| clients::verifier(file, &options.client_names)).transpose()?;
    let of = |address| move |source| Error::Listen { address, source };
    let tls = server_config(cx.certificate.clone(), clients)?;
    let listener = TcpListener::bind(options.listen).await.map_err(of(options.listen))?;
    let addr = listener.local_addr().map_err(of(options.listen))?;
    let health_addr = serve_health(options.listen_health, cx.clone(), &cx.metrics.ports, &tasks, ended.clone())
        .await
        .map_err(of(options.listen_health))?;
    tasks.spawn("certificates and registration", Upkeep::new(&client, &options, cx.clone()).run(shutdown.clone()));
    tracing::info!(address = %addr, health_address = %health_addr, version = env!("CARGO_PKG_VERSION"), "palisade-webhook started");

    let (stopping, drained, drain) = (Arc::clone(&cx.stopping), CancellationToken::new(), options.drain);
    let (http, stop) = (cx.http.clone(), drained.clone());
    let served = async move { http.serve(listener, Some(tls), server::router(cx), stop).await };
    tasks.spawn("webhook server", async move {
        // Watches and `/metrics` go on until all requests are answered.
        let _ended = ended.drop_guard();
        served.await;
    });
    let stop = shutdown.clone();
    let join = tokio::spawn(async move {
        stop.cancelled().await;
        tracing::info!("stopping");
        stopping.store(true, Ordering::Relaxed);
        // Load balancers need time to notice that this replica is no longer ready.
        sleep(drain).await;
        drained.cancel();
        tasks.finish(GRACE + Duration::from_secs(2)).await
    });
    Ok(Running { addr, health_addr, shutdown, join })
}

/// Runs the webhook until `shutdown` is cancelled.
///
/// # Errors
/// [`start`]'s, or one of its tasks failed.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) -> Result<(), Error> {
    Ok(start(client, options, shutdown).await?.join.await??)
}
