//! Turns of questions: the labels of the probe namespace are one profile's at a time.
//!
//! A question holds the namespace for a short turn, and then waits for the next one, and the longer it has held the
//! namespace, the longer it waits: after holding it for a second, it lets those go first that come in the next five. So
//! a question that never gets the right answer, or whose answers take long, does not delay a new one by its own length;
//! and it is not starved.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::oneshot, time::Instant};

/// In this time every waiting question gets a turn, if answers come quickly.
const ROUND_DURATION: Duration = Duration::from_secs(1);
/// The shortest turn: the API server must have time to see the labels.
const MIN_LEASE: Duration = Duration::from_millis(50);
/// The time for which a question has held the namespace counts this many times.
const HELD_TIME_WEIGHT: u32 = 5;
/// The longest turn if no other question waits.
const MAX_LEASE: Duration = Duration::from_millis(500);

/// Gives turns.
#[derive(Debug, Default)]
pub struct ProbeQueue {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    busy: bool,
    arrivals: u64,
    /// In the order of arrival, but later the longer they have held the namespace.
    waiting: BTreeMap<(Instant, u64), oneshot::Sender<ProbeLease>>,
}

/// The namespace is the holder's until this is dropped.
#[derive(Debug)]
pub struct ProbeLease {
    /// `None` once it was passed on.
    turns: Option<Arc<ProbeQueue>>,
    since: Instant,
}

impl ProbeQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a turn; `held` is how long the earlier turns of this question were. Can be cancelled.
    pub async fn next(self: &Arc<Self>, held: Duration) -> ProbeLease {
        loop {
            let receiver = {
                let mut state = self.lock();
                if !state.busy {
                    state.busy = true;
                    return ProbeLease::of(self);
                }
                let (sender, receiver) = oneshot::channel();
                state.arrivals += 1;
                let place = (Instant::now() + held.saturating_mul(HELD_TIME_WEIGHT), state.arrivals);
                state.waiting.insert(place, sender);
                receiver
            };
            if let Ok(mut turn) = receiver.await {
                turn.since = Instant::now();
                return turn;
            }
        }
    }

    fn pass_on(self: Arc<Self>) {
        let mut state = self.lock();
        while let Some((_, sender)) = state.waiting.pop_first() {
            // A receiver that no longer waits gives the turn back, and must not pass it on twice.
            match sender.send(ProbeLease::of(&self)) {
                Ok(()) => return,
                Err(mut turn) => turn.turns = None,
            }
        }
        state.busy = false;
    }

    fn waiting(&self) -> u32 {
        let waiting = self.lock().waiting.values().filter(|sender| !sender.is_closed()).count();
        u32::try_from(waiting).unwrap_or(u32::MAX)
    }
}

impl ProbeLease {
    fn of(turns: &Arc<ProbeQueue>) -> Self {
        Self { turns: Some(Arc::clone(turns)), since: Instant::now() }
    }

    /// How long it has lasted.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// True if the holder should stop asking: the more questions wait, the sooner.
    pub fn is_over(&self) -> bool {
        let waiting = self.turns.as_ref().map_or(0, |turns| turns.waiting());
        self.elapsed() >= (ROUND_DURATION / waiting.saturating_add(1)).clamp(MIN_LEASE, MAX_LEASE)
    }
}

impl Drop for ProbeLease {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            turns.pass_on();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn shortest_turn_goes_first() {
        let turns = Arc::new(ProbeQueue::default());
        let first = turns.next(Duration::ZERO).await;
        let order = Arc::new(Mutex::new(Vec::new()));
        let mut tasks = Vec::new();
        for (name, held) in [("long", 5), ("short", 1), ("new", 0), ("new, too", 0)] {
            let (turns, order) = (Arc::clone(&turns), Arc::clone(&order));
            tasks.push(tokio::spawn(async move {
                let turn = turns.next(Duration::from_secs(held)).await;
                order.lock().unwrap().push(name);
                tokio::time::sleep(Duration::from_millis(10)).await;
                drop(turn);
            }));
            tokio::task::yield_now().await;
        }
        drop(first);
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["new", "new, too", "short", "long"]);
        assert!(turns.next(Duration::ZERO).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn long_turn_is_not_starved_by_short_ones() {
        let turns = Arc::new(ProbeQueue::default());
        let first = turns.next(Duration::ZERO).await;
        let mut long = Box::pin(turns.next(Duration::from_secs(1)));
        assert!(long.as_mut().now_or_never().is_none());
        // Others come again and again, sooner than they can all be served.
        let hold = async {
            let mut turn = first;
            for _ in 0..100 {
                let mut next = Box::pin(turns.next(Duration::ZERO));
                assert!(next.as_mut().now_or_never().is_none());
                tokio::time::sleep(Duration::from_millis(100)).await;
                drop(turn);
                turn = next.await;
            }
        };
        tokio::select! {
            () = hold => panic!("it had no turn while others had a hundred"),
            turn = tokio::time::timeout(Duration::from_secs(6), long) => drop(turn.unwrap()),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn cancelled_wait_does_not_block_others() {
        let turns = Arc::new(ProbeQueue::default());
        let first = turns.next(Duration::ZERO).await;
        // One gives up while it waits, one when it was its turn and it had not yet noticed.
        let mut gave_up = Box::pin(turns.next(Duration::ZERO));
        assert!(gave_up.as_mut().now_or_never().is_none());
        drop(gave_up);
        let mut late = Box::pin(turns.next(Duration::ZERO));
        assert!(late.as_mut().now_or_never().is_none());
        drop(first);
        assert!(turns.next(Duration::ZERO).now_or_never().is_none());
        drop(late);
        assert!(turns.next(Duration::ZERO).now_or_never().is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn turn_gets_shorter_while_more_probes_wait() {
        let turns = Arc::new(ProbeQueue::default());
        let turn = turns.next(Duration::ZERO).await;
        tokio::time::advance(MAX_LEASE.saturating_sub(Duration::from_millis(1))).await;
        assert!(!turn.is_over());
        let mut waiting: Vec<_> = (0..25).map(|_| Box::pin(turns.next(Duration::ZERO))).collect();
        for one in &mut waiting {
            assert!(one.as_mut().now_or_never().is_none());
        }
        assert!(turn.is_over());
        drop(waiting);
        assert!(!turn.is_over());
    }
}
