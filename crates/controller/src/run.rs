//! Starts the controller and runs its loop.

use std::{
    collections::{BTreeMap, BTreeSet},
    io,
    net::SocketAddr,
    sync::Arc,
    time::Duration,
};

use kube::{Client, Config};
use palisade_process::{Died, Supervisor, serve_health};
use tokio::{
    task::{Id, JoinError, JoinHandle, JoinSet},
    time::Instant,
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};
use tracing::Instrument;

use crate::{
    Options,
    events::Events,
    health::{Health, Heartbeat},
    memory::Memory,
    metrics::Metrics,
    native, observe,
    probe::{Prober, Servers},
    queue::Queue,
    reconcile::{Context, Next, backoff, reconcile},
    world::World,
};

/// How long writes that are under way may take at the end.
const GRACE: Duration = Duration::from_secs(10);

/// Why the controller could not run, or ran no longer.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The HTTP server.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// A task that it cannot do without.
    #[error(transparent)]
    Died(#[from] Died),
    /// The loop ended.
    #[error("the controller stopped: {0}")]
    Stopped(#[from] JoinError),
}

/// How the API server is reached.
#[derive(Clone)]
pub struct Access {
    /// To the configured address.
    pub client: Client,
    /// What clients of other addresses are made of, so that each API server can be asked by itself. Without it only the
    /// configured address is.
    pub config: Option<Config>,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration may hold a token.
        f.write_str("Access")
    }
}

impl From<Client> for Access {
    fn from(client: Client) -> Self {
        Self { client, config: None }
    }
}

/// The controller.
#[derive(Debug)]
pub struct Controller;

/// A controller that runs.
#[derive(Debug)]
pub struct Running {
    /// The address of `/livez`, `/readyz` and `/metrics`.
    pub addr: SocketAddr,
    /// Ends it when cancelled.
    pub shutdown: CancellationToken,
    /// Its loop.
    pub join: JoinHandle<Result<(), Died>>,
}

impl Running {
    /// Ends it: writes that are under way are finished, no other is begun.
    pub async fn stop(self) -> Result<(), Error> {
        self.shutdown.cancel();
        Ok(self.join.await??)
    }
}

impl Controller {
    /// Starts it.
    pub async fn start(access: impl Into<Access>, options: Options) -> Result<Running, Error> {
        Self::start_with(access, options, CancellationToken::new()).await
    }

    /// Starts it; it ends when `shutdown` is cancelled.
    pub async fn start_with(
        access: impl Into<Access>,
        options: Options,
        shutdown: CancellationToken,
    ) -> Result<Running, Error> {
        let Access { client, config } = access.into();
        let (tasks, supervisor) = (TaskTracker::new(), Supervisor::new(shutdown.clone()));
        let (world, metrics) = (Arc::new(World::default()), Arc::new(Metrics::new()));
        let (queue, heartbeat) = (Arc::new(Queue::new(options.debounce)), Arc::new(Heartbeat::new()));
        let health =
            Health { heartbeat: Arc::clone(&heartbeat), world: Arc::clone(&world), metrics: Arc::clone(&metrics) };
        let addr = serve_health(options.listen, health, &metrics.ports, &supervisor, shutdown.clone())
            .await
            .map_err(|source| Error::Listen { address: options.listen, source })?;
        observe::start(&client, &world, &queue, &tasks, &shutdown);
        native::start(&client, &world, &queue, &tasks, &shutdown);
        let servers = Servers::new(client.clone(), config, options.api_servers.clone(), Arc::clone(&metrics));
        let servers = Arc::new(servers);
        servers.follow(&world, &queue, &tasks, &shutdown);
        let prober = Prober::new(
            servers,
            Arc::clone(&world),
            Arc::clone(&queue),
            Arc::clone(&metrics),
            &options,
            tasks.clone(),
            shutdown.clone(),
        );
        let events = Events::start(client.clone(), options.instance.clone(), &tasks, shutdown.clone());
        let stop = shutdown.clone();
        let cx = Context { client, world, queue, options, prober: Arc::new(prober), events, metrics, stop };
        tracing::info!(%addr, version = env!("CARGO_PKG_VERSION"), "palisade-controller started");
        let turning = Loop {
            cx: Arc::new(cx),
            heartbeat,
            tasks,
            supervisor,
            memories: BTreeMap::new(),
            running: BTreeMap::new(),
            passes: JoinSet::new(),
        };
        Ok(Running { addr, shutdown, join: tokio::spawn(turning.turn()) })
    }
}

