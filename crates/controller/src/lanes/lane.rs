//! A lane: processes each profile or namespace when its queue triggers it, and never one twice at the same time. It
//! processes all that are due concurrently.
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
    object_name::{NamespaceName, ProfileName},
    queue::{Queue, Requeue},
};

/// How long work in progress may take when the controller stops.
pub const SHUTDOWN_GRACE: Duration = Duration::from_secs(10);
/// How long after a panic the work is retried.
const AFTER_PANIC: Duration = Duration::from_secs(10);

/// The work of a lane on a key.
type Work<K> = Box<dyn Fn(Arc<Context>, K) -> BoxFuture<'static, Requeue> + Send + Sync>;

/// The key of a lane: it names what the lane processes, also in logs and traces.
pub trait LaneKey: Clone + Ord + Send + Sync + 'static {
    /// The span of one turn.
    fn span(&self, lane: &'static str) -> tracing::Span;

    /// Logs that the work on a key panicked.
    fn log_panic(key: Option<&Self>, lane: &'static str, error: &JoinError);
}

impl LaneKey for ProfileName {
    fn span(&self, lane: &'static str) -> tracing::Span {
        tracing::debug_span!("lane", lane, profile = self.as_str(), otel.name = format!("lane {lane}"))
    }

    fn log_panic(key: Option<&Self>, lane: &'static str, error: &JoinError) {
        tracing::error!(lane, profile = key.map(Self::as_str), %error, "processing a profile panicked; will retry");
    }
}

impl LaneKey for NamespaceName {
    fn span(&self, lane: &'static str) -> tracing::Span {
        tracing::debug_span!("lane", lane, namespace = self.as_str(), otel.name = format!("lane {lane}"))
    }

    fn log_panic(key: Option<&Self>, lane: &'static str, error: &JoinError) {
        tracing::error!(lane, namespace = key.map(Self::as_str), %error, "processing a namespace panicked; will retry");
    }
}

pub struct Lane<K> {
    cx: Arc<Context>,
    name: &'static str,
    queue: Arc<Queue<K>>,
    work: Work<K>,
    heartbeat: Arc<Heartbeat>,
    running: BTreeMap<Id, K>,
    /// The keys in `running`.
    busy: BTreeSet<K>,
    turns: JoinSet<Requeue>,
}

impl<K: LaneKey> Lane<K> {
    /// Starts a lane. It ends when the controller must stop; a lane that ends earlier ends the controller.
    pub fn start(
        cx: &Arc<Context>,
        name: &'static str,
        queue: &Arc<Queue<K>>,
        heartbeat: &Arc<Heartbeat>,
        work: impl Fn(Arc<Context>, K) -> BoxFuture<'static, Requeue> + Send + Sync + 'static,
    ) {
        let lane = Self {
            cx: Arc::clone(cx),
            name,
            queue: Arc::clone(queue),
            work: Box::new(work),
            heartbeat: Arc::clone(heartbeat),
            running: BTreeMap::new(),
            busy: BTreeSet::new(),
            turns: JoinSet::new(),
        };
        cx.supervisor.spawn(format!("lane {name}"), lane.run());
    }

    async fn run(mut self) {
        while !self.cx.stop.is_cancelled() {
            self.heartbeat.beat();
            // Until all lists are read, an object that seems to be missing may only be unknown.
            let works = self.cx.store.synced() && self.cx.leadership.leads();
            let pause = Duration::from_millis(if works { 5000 } else { 50 });
            tokio::select! {
                () = self.cx.stop.cancelled() => {}
                Some(ended) = self.turns.join_next_with_id() => self.ended(ended),
                key = self.queue.next(&self.busy), if works => self.begin(key),
                () = tokio::time::sleep(pause) => {}
            }
        }
        let turns = async { while self.turns.join_next().await.is_some() {} };
        if tokio::time::timeout(SHUTDOWN_GRACE, turns).await.is_err() {
            tracing::warn!(lane = self.name, "some requests did not finish in time");
        }
    }

    fn begin(&mut self, key: K) {
        let span = key.span(self.name);
        // Spans that the work begins with are in this one, too.
        let work = span.in_scope(|| (self.work)(Arc::clone(&self.cx), key.clone()));
        let handle = self.turns.spawn(work.instrument(span));
        self.busy.insert(key.clone());
        self.running.insert(handle.id(), key);
    }

    fn ended(&mut self, ended: Result<(Id, Requeue), JoinError>) {
        match ended {
            Ok((id, next)) => {
                let Some(key) = self.running.remove(&id) else { return };
                self.busy.remove(&key);
                if let Requeue::After(after) = next {
                    self.queue.schedule(key, after);
                }
            }
            // A panic for one key must not stop the others.
            Err(error) => {
                let key = self.running.remove(&error.id());
                K::log_panic(key.as_ref(), self.name, &error);
                if let Some(key) = key {
                    self.busy.remove(&key);
                    self.queue.schedule(key, AFTER_PANIC);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_of_lanes_name_profiles_and_namespaces_by_their_kind() {
        let (profile, namespace) = (ProfileName::new("tools").span("a"), NamespaceName::new("tools").span("a"));
        assert!(profile.has_field("profile") && !profile.has_field("namespace"));
        assert!(namespace.has_field("namespace") && !namespace.has_field("profile"));
    }
}
