//! The connections of a port, of which there may be so many.
//!
//! When all seats are taken, the connection that is idle longest gives up its seat. One that never had a request goes
//! before one that had: so many silent connections displace each other, and not those that API servers keep open for
//! their next request. Whoever is displaced and had requests is told so (`Connection: close`, GOAWAY) and gets a
//! second; a request that crosses with that is still answered. For these goodbyes there are a quarter more seats.
//!
//! Nobody is displaced within [`YOUNG`]: else, while all others are busy, each new connection would displace the one
//! before it, in the middle of its handshake.

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

/// The seats of a port.
#[derive(Debug)]
pub struct Seats {
    most: usize,
    taken: Mutex<Taken>,
    /// One may have become free or idle.
    changed: Notify,
    /// Those who say goodbye included.
    all: Arc<Semaphore>,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct Taken {
    next: u64,
    seats: BTreeMap<u64, Arc<Occupant>>,
    leaving: usize,
}

/// Whether there is room for a new connection.
enum Room {
    Made,
    /// Then somebody is idle for long enough.
    When(Instant),
    /// All are busy.
    No,
}

/// Who sits there.
#[derive(Debug)]
struct Occupant {
    state: Mutex<State>,
    leave: CancellationToken,
    displaced: AtomicBool,
    at_once: AtomicBool,
}

/// What a connection does.
#[derive(Debug)]
pub struct State {
    /// Since when it has done nothing: since it is there, or since the last request.
    pub idle_since: Instant,
    /// When the first byte of a request came whose head is not complete.
    pub head_since: Option<Instant>,
    /// Requests under way, and since when.
    pub requests: BTreeMap<u64, Instant>,
    /// How many requests there were.
    pub begun: u64,
    /// How many bytes came.
    pub received: u64,
}

impl Seats {
    /// So many.
    pub fn new(most: usize, gauge: Gauge) -> Self {
        let most = most.max(1);
        let all = Arc::new(Semaphore::new(most + spare(most)));
        Self { most, taken: Mutex::default(), changed: Notify::new(), all, gauge }
    }

