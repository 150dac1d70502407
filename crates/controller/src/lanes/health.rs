//! The state that `/livez`, `/readyz` and `/metrics` report.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use tokio::time::Instant;

use crate::{metrics::Metrics, watch::store::Store};

/// A lane that makes no progress for this long is stuck.
const STUCK_AFTER: Duration = Duration::from_mins(1);

/// Time of the last progress of a lane.
#[derive(Debug)]
pub struct Heartbeat {
    start: Instant,
    last: AtomicU64,
}

impl Heartbeat {
    /// A heartbeat with progress now.
    pub fn new() -> Self {
        Self { start: Instant::now(), last: AtomicU64::new(0) }
    }

    /// The lane makes progress.
    pub fn beat(&self) {
        self.last.store(self.start.elapsed().as_secs(), Ordering::Relaxed);
    }

    fn alive(&self) -> bool {
        let last = Duration::from_secs(self.last.load(Ordering::Relaxed));
        self.start.elapsed().saturating_sub(last) < STUCK_AFTER
    }
}

/// The state of the controller.
#[derive(Clone)]
pub struct Health {
    pub heartbeats: Vec<Arc<Heartbeat>>,
    /// The store, which must be complete.
    pub store: Arc<Store>,
    pub metrics: Arc<Metrics>,
}

impl palisade_runtime::Health for Health {
    fn live(&self) -> Result<(), &'static str> {
        if self.heartbeats.iter().all(|heartbeat| heartbeat.alive()) { Ok(()) } else { Err("stuck") }
    }

    fn ready(&self) -> Result<(), &'static str> {
        if self.store.synced() { Ok(()) } else { Err("not synced") }
    }

    fn metrics(&self) -> Result<String, std::fmt::Error> {
        self.metrics.text()
    }
}
