//! The memory that bodies may take up, all together.
//!
//! A body pays for its bytes as they come. When there are none left, the body that is unfinished for longest is given
//! up: an API server sends a whole body within milliseconds, so what is unfinished for longest is the least likely to
//! be one of its. A body that is complete is never given up; it is answered at once.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// There is no memory, and no other body to give up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// What bodies may take up.
#[derive(Debug)]
pub struct Budget {
    total: usize,
    bodies: Mutex<Bodies>,
    freed: Notify,
    gauge: Gauge,
}

#[derive(Debug, Default)]
struct Bodies {
    used: usize,
    /// Of `used`, what is about to be free.
    leaving: usize,
    begun: u64,
    /// By the order in which they began.
    unfinished: BTreeMap<u64, Unfinished>,
}

#[derive(Debug)]
struct Unfinished {
    bytes: usize,
    given_up: CancellationToken,
}

enum Taken {
    Yes,
    WhenFreed,
    No,
}

impl Budget {
    /// Of so many bytes.
    pub fn new(total: usize, gauge: Gauge) -> Self {
        Self { total, bodies: Mutex::default(), freed: Notify::new(), gauge }
    }

    /// For one body.
    pub fn share(self: &Arc<Self>) -> Share {
        let given_up = CancellationToken::new();
        let mut bodies = self.lock();
        let id = bodies.begun;
        bodies.begun += 1;
        bodies.unfinished.insert(id, Unfinished { bytes: 0, given_up: given_up.clone() });
        Share { budget: Arc::clone(self), id, bytes: 0, given_up }
    }

    fn lock(&self) -> MutexGuard<'_, Bodies> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Bodies {
    fn take(&mut self, id: u64, bytes: usize, total: usize) -> Taken {
        if !self.unfinished.contains_key(&id) {
            return Taken::No;
        }
        while self.used - self.leaving + bytes > total {
            let oldest = self.unfinished.iter().find(|(_, body)| body.bytes > 0).map(|(oldest, _)| *oldest);
            let Some(given_up) =
                oldest.filter(|oldest| *oldest < id).and_then(|oldest| self.unfinished.remove(&oldest))
            else {
                return Taken::No;
            };
            self.leaving += given_up.bytes;
            given_up.given_up.cancel();
        }
        if self.used + bytes > total {
            return Taken::WhenFreed;
        }
        self.used += bytes;
        if let Some(own) = self.unfinished.get_mut(&id) {
            own.bytes += bytes;
        }
        Taken::Yes
    }
}

/// What one body takes up, until this is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    id: u64,
    bytes: usize,
    given_up: CancellationToken,
}

impl Share {
    /// Takes more. If there is no more, bodies that are unfinished for longer are given up.
    pub(super) async fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        loop {
            // Before it is asked, so that nothing that is freed meanwhile is missed.
            let mut freed = pin!(self.budget.freed.notified());
            freed.as_mut().enable();
            match self.budget.lock().take(self.id, bytes, self.budget.total) {
                Taken::Yes => break,
                Taken::WhenFreed => {}
                Taken::No => return Err(Exhausted),
            }
            freed.await;
        }
        self.bytes += bytes;
        self.budget.gauge.inc_by(i64::try_from(bytes).unwrap_or(i64::MAX));
        Ok(())
    }

    /// Cancelled when this body is given up for another one.
    pub(super) fn given_up(&self) -> CancellationToken {
        self.given_up.clone()
    }

    /// The body is complete: it is not given up any more.
    pub(super) fn finish(&mut self) {
        self.budget.lock().unfinished.remove(&self.id);
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        {
            let mut bodies = self.budget.lock();
            bodies.used -= self.bytes;
            bodies.unfinished.remove(&self.id);
            if self.given_up.is_cancelled() {
                bodies.leaving = bodies.leaving.saturating_sub(self.bytes);
            }
        }
        self.budget.gauge.dec_by(i64::try_from(self.bytes).unwrap_or(i64::MAX));
        self.budget.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(total: usize) -> Arc<Budget> {
        Arc::new(Budget::new(total, Gauge::default()))
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_unfinished_body_is_given_up_for_a_new_one() {
        let budget = budget(10);
        let (mut first, mut second, mut third) = (budget.share(), budget.share(), budget.share());
        first.grow(4).await.unwrap();
        second.grow(6).await.unwrap();
        let (of_first, of_second) = (first.given_up(), second.given_up());
        let waits = tokio::spawn(async move {
            third.grow(3).await.unwrap();
            third
        });
        of_first.cancelled().await;
        assert!(!of_second.is_cancelled(), "no more than is needed");
        assert_eq!(budget.lock().used, 10, "the first one is still there");
        drop(first);
        let third = waits.await.unwrap();
        let (used, leaving) = {
            let bodies = budget.lock();
            (bodies.used, bodies.leaving)
        };
        assert_eq!((used, leaving), (9, 0));
        drop((second, third));
        assert_eq!((budget.lock().used, budget.gauge.get()), (0, 0));
    }

    #[tokio::test(start_paused = true)]
    async fn complete_bodies_stay_and_the_oldest_refuses_itself() {
        let budget = budget(10);
        let (mut complete, mut oldest, mut newer) = (budget.share(), budget.share(), budget.share());
        complete.grow(8).await.unwrap();
        complete.finish();
        newer.grow(2).await.unwrap();
        assert_eq!(oldest.grow(1).await, Err(Exhausted));
        assert!(!newer.given_up().is_cancelled() && !complete.given_up().is_cancelled());
        drop(oldest);
        assert_eq!(newer.grow(1).await, Err(Exhausted));
        drop(complete);
        newer.grow(8).await.unwrap();
    }
}