    /// Takes a seat: a free one, or that of who is idle longest. While all are busy, it waits. The seat is told to
    /// leave when `stop` is cancelled.
    pub async fn take(self: &Arc<Self>, stop: &CancellationToken) -> Seat {
        loop {
            match self.make_room() {
                Room::Made => break,
                Room::When(then) => drop(timeout_at(then, self.changed.notified()).await),
                Room::No => self.changed.notified().await,
            }
        }
        // Whoever was displaced leaves within a second.
        let permit = Arc::clone(&self.all).acquire_owned().await.ok();
        let occupant = Arc::new(Occupant {
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
        taken.seats.insert(id, Arc::clone(&occupant));
        self.gauge.inc();
        Seat { seats: Arc::clone(self), id, occupant, _permit: permit }
    }

    /// Whether there is no seat for a new connection.
    pub fn are_all_busy(&self) -> bool {
        let taken = self.lock();
        taken.seats.len() >= self.most && taken.seats.values().all(|seat| seat.is_busy())
    }

    fn make_room(&self) -> Room {
        let mut taken = self.lock();
        if taken.seats.len() < self.most {
            return Room::Made;
        }
        let idle = taken.seats.iter().filter_map(|(id, seat)| Some((seat.rank()?, *id))).min();
        let Some(((_, since), id)) = idle else { return Room::No };
        // Also if somebody else is idle for longer: that one had requests.
        if since + YOUNG > Instant::now() {
            return Room::When(since + YOUNG);
        }
        let Some(seat) = taken.seats.remove(&id) else { return Room::No };
        taken.leaving += 1;
        // Not too many say goodbye at a time: there must be a seat for the new one now.
        let at_once = !seat.was_used() || taken.leaving > spare(self.most) / 2;
        seat.at_once.store(at_once, Ordering::Relaxed);
        seat.displaced.store(true, Ordering::Relaxed);
        seat.leave.cancel();
        Room::Made
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Seats for those who say goodbye.
fn spare(most: usize) -> usize {
    (most / 4).max(2)
}

impl Occupant {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_busy(&self) -> bool {
        !self.lock().requests.is_empty()
    }

    fn was_used(&self) -> bool {
        self.lock().begun > 0
    }

    /// Who leaves first has the least, and who is busy has none.
    fn rank(&self) -> Option<(bool, Instant)> {
        let state = self.lock();
        state.requests.is_empty().then_some((state.begun > 0, state.idle_since))
    }
}

/// A connection's seat, until this is dropped.
#[derive(Debug)]
pub struct Seat {
    seats: Arc<Seats>,
    id: u64,
    occupant: Arc<Occupant>,
    _permit: Option<OwnedSemaphorePermit>,
}

impl Seat {
    /// Cancelled when this connection is to end.
    pub fn leave(&self) -> &CancellationToken {
        &self.occupant.leave
    }

    /// Whether it is to end because of another one.
    pub fn is_displaced(&self) -> bool {
        self.occupant.displaced.load(Ordering::Relaxed)
    }

    /// Whether it is to end without a goodbye.
    pub fn is_to_end_at_once(&self) -> bool {
        self.occupant.at_once.load(Ordering::Relaxed)
    }

    /// What the connection does.
    pub fn state(&self) -> MutexGuard<'_, State> {
        self.occupant.lock()
    }

    /// What notes what the connection does.
    pub fn notes(&self) -> Notes {
        Notes { seats: Arc::clone(&self.seats), occupant: Arc::clone(&self.occupant) }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.seats.lock();
        if taken.seats.remove(&self.id).is_none() {
            taken.leaving -= 1;
        }
        self.seats.gauge.dec();
        self.seats.changed.notify_one();
    }
}

/// Notes what a connection does.
#[derive(Clone, Debug)]
pub struct Notes {
    seats: Arc<Seats>,
    occupant: Arc<Occupant>,
}

impl Notes {
    /// Some bytes came.
    pub fn received(&self, bytes: usize) {
        let mut state = self.occupant.lock();
        state.received = state.received.saturating_add(bytes as u64);
        if state.requests.is_empty() && state.head_since.is_none() {
            state.head_since = Some(Instant::now());
        }
    }

    /// The head of a request is complete. The request is under way until what is returned is dropped.
    pub fn request(&self) -> UnderWay {
        let mut state = self.occupant.lock();
        let id = state.begun;
        state.begun += 1;
        state.head_since = None;
        state.requests.insert(id, Instant::now());
        UnderWay { notes: self.clone(), id }
    }
}

/// A request.
#[derive(Debug)]
pub struct UnderWay {
    notes: Notes,
    id: u64,
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        let mut state = self.notes.occupant.lock();
        state.requests.remove(&self.id);
        state.idle_since = Instant::now();
        if state.requests.is_empty() {
            self.notes.seats.changed.notify_one();
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::{advance, timeout};

    use super::*;

    fn seats(most: usize) -> (Arc<Seats>, CancellationToken) {
        (Arc::new(Seats::new(most, Gauge::default())), CancellationToken::new())
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_idle_longest_leaves_and_strangers_leave_first() {
        let (seats, stop) = seats(3);
        let known = seats.take(&stop).await;
        drop(known.notes().request());
        advance(Duration::from_secs(1)).await;
        let (silent, later) = (seats.take(&stop).await, {
            advance(Duration::from_secs(1)).await;
            seats.take(&stop).await
        });
        let new = seats.take(&stop).await;
        assert!(silent.is_displaced() && silent.is_to_end_at_once() && silent.leave().is_cancelled());
        assert!(!later.is_displaced() && !known.is_displaced());
        drop(silent);
        // Only used ones are left when the others have requests.
        let _busy = (later.notes().request(), new.notes().request());
        let _last = seats.take(&stop).await;
        assert!(known.is_displaced() && !known.is_to_end_at_once());
        assert!(!later.is_displaced() && !new.is_displaced());
    }

    #[tokio::test(start_paused = true)]
    async fn while_all_are_busy_a_new_one_waits() {
        let (seats, stop) = seats(1);
        let busy = seats.take(&stop).await;
        let request = busy.notes().request();
        assert!(seats.are_all_busy());
        assert!(timeout(Duration::from_mins(1), seats.take(&stop)).await.is_err());
        drop(request);
        assert!(!seats.are_all_busy());
        let new = seats.take(&stop).await;
        assert!(busy.is_displaced() && !new.is_displaced());
        drop((busy, new));
        assert_eq!(seats.gauge.get(), 0);
        assert_eq!(seats.lock().leaving, 0);
    }

    #[tokio::test(start_paused = true)]
    async fn a_new_one_has_time_for_its_handshake() {
        let (seats, stop) = seats(2);
        let busy = seats.take(&stop).await;
        let _request = busy.notes().request();
        let (new, begin) = (seats.take(&stop).await, Instant::now());
        let newer = seats.take(&stop).await;
        assert_eq!(begin.elapsed(), YOUNG);
        assert!(new.is_displaced() && !newer.is_displaced() && !busy.is_displaced());
    }

    #[tokio::test(start_paused = true)]
    async fn there_are_never_more_than_a_quarter_too_many() {
        let (seats, stop) = seats(8);
        let mut held = vec![];
        for _ in 0..10 {
            held.push(timeout(Duration::from_secs(1), seats.take(&stop)).await.expect("a seat"));
        }
        assert!(timeout(Duration::from_mins(1), seats.take(&stop)).await.is_err(), "nobody has left");
        assert_eq!(seats.gauge.get(), 10);
        held.remove(0);
        timeout(Duration::from_secs(1), seats.take(&stop)).await.expect("a seat");
    }
}
