//! Queues of lanes: the keys, which are names of profiles or of namespaces, with the time of their next turn.
//!
//! This crate does not use the controller of kube-runtime, which supports one watched kind with relations and passes an
//! object reference to its reconciler. Here six kinds feed one store, a change affects the profiles that select a
//! namespace now or did before, and the state of a profile in memory belongs to its reconciler. The remaining
//! requirements are: one time for each key, the earliest wins, and never one key twice at the same time.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use crate::object_name::{NamespaceName, ProfileName};

pub type ProfileQueue = Queue<ProfileName>;
pub type NamespaceQueue = Queue<NamespaceName>;

/// The times by key.
#[derive(Debug)]
pub struct Queue<K> {
    due: Mutex<Due<K>>,
    changed: Notify,
    debounce: Duration,
}

/// The times by key, and the keys in the order of their times: thousands can be due at once.
#[derive(Debug)]
struct Due<K> {
    times: BTreeMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
}

impl<K: Clone + Ord> Queue<K> {
    /// A queue that collects changes for `debounce`.
    pub fn new(debounce: Duration) -> Self {
        Self {
            due: Mutex::new(Due { times: BTreeMap::new(), order: BTreeSet::new() }),
            changed: Notify::new(),
            debounce,
        }
    }

    /// Something about these keys has changed.
    pub fn trigger(&self, keys: impl IntoIterator<Item = K>) {
        for key in keys {
            self.schedule(key, self.debounce);
        }
    }

    /// Process the key after this time at the latest.
    pub fn schedule(&self, key: K, after: Duration) {
        let at = Instant::now() + after;
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let known = due.times.get(&key).copied();
        if known.is_none_or(|known| at < known) {
            if let Some(known) = known {
                due.order.remove(&(known, key.clone()));
            }
            due.times.insert(key.clone(), at);
            due.order.insert((at, key));
        }
        drop(due);
        self.changed.notify_one();
    }

    /// Waits for the next key that is due and not `busy`, and takes it. Can be cancelled.
    pub async fn next(&self, busy: &BTreeSet<K>) -> K {
        loop {
            match self.take(busy) {
                NextDeadline::Due(key) => return key,
                NextDeadline::At(at) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(at) => {}
                        () = self.changed.notified() => {}
                    }
                }
                NextDeadline::None => self.changed.notified().await,
            }
        }
    }

    fn take(&self, busy: &BTreeSet<K>) -> NextDeadline<K> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let earliest = due.order.iter().find(|(_, key)| !busy.contains(key)).cloned();
        match earliest {
            None => NextDeadline::None,
            Some((at, _)) if at > Instant::now() => NextDeadline::At(at),
            Some(entry) => {
                due.order.remove(&entry);
                due.times.remove(&entry.1);
                NextDeadline::Due(entry.1)
            }
        }
    }
}

enum NextDeadline<K> {
    None,
    At(Instant),
    Due(K),
}

/// The queues of all lanes. Each lane has separate times, so that none waits for another.
#[derive(Clone, Debug)]
pub struct Queues {
    /// A new generation, the status.
    pub reconcile: Arc<ProfileQueue>,
    /// Policies and bindings that were changed by another client.
    pub repairs: Arc<ProfileQueue>,
    /// Parameters in namespaces.
    pub params: Arc<ProfileQueue>,
    /// Namespaces that are taken to stricter stages.
    pub rollouts: Arc<ProfileQueue>,
    /// Exception requests: by namespace, and not by profile.
    pub exceptions: Arc<NamespaceQueue>,
    /// Objects of `spec.generate`, by namespace.
    pub objects: Arc<NamespaceQueue>,
}

impl Queues {
    /// Queues that collect changes for `debounce`; a repair does not wait for another change.
    pub fn new(debounce: Duration) -> Self {
        Self {
            reconcile: Arc::new(Queue::new(debounce)),
            repairs: Arc::new(Queue::new(Duration::ZERO)),
            params: Arc::new(Queue::new(debounce)),
            rollouts: Arc::new(Queue::new(debounce)),
            exceptions: Arc::new(Queue::new(debounce)),
            objects: Arc::new(Queue::new(debounce)),
        }
    }

    /// Something about these profiles has changed: triggers all lanes that work on profiles.
    pub fn trigger_all(&self, profiles: &BTreeSet<ProfileName>) {
        for queue in [&self.reconcile, &self.repairs, &self.params, &self.rollouts] {
            queue.trigger(profiles.iter().cloned());
        }
    }
}

/// When to work on a profile again, if nothing triggers it before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requeue {
    /// When something changes.
    Change,
    /// After this time.
    After(Duration),
}

/// The earliest of some times.
#[derive(Debug, Default)]
pub struct MinDelay(Option<Duration>);

impl MinDelay {
    /// Limits the delay to `after`, if it has a value.
    pub fn at(&mut self, after: Option<Duration>) {
        self.0 = self.0.into_iter().chain(after).min();
    }

    /// The result for the lane.
    pub fn next(&self) -> Requeue {
        self.0.map_or(Requeue::Change, Requeue::After)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn changes_are_batched_and_busy_profiles_wait() {
        let queue = ProfileQueue::new(Duration::from_millis(20));
        let start = Instant::now();
        queue.schedule(ProfileName::new("a"), Duration::from_mins(1));
        for _ in 0..200 {
            queue.trigger(["a", "b"].map(ProfileName::new));
        }
        let busy = BTreeSet::from([ProfileName::new("a")]);
        assert_eq!(queue.next(&busy).await.as_str(), "b");
        assert!(start.elapsed() < Duration::from_millis(25));
        assert!(tokio::time::timeout(Duration::from_secs(5), queue.next(&busy)).await.is_err());
        assert_eq!(queue.next(&BTreeSet::new()).await.as_str(), "a");
        assert!(tokio::time::timeout(Duration::from_mins(5), queue.next(&BTreeSet::new())).await.is_err());
    }
}
