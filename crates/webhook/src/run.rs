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
use palisade_process::serve_health;
use tokio::{
    net::TcpListener,
    task::{JoinError, JoinHandle},
    time::{sleep, timeout},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    certificates::{self, Shown},
    metrics::Metrics,
    options::Options,
    server::{self, Context},
    upkeep::Upkeep,
    world::World,
};

/// Why the webhook could not run. Once it runs, nothing but its shutdown ends it.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// An HTTP server.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// TLS.
    #[error("TLS cannot be set up: {0}")]
    Tls(#[from] tokio_rustls::rustls::Error),
    /// It ended.
    #[error("the webhook stopped: {0}")]
    Stopped(#[source] JoinError),
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
    /// Until it has ended.
    pub join: JoinHandle<()>,
}

impl Running {
    /// Ends it: what was asked is answered.
    ///
    /// # Errors
    /// It broke off before.
    pub async fn stop(self) -> Result<(), Error> {
        self.shutdown.cancel();
        self.join.await.map_err(Error::Stopped)
    }
}

/// Starts the webhook; it ends when `shutdown` is cancelled.
///
/// # Errors
/// An address is taken.
pub async fn start(client: Client, options: Options, shutdown: CancellationToken) -> Result<Running, Error> {
    let (tasks, ended) = (TaskTracker::new(), CancellationToken::new());
    let metrics = Arc::new(Metrics::new());
    let cx = Context {
        world: World::start(&client, &metrics, &tasks, &ended),
        shown: Arc::new(Shown::default()),
        metrics,
        stopping: Arc::new(AtomicBool::new(false)),
    };
    let of = |address| move |source| Error::Listen { address, source };
    let tls = certificates::server_config(Arc::clone(&cx.shown))?;
    let listener = TcpListener::bind(options.listen).await.map_err(of(options.listen))?;
    let addr = listener.local_addr().map_err(of(options.listen))?;
    let health_addr = serve_health(options.listen_health, cx.clone(), &tasks, ended.clone())
        .await
        .map_err(of(options.listen_health))?;
    tasks.spawn(Upkeep::new(&client, &options, cx.clone()).run(shutdown.clone()));
    tracing::info!(%addr, %health_addr, version = env!("CARGO_PKG_VERSION"), "palisade-webhook started");

    let (stopping, drained, stop) = (Arc::clone(&cx.stopping), CancellationToken::new(), shutdown.clone());
    let drain = options.drain;
    let draining = drained.clone();
    tasks.spawn(async move {
        stop.cancelled().await;
        tracing::info!("stopping");
        stopping.store(true, Ordering::Relaxed);
        // Whoever balances the load learns that this one is not ready any more.
        sleep(drain).await;
        draining.cancel();
    });
    let join = tokio::spawn(async move {
        server::serve(listener, tls, cx, drained).await;
        ended.cancel();
        tasks.close();
        if timeout(Duration::from_secs(2), tasks.wait()).await.is_err() {
            tracing::debug!("some tasks did not end");
        }
    });
    Ok(Running { addr, health_addr, shutdown, join })
}

/// Runs the webhook until `shutdown` is cancelled.
///
/// # Errors
/// [`start`]'s, or it broke off.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) -> Result<(), Error> {
    start(client, options, shutdown).await?.join.await.map_err(Error::Stopped)
}
