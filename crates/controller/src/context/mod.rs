//! Shared resources of all stages.

pub mod discovery;
pub mod pages;
pub mod state;

use std::sync::Arc;

use kube::{Client, Config};
use palisade_runtime::Supervisor;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    context::state::States,
    generated::mutating_policies::NativePolicies,
    generations::compile::Compiler,
    leader::fence::{Leadership, fenced},
    metrics::Metrics,
    object_plan::outcomes::Outcomes,
    options::{Options, Switch},
    pacing::Pacing,
    param_plan::jobs::JobQueue,
    probe::{Prober, Servers},
    queue::{ProfileQueue, Queues},
    registration::Registration,
    status::events::Events,
    watch::store::Store,
};

/// How much text of pages is in memory as objects at the same time, in KiB. As objects it takes several times as much.
pub const MAX_PAGES_KIB: u32 = 8 << 10;
/// Number of concurrent plans of all namespaces.
const MAX_CONCURRENT_PLANS: usize = 2;

/// How the API server is reached.
#[derive(Clone)]
pub struct Access {
    /// To the configured address.
    pub client: Client,
    /// The configuration for clients of other addresses, for probing each API server separately. Without it, only the
    /// configured address is probed.
    pub config: Option<Config>,
    /// True if all requests except the election use separate connections, created from `config`, which end with the
    /// leadership. Otherwise they use those of `client`.
    pub own_connections: bool,
}

impl std::fmt::Debug for Access {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The configuration may hold a token.
        f.write_str("Access")
    }
}

impl From<Client> for Access {
    fn from(client: Client) -> Self {
        Self { client, config: None, own_connections: false }
    }
}

/// Shared resources of all stages.
pub struct Context {
    /// To the API server. It changes something only while this replica leads.
    pub client: Client,
    /// The leadership of this replica.
    pub leadership: Arc<Leadership>,
    /// The controller's copy of the cluster.
    pub store: Arc<Store>,
    /// The policies that mutate pods, where the API server serves their kind.
    pub native: Arc<NativePolicies>,
    /// When which profile is reconciled.
    pub queue: Arc<ProfileQueue>,
    pub queues: Queues,
    /// Shared state of the lanes of each profile.
    pub states: States,
    /// Parameters to write and to delete.
    pub jobs: JobQueue,
    /// Results of the lane of objects.
    pub object_outcomes: Outcomes,
    /// Limits the number of namespaces in which objects are written concurrently.
    pub object_places: Arc<Semaphore>,
    /// Compiles and checks profiles, a few at the same time.
    pub compiler: Arc<Compiler>,
    /// Limits the number of concurrent plans of all namespaces.
    pub plans: Semaphore,
    /// Bounds how many pods and workloads are in memory at the same time, in KiB of their text.
    pub pages: Arc<Semaphore>,
    /// When policies may be written.
    pub pacing: Arc<Pacing>,
    /// Probes whether profiles are in effect.
    pub prober: Arc<Prober>,
    /// Registers the webhook.
    pub registration: Arc<Registration>,
    /// Takes events to send.
    pub events: Events,
    /// True if the background scan is on.
    pub scans: bool,
    pub metrics: Arc<Metrics>,
    /// Starts tasks, and ends the process when one of them panics.
    pub supervisor: Supervisor,
    /// Cancelled when the controller must stop. It begins no write afterwards.
    pub stop: CancellationToken,
}

impl Context {
    /// The context of a controller before its first read.
    ///
    /// # Errors
    ///
    /// If no client can be created from the configuration.
    pub fn new(access: Access, options: &Options, supervisor: Supervisor) -> kube::Result<Self> {
        let Access { client, config, own_connections } = access;
        let leadership = Arc::new(Leadership::new(options.leader_elect));
        let client = fenced(client, config.as_ref().filter(|_| own_connections), &leadership)?;
        let stop = supervisor.stop().clone();
        let (store, native) = (Arc::new(Store::new(&options.generate)), Arc::new(NativePolicies::default()));
        let metrics = Arc::new(Metrics::new());
        let queues = Queues::new(options.debounce);
        let (pacing, which) = (Arc::new(Pacing::default()), options.api_servers.clone());
        let servers = Servers::new(client.clone(), config, which, Arc::clone(&pacing), Arc::clone(&metrics));
        let servers = Arc::new(servers);
        servers.follow(&store, &queues.reconcile, &supervisor);
        let prober = Prober::new(
            servers,
            Arc::clone(&store),
            Arc::clone(&native),
            Arc::clone(&queues.reconcile),
            Arc::clone(&metrics),
            options,
            supervisor.clone(),
        );
        let events = Events::start(client.clone(), options.instance.clone(), &supervisor);
        Ok(Self {
            client,
            leadership,
            store,
            native,
            queue: Arc::clone(&queues.reconcile),
            queues,
            states: States::default(),
            jobs: JobQueue::new(options.write_concurrency),
            object_outcomes: Outcomes::default(),
            object_places: Arc::new(Semaphore::new(options.write_concurrency)),
            compiler: Arc::new(Compiler::new(
                options.profile_concurrency,
                options.fast_path == Switch::On,
                &options.generate,
            )),
            plans: Semaphore::new(MAX_CONCURRENT_PLANS),
            pages: Arc::new(Semaphore::new(MAX_PAGES_KIB as usize)),
            pacing,
            prober: Arc::new(prober),
            registration: Arc::default(),
            events,
            scans: options.scan_interval.0.is_some(),
            metrics,
            supervisor,
            stop,
        })
    }
}
