//! A lane: processes each profile when its queue triggers it, and never one profile twice at the same time. It
//! processes all due profiles concurrently.
//!
//! The number is not limited, on purpose: the work mostly waits for responses of the API server, and with a limit, some
//! profiles with hanging requests would block all others. CPU-bound work has separate limits ([`Context::compiler`],
//! [`Context::plans`]), and runs on other threads than lanes.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use futures::future::BoxFuture;
use tokio::task::{Id, JoinError, JoinSet};
use tracing::Instrument;

use crate::{
    context::Context,
    lanes::health::Heartbeat,
    queue::{Queue, Requeue},
};

/// How long work in progress may take when the controller stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// How long after a panic a profile is retried.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// The work of a lane on a profile.
type Work = Box<dyn Fn(Arc<Context>, String) -> BoxFuture<'static, Requeue> + Send + Sync>;

/// A lane.
pub struct Lane {
    cx: Arc<Context>,
    name: &'static str,
    queue: Arc<Queue>,
    work: Work,
    heartbeat: Arc<Heartbeat>,
    running: BTreeMap<Id, String>,
    turns: JoinSet<Requeue>,
}

impl Lane {
    /// Starts a lane. It ends when the controller must stop; a lane that ends earlier ends the controller.
    pub fn start(
        cx: &Arc<Context>,
        name: &'static str,
        queue: &Arc<Queue>,
        heartbeat: &Arc<Heartbeat>,
        work: impl Fn(Arc<Context>, String) -> BoxFuture<'static, Requeue> + Send + Sync + 'static,
    ) {
        let lane = Self {
            cx: Arc::clone(cx),
            name,
            queue: Arc::clone(queue),
            work: Box::new(work),
            heartbeat: Arc::clone(heartbeat),
            running: BTreeMap::new(),
            turns: JoinSet::new(),
        };
        cx.supervisor.spawn(format!("lane {name}"), lane.run());
    }

    async fn run(mut self) {
        while !self.cx.stop.is_cancelled() {
            self.heartbeat.beat();
            let busy: BTreeSet<String> = self.running.values().cloned().collect();
            // Until all lists are read, an object that seems to be missing may only be unknown.
            let works = self.cx.store.synced() && self.cx.leadership.leads();
            let pause = Duration::from_millis(if works { 5000 } else { 50 });
            tokio::select! {
                () = self.cx.stop.cancelled() => {}
                Some(ended) = self.turns.join_next_with_id() => self.ended(ended),
                profile = self.queue.next(&busy), if works => self.begin(profile),
                () = tokio::time::sleep(pause) => {}
            }
        }
        let turns = async { while self.turns.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_GRACE, turns).await.is_err() {
            tracing::warn!(lane = self.name, "some requests did not finish in time");
        }
    }

    fn begin(&mut self, profile: String) {
        let span = tracing::debug_span!("lane", lane = self.name, profile, otel.name = format!("lane {}", self.name));
        // Spans that the work begins with are in this one, too.
        let work = span.in_scope(|| (self.work)(Arc::clone(&self.cx), profile.clone()));
        let handle = self.turns.spawn(work.instrument(span));
        self.running.insert(handle.id(), profile);
    }

    fn ended(&mut self, ended: Result<(Id, Requeue), JoinError>) {
        match ended {
            Ok((id, next)) => {
                let Some(profile) = self.running.remove(&id) else { return };
                if let Requeue::After(after) = next {
                    self.queue.schedule(profile, after);
                }
            }
            // A panic for one profile must not stop the others.
            Err(error) => {
                let profile = self.running.remove(&error.id());
                tracing::error!(lane = self.name, profile, %error, "processing a profile panicked; will retry");
                if let Some(profile) = profile {
                    self.queue.schedule(profile, AFTER_PANIC);
                }
            }
        }
    }
}
