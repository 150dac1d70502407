//! Starts the controller.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use kube::{Client, Config};
use palisade_runtime::{Supervisor, TaskFailure, serve_health};
use tokio::task::{JoinError, JoinHandle};
use tokio_util::sync::CancellationToken;

use crate::{
    apply::repair,
    context::{Access, Context},
    exceptions,
    generated::mutating_policies,
    generations::version,
    lanes::{
        health::{Health, Heartbeat},
        lane::{Lane, SHUTDOWN_GRACE},
    },
    leader::election::Election,
    options::Options,
    params, reconcile, registration, rollout, scan, tenant_objects,
    watch::observe,
};

/// Why the controller could not run, or ran no longer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    /// Flags that do not fit together.
    #[error("{0}")]
    Options(String),
    /// No client can be created from the configuration.
    #[error("cannot create a client for the API server: {0}")]
    Client(#[from] kube::Error),
    /// A task that the controller needs.
    #[error(transparent)]
    Task(#[from] TaskFailure),
    #[error("the controller stopped: {0}")]
    Stopped(#[from] JoinError),
}

#[derive(Debug)]
pub struct Controller;

/// A controller that runs.
#[derive(Debug)]
pub struct Running {
    /// The address of `/livez`, `/readyz` and `/metrics`.
    pub addr: SocketAddr,
    /// Ends it when cancelled.
    pub shutdown: CancellationToken,
    /// All that runs.
    pub join: JoinHandle<Result<(), TaskFailure>>,
}

impl Running {
    /// Ends it: finishes writes in progress, and begins no other.
    pub async fn stop(self) -> Result<(), Error> {
        self.shutdown.cancel();
        Ok(self.join.await??)
    }
}

impl Controller {
    pub async fn start(access: impl Into<Access>, options: Options) -> Result<Running, Error> {
        Self::start_with(access, options, CancellationToken::new()).await
    }

    /// Starts it; it ends when `shutdown` is cancelled.
    pub async fn start_with(
        access: impl Into<Access>,
        options: Options,
        shutdown: CancellationToken,
    ) -> Result<Running, Error> {
        let supervisor = Supervisor::new(shutdown.clone());
        let address = options.listen;
        let timing = options.election().map_err(Error::Options)?;
        let access = access.into();
        let unfenced = access.client.clone();
        let cx = Arc::new(Context::new(access, &options, supervisor.clone())?);
        let heartbeats = [(); 6].map(|()| Arc::new(Heartbeat::new()));
        let health =
            Health { heartbeats: heartbeats.to_vec(), store: Arc::clone(&cx.store), metrics: Arc::clone(&cx.metrics) };
        let addr = serve_health(address, health, &cx.metrics.ports, &supervisor, shutdown.clone())
            .await
            .map_err(|source| Error::Listen { address, source })?;
        observe::start(&cx.client, &cx.store, &cx.queues, &supervisor);
        version::start(&cx.client, &cx.compiler, &cx.store, &cx.queue, &supervisor);
        mutating_policies::start(&cx.client, &cx.native, &cx.store, &cx.queue, &supervisor);
        registration::start(&cx.registration, &cx.client, &cx.store, &cx.queue, &supervisor);
        let [repairs, params, rollouts, exceptions, objects, reconcile] = heartbeats;
        Lane::start(&cx, "repairs", &cx.queues.repairs, &repairs, repair::work);
        Lane::start(&cx, "parameters", &cx.queues.params, &params, params::lane::work);
        Lane::start(&cx, "rollouts", &cx.queues.rollouts, &rollouts, rollout::work);
        Lane::start(&cx, "exceptions", &cx.queues.exceptions, &exceptions, exceptions::work);
        Lane::start(&cx, "objects", &cx.queues.objects, &objects, tenant_objects::lane::work);
        Lane::start(&cx, "reconcile", &cx.queues.reconcile, &reconcile, reconcile::work());
        scan::start(&cx, &options);
        let election = options.leader_elect.then(|| {
            let (leadership, metrics) = (Arc::clone(&cx.leadership), Arc::clone(&cx.metrics));
            Arc::new(Election::new(unfenced, options.instance.as_deref(), timing, leadership, metrics))
        });
        if let Some(election) = &election {
            Arc::clone(election).start(&supervisor);
        }
        tracing::info!(address = %addr, version = env!("CARGO_PKG_VERSION"), "palisade-controller started");
        let stop = shutdown.clone();
        let join = tokio::spawn(async move {
            stop.cancelled().await;
            tracing::info!("stopping");
            let finished = supervisor.finish(SHUTDOWN_GRACE + Duration::from_secs(2)).await;
            if let Some(election) = election {
                election.release().await;
            }
            finished
        });
        Ok(Running { addr, shutdown, join })
    }
}

/// Runs the controller until `shutdown` is cancelled.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) -> Result<(), Error> {
    // The same configuration as the client's.
    let access = Access { client, config: Config::infer().await.ok(), own_connections: true };
    Ok(Controller::start_with(access, options, shutdown).await?.join.await??)
}
