//! What every stage may use.

use std::{sync::Arc, time::Duration};

use kube::Client;
use palisade_process::Supervisor;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::{
    Access, Options,
    events::Events,
    metrics::Metrics,
    probe::{Prober, Servers},
    queue::Queue,
    registration::Registration,
    state::States,
    world::{Concerned, World},
    writer::Writer,
};

/// How many plans of all namespaces are made at the same time.
const PLANS: usize = 2;

/// When a lane looks at which profile. Each lane has its own times, so that none waits for another.
#[derive(Clone, Debug)]
pub struct Queues {
    /// Passes: a new generation, the status.
    pub passes: Arc<Queue>,
    /// Policies and bindings that are not as they were left.
    pub repairs: Arc<Queue>,
    /// Parameters in namespaces.
    pub tenants: Arc<Queue>,
}

impl Queues {
    /// Queues that collect changes for `debounce`; a repair does not wait for another change.
    pub fn new(debounce: Duration) -> Self {
        Self {
            passes: Arc::new(Queue::new(debounce)),
            repairs: Arc::new(Queue::new(Duration::ZERO)),
            tenants: Arc::new(Queue::new(debounce)),
        }
    }

    /// Something about these profiles has changed, and it is not known what.
    pub fn trigger_all(&self, profiles: &Concerned) {
        for queue in [&self.passes, &self.repairs, &self.tenants] {
            queue.trigger(profiles.iter().cloned());
        }
    }
}

/// What every stage may use.
pub struct Context {
    /// To the API server.
    pub client: Client,
    /// What is known of the cluster.
    pub world: Arc<World>,
    /// When a pass is made over which profile.
    pub queue: Arc<Queue>,
    /// The queues of all lanes.
    pub queues: Queues,
    /// What the lanes of a profile share.
    pub states: States,
    /// Writes and deletes parameters.
    pub writer: Writer,
    /// Bounds how many profiles are compiled and checked at the same time: that takes a processor.
    pub checks: Semaphore,
    /// Bounds how many plans of all namespaces are made at the same time.
    pub plans: Semaphore,
    /// Asks whether profiles are in force.
    pub prober: Arc<Prober>,
    /// Registers the webhook.
    pub registration: Arc<Registration>,
    /// Where events are handed in.
    pub events: Events,
    /// Counts.
    pub metrics: Arc<Metrics>,
    /// Starts tasks, and ends the process when one of them panics.
    pub supervisor: Supervisor,
    /// Cancelled when the controller is to stop: no write is begun then.
    pub stop: CancellationToken,
}

impl Context {
    /// Of a controller that knows nothing yet.
    pub fn new(access: Access, options: &Options, supervisor: Supervisor) -> Self {
        let Access { client, config } = access;
        let stop = supervisor.stop().clone();
        let (world, metrics) = (Arc::new(World::default()), Arc::new(Metrics::new()));
        let queues = Queues::new(options.debounce);
        let servers = Servers::new(client.clone(), config, options.api_servers.clone(), Arc::clone(&metrics));
        let servers = Arc::new(servers);
        servers.follow(&world, &queues.passes, &supervisor);
        let prober = Prober::new(
            servers,
            Arc::clone(&world),
            Arc::clone(&queues.passes),
            Arc::clone(&metrics),
            options,
            supervisor.clone(),
            stop.clone(),
        );
        let events = Events::start(client.clone(), options.instance.clone(), &supervisor);
        Self {
            client,
            world,
            queue: Arc::clone(&queues.passes),
            queues,
            states: States::default(),
            writer: Writer::new(options.write_concurrency),
            checks: Semaphore::new(options.profile_concurrency.max(1)),
            plans: Semaphore::new(PLANS),
            prober: Arc::new(prober),
            registration: Arc::default(),
            events,
            metrics,
            supervisor,
            stop,
        }
    }
}
