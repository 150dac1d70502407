//! The memory limit for all request bodies.
//!
//! A body reserves its bytes as they arrive. If none are left, the server rejects the body that has been incomplete
//! longest: an API server sends a whole body within milliseconds, so that this body is the least likely to come from
//! one. The server never rejects a complete body; it answers that request immediately.

use std::{
    collections::BTreeMap,
    pin::pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// No memory is left, and no other body can be rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exhausted;

/// The memory of all bodies.
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
    /// The part of `used` that will soon be released.
    leaving: usize,
    begun: u64,
    /// The unfinished bodies, by the order in which they began.
    unfinished: BTreeMap<u64, Unfinished>,
}

#[derive(Debug)]
struct Unfinished {
    bytes: usize,
    evicted: CancellationToken,
}

enum Taken {
    Yes,
    WhenFreed,
    No,
}

impl Budget {
    /// A budget of this many bytes.
    pub fn new(total: usize, gauge: Gauge) -> Self {
        Self { total, bodies: Mutex::default(), freed: Notify::new(), gauge }
    }

    /// The share of one body.
    pub fn share(self: &Arc<Self>) -> Share {
        let evicted = CancellationToken::new();
        let mut bodies = self.lock();
        let id = bodies.begun;
        bodies.begun += 1;
        bodies.unfinished.insert(id, Unfinished { bytes: 0, evicted: evicted.clone() });
        Share { budget: Arc::clone(self), id, bytes: 0, evicted }
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
            let Some(evicted) = oldest.filter(|oldest| *oldest < id).and_then(|oldest| self.unfinished.remove(&oldest))
            else {
                return Taken::No;
            };
            self.leaving += evicted.bytes;
            evicted.evicted.cancel();
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

/// The memory of one body, until it is dropped.
#[derive(Debug)]
pub struct Share {
    budget: Arc<Budget>,
    id: u64,
    bytes: usize,
    evicted: CancellationToken,
}

impl Share {
    /// Reserves more. If none is left, the server rejects bodies that have been unfinished for longer.
    pub(super) async fn grow(&mut self, bytes: usize) -> Result<(), Exhausted> {
        loop {
            // Registered before the check of the budget, so that it misses nothing that is freed meanwhile.
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

    /// Cancelled when the server rejects this body in favour of another one.
    pub(super) fn evicted(&self) -> CancellationToken {
        self.evicted.clone()
    }

    /// The body is complete. The server can no longer reject it.
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
            if self.evicted.is_cancelled() {
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
    async fn oldest_unfinished_body_is_evicted_for_a_new_one() {
        let budget = budget(10);
        let (mut first, mut second, mut third) = (budget.share(), budget.share(), budget.share());
        first.grow(4).await.unwrap();
        second.grow(6).await.unwrap();
        let (of_first, of_second) = (first.evicted(), second.evicted());
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
    async fn oldest_unfinished_body_is_rejected_and_complete_ones_kept() {
        let budget = budget(10);
        let (mut complete, mut oldest, mut newer) = (budget.share(), budget.share(), budget.share());
        complete.grow(8).await.unwrap();
        complete.finish();
        newer.grow(2).await.unwrap();
        assert_eq!(oldest.grow(1).await, Err(Exhausted));
        assert!(!newer.evicted().is_cancelled() && !complete.evicted().is_cancelled());
        drop(oldest);
        assert_eq!(newer.grow(1).await, Err(Exhausted));
        drop(complete);
        newer.grow(8).await.unwrap();
    }
}
