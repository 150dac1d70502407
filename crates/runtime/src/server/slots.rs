//! The connections of a server: a limited number of slots.
//!
//! If all slots are taken, the connection that has been idle longest is closed. Connections that never had a request
//! are closed before those that had: many silent connections replace each other, and not those that API servers keep
//! open for their next request. The server notifies a connection that had requests (`Connection: close`, GOAWAY) and
//! gives it a second; a request that arrives during this time is still answered. A quarter more slots are reserved for
//! these.
//!
//! No connection is closed within [`YOUNG`]: otherwise, while all others are busy, each new connection would replace
//! the one before it, in the middle of its handshake.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use prometheus_client::metrics::gauge::Gauge;
use tokio::{
    sync::{Notify, OwnedSemaphorePermit, Semaphore},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

/// How long a connection must be idle before it may be displaced.
const YOUNG: Duration = Duration::from_millis(250);

/// The slots of a server.
#[derive(Debug)]
pub struct Slots {
    most: usize,
    taken: Mutex<Taken>,
    /// Notified when a slot may have become free or idle.
    changed: Notify,
    /// All slots, including those of connections that are being closed.
    all: Arc<Semaphore>,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    slots: BTreeMap<u64, Arc<Connection>>,
    leaving: usize,
}

/// Whether there is capacity for a new connection.
enum Capacity {
    Available,
    /// At this time a connection will have been idle for long enough.
    AvailableAt(Instant),
    /// All are busy.
    Exhausted,
}

/// The connection in a slot.
#[derive(Debug)]
struct Connection {
    state: Mutex<State>,
    leave: CancellationToken,
    displaced: AtomicBool,
    at_once: AtomicBool,
}

/// The activity of a connection.
#[derive(Debug)]
pub struct State {
    /// Since when it has been idle: since it was accepted, or since the last request ended.
    pub idle_since: Instant,
    /// When the first byte arrived of a request whose head is not complete.
    pub head_since: Option<Instant>,
    /// Requests in progress, and since when.
    pub requests: BTreeMap<u64, Instant>,
    /// How many requests there were.
    pub begun: u64,
    /// How many bytes were received.
    pub received: u64,
}

impl Slots {
    /// Slots for at most this many connections.
    pub fn new(most: usize, gauge: Gauge) -> Self {
        let most = most.max(1);
        let all = Arc::new(Semaphore::new(most + spare(most)));
        Self { most, taken: Mutex::default(), changed: Notify::new(), all, gauge }
    }

    /// Takes a slot: a free one, or that of the connection that has been idle longest. While all are busy, it waits. The
    /// connection is closed when `stop` is cancelled.
    pub async fn take(self: &Arc<Self>, stop: &CancellationToken) -> Slot {
        loop {
            match self.make_room() {
                Capacity::Available => break,
                Capacity::AvailableAt(then) => drop(timeout_at(then, self.changed.notified()).await),
                Capacity::Exhausted => self.changed.notified().await,
            }
        }
        // A displaced connection is closed within a second.
        let permit = Arc::clone(&self.all).acquire_owned().await.ok();
        let connection = Arc::new(Connection {
            state: Mutex::new(State {
                idle_since: Instant::now(),
                head_since: None,
                requests: BTreeMap::new(),
                begun: 0,
                received: 0,
            }),
            leave: stop.child_token(),
            displaced: AtomicBool::new(false),
            at_once: AtomicBool::new(false),
        });
        let mut taken = self.lock();
        let id = taken.next;
        taken.next += 1;
        taken.slots.insert(id, Arc::clone(&connection));
        self.gauge.inc();
        Slot { slots: Arc::clone(self), id, connection, _permit: permit }
    }

    /// True if there is no slot for a new connection.
    pub fn are_all_busy(&self) -> bool {
        let taken = self.lock();
        taken.slots.len() >= self.most && taken.slots.values().all(|slot| slot.is_busy())
    }

    fn make_room(&self) -> Capacity {
        let mut taken = self.lock();
        if taken.slots.len() < self.most {
            return Capacity::Available;
        }
        let idle = taken.slots.iter().filter_map(|(id, slot)| Some((slot.rank()?, *id))).min();
        let Some(((_, since), id)) = idle else { return Capacity::Exhausted };
        // Even if another one has been idle for longer, because that one had requests.
        if since + YOUNG > Instant::now() {
            return Capacity::AvailableAt(since + YOUNG);
        }
        let Some(slot) = taken.slots.remove(&id) else { return Capacity::Exhausted };
        taken.leaving += 1;
        // Not too many are being closed at a time: there must be a slot for the new one now.
        let at_once = !slot.was_used() || taken.leaving > spare(self.most) / 2;
        slot.at_once.store(at_once, Ordering::Relaxed);
        slot.displaced.store(true, Ordering::Relaxed);
        slot.leave.cancel();
        Capacity::Available
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Slots for connections that are being closed.
fn spare(most: usize) -> usize {
    (most / 4).max(2)
}

impl Connection {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_busy(&self) -> bool {
        !self.lock().requests.is_empty()
    }

    fn was_used(&self) -> bool {
        self.lock().begun > 0
    }

    /// The least is displaced first; a busy connection has none.
    fn rank(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        state.requests.is_empty().then_some((state.begun > 0, state.idle_since))
    }
}

/// A connection's slot, until this is dropped.
#[derive(Debug)]
pub struct Slot {
    slots: Arc<Slots>,
    id: u64,
    connection: Arc<Connection>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Slot {
    /// Cancelled when this connection is to end.
    pub fn leave(&self) -> &CancellationToken {
        &self.connection.leave
    }

    /// True if it is displaced by another one.
    pub fn is_displaced(&self) -> bool {
        self.connection.displaced.load(Ordering::Relaxed)
    }

    /// True if it is to be closed without notice.
    pub fn is_to_end_at_once(&self) -> bool {
        self.connection.at_once.load(Ordering::Relaxed)
    }

    /// The activity of the connection.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.connection.lock()
    }

    /// A recorder of the activity of the connection.
    pub fn activity(&self) -> Activity {
        Activity { slots: Arc::clone(&self.slots), connection: Arc::clone(&self.connection) }
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self.slots.lock();
        if taken.slots.remove(&self.id).is_none() {
            taken.leaving -= 1;
        }
        self.slots.gauge.dec();
        self.slots.changed.notify_one();
    }
}

/// A recorder of the activity of a connection.
#[derive(Clone, Debug)]
pub struct Activity {
    slots: Arc<Slots>,
    connection: Arc<Connection>,
}

impl Activity {
    /// Bytes were received.
    pub fn received(&self, bytes: usize) {
        let mut state = self.connection.lock();
        state.received = state.received.saturating_add(bytes as u64);
        if state.requests.is_empty() && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// The head of a request is complete. The request is in progress until the returned value is dropped.
    pub fn request(&self) -> UnderWay {
        let mut state = self.connection.lock();
        let id = state.begun;
        state.begun += 1;
        state.head_since = None;
        state.requests.insert(id, Instant::now());
        UnderWay { activity: self.clone(), id }
    }
}

/// A request.
#[derive(Debug)]
pub struct UnderWay {
    activity: Activity,
    id: u64,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.activity.connection.lock();
        state.requests.remove(&self.id);
        state.idle_since = Instant::now();
        if state.requests.is_empty() {
            self.activity.slots.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    fn slots(most: usize) -> (Arc<Slots>, CancellationToken) {
        (Arc::new(Slots::new(most, Gauge::default())), CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn unused_then_longest_idle_connections_are_displaced() {
        let (slots, stop) = slots(3);
        let known = slots.take(&stop).await;
        drop(known.activity().request());
        advance(Duration::from_secs(1)).await;
        let (silent, later) = (slots.take(&stop).await, {
            advance(Duration::from_secs(1)).await;
            slots.take(&stop).await
        });
        let new = slots.take(&stop).await;
        assert!(silent.is_displaced() && silent.is_to_end_at_once() && silent.leave().is_cancelled());
        assert!(!later.is_displaced() && !known.is_displaced());
        drop(silent);
        // Only used ones are left when the others have requests.
        let _busy = (later.activity().request(), new.activity().request());
        let _last = slots.take(&stop).await;
        assert!(known.is_displaced() && !known.is_to_end_at_once());
        assert!(!later.is_displaced() && !new.is_displaced());
    }

    #[tokio::test(start_paused = true)]
    async fn new_connection_waits_while_all_are_busy() {
        let (slots, stop) = slots(1);
        let busy = slots.take(&stop).await;
        let request = busy.activity().request();
        assert!(slots.are_all_busy());
        assert!(timeout(Duration::from_mins(1), slots.take(&stop)).await.is_err());
        drop(request);
        assert!(!slots.are_all_busy());
        let new = slots.take(&stop).await;
        assert!(busy.is_displaced() && !new.is_displaced());
        drop((busy, new));
        assert_eq!(slots.gauge.get(), 0);
        assert_eq!(slots.lock().leaving, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn new_connection_gets_time_for_its_handshake() {
        let (slots, stop) = slots(2);
        let busy = slots.take(&stop).await;
        let _request = busy.activity().request();
        let (new, begin) = (slots.take(&stop).await, Instant::now());
        let newer = slots.take(&stop).await;
        assert_eq!(begin.elapsed(), YOUNG);
        assert!(new.is_displaced() && !newer.is_displaced() && !busy.is_displaced());
    }

    #[tokio::test(start_paused = true)]
    async fn connections_exceed_the_limit_by_at_most_a_quarter() {
        let (slots, stop) = slots(8);
        let mut held = vec![];
        for _ in 0..10 {
            held.push(timeout(Duration::from_secs(1), slots.take(&stop)).await.expect("a slot"));
        }
        assert!(timeout(Duration::from_mins(1), slots.take(&stop)).await.is_err(), "none was closed");
        assert_eq!(slots.gauge.get(), 10);
        held.remove(0);
        timeout(Duration::from_secs(1), slots.take(&stop)).await.expect("a slot");
    }
}