/// Runs the controller until `shutdown` is cancelled.
pub async fn run(client: Client, options: Options, shutdown: CancellationToken) -> Result<(), Error> {
    // As the client was made.
    let access = Access { client, config: Config::infer().await.ok() };
    Ok(Controller::start_with(access, options, shutdown).await?.join.await??)
}

struct Loop {
    cx: Arc<Context>,
    heartbeat: Arc<Heartbeat>,
    tasks: TaskTracker,
    supervisor: Supervisor,
    /// By profile; what a pass has is not here.
    memories: BTreeMap<String, Memory>,
    running: BTreeMap<Id, String>,
    passes: JoinSet<(Memory, Next)>,
}

impl Loop {
    async fn turn(mut self) -> Result<(), Died> {
        while !self.cx.stop.is_cancelled() {
            self.heartbeat.beat();
            let busy: BTreeSet<String> = self.running.values().cloned().collect();
            // Before everything is known, what seems to be missing may only be unknown.
            let free = self.cx.world.synced() && busy.len() < self.cx.options.profile_concurrency.max(1);
            let pause = Duration::from_millis(if free { 5000 } else { 50 });
            tokio::select! {
                () = self.cx.stop.cancelled() => {}
                Some(ended) = self.passes.join_next_with_id() => self.ended(ended),
                profile = self.cx.queue.next(&busy), if free => self.begin(profile),
                () = tokio::time::sleep(pause) => {}
            }
        }
        self.finish().await
    }

    fn begin(&mut self, profile: String) {
        let mut memory = self.memories.remove(&profile).unwrap_or_else(|| Memory::new(String::new()));
        let cx = Arc::clone(&self.cx);
        let generation = cx.world.profile(&profile).and_then(|observed| observed.meta.generation);
        let span = tracing::info_span!("reconcile", profile, generation);
        let name = profile.clone();
        let pass = async move {
            let start = Instant::now();
            let result = reconcile(&cx, &name, &mut memory).await;
            let took = start.elapsed();
            let next = match result {
                Ok(next) => {
                    memory.failures = 0;
                    cx.metrics.reconciled("ok", took);
                    next
                }
                Err(error) => {
                    cx.metrics.reconciled(error.stage(), took);
                    let after = backoff(&mut memory);
                    tracing::warn!(%error, ?after, "the pass failed and is tried again");
                    Next::After(after)
                }
            };
            tracing::debug!(?took, ?next, "pass");
            (memory, next)
        };
        let handle = self.passes.spawn(pass.instrument(span));
        self.running.insert(handle.id(), profile);
    }

    fn ended(&mut self, ended: Result<(Id, (Memory, Next)), JoinError>) {
        match ended {
            Ok((id, (memory, next))) => {
                let Some(profile) = self.running.remove(&id) else { return };
                if next != Next::Never {
                    self.memories.insert(profile.clone(), memory);
                }
                if let Next::After(after) = next {
                    self.cx.queue.schedule(profile, after);
                }
            }
            Err(error) => {
                tracing::error!(%error, "a pass broke off");
                if let Some(profile) = self.running.remove(&error.id()) {
                    self.cx.queue.schedule(profile, Duration::from_secs(10));
                }
            }
        }
    }

    async fn finish(mut self) -> Result<(), Died> {
        tracing::info!("stopping");
        let passes = async { while self.passes.join_next().await.is_some() {} };
        if tokio::time::timeout(GRACE, passes).await.is_err() {
            tracing::warn!("some writes did not end");
        }
        self.tasks.close();
        if tokio::time::timeout(Duration::from_secs(2), self.tasks.wait()).await.is_err() {
            tracing::debug!("some tasks did not end");
        }
        self.supervisor.finish(Duration::from_secs(2)).await
    }
}
