//! The questions and answers about each profile: one state machine for all.
//!
//! A reconcile never waits. It takes the remembered answer. If there is none, or it is old, a task beside the reconcile
//! asks the question, turn by turn ([`super::queue`]). A new answer triggers a reconcile.

use std::{
    collections::BTreeMap,
    panic::AssertUnwindSafe,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::FutureExt as _;
use palisade_runtime::Supervisor;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::queue::{ProbeLease, ProbeQueue};
use crate::object_name::ProfileName;
use crate::queue::ProfileQueue;

/// The pause between two turns of a question, and how far it grows.
const LEASE_BACKOFF: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(1));

/// A question about one profile.
pub trait Question: Send + Sync + 'static {
    type Answer: Clone + PartialEq + Send + 'static;

    fn profile(&self) -> &str;

    /// Asks in one turn, and as often as fits into it.
    fn ask(&self, turn: &ProbeLease) -> impl Future<Output = Self::Answer> + Send;

    /// True if the answer is the desired one, so that asking can end.
    fn is_right(&self, answer: &Self::Answer) -> bool;

    /// The answer that nothing was found out, and why.
    fn failed(&self, why: String) -> Self::Answer;

    /// The answer is final.
    fn concluded(&self, answer: &Self::Answer);
}

/// The subject of a question. An answer counts only for the same key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Key {
    /// The generation, and the objects in the cluster.
    pub objects: String,
    /// The state of the API servers. After it changes, the answer holds until the next one.
    pub servers: u64,
}

/// How long and how often a question is asked.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// How long to wait for the right answer.
    pub patience: Duration,
    /// How often to ask again after that.
    pub interval: Duration,
    /// The longest time until it asks again after a wrong answer.
    pub retry: Duration,
}

/// Shared resources of all questions.
#[derive(Debug)]
pub struct Common {
    /// The turns in the probe namespace.
    pub turns: Arc<ProbeQueue>,
    /// Where reconciles are triggered.
    pub queue: Arc<ProfileQueue>,
    /// Where questions run.
    pub supervisor: Supervisor,
}

/// The answers to one kind of question, by profile.
#[derive(Debug)]
pub struct ProbeResults<A> {
    common: Arc<Common>,
    pace: Pace,
    records: Mutex<BTreeMap<String, Record<A>>>,
}

#[derive(Debug)]
struct Record<A> {
    key: Key,
    answer: Option<A>,
    /// When to ask again.
    due: Instant,
    failures: u32,
    /// Ends the question that is being asked.
    running: Option<CancellationToken>,
}

impl<A: Clone + PartialEq + Send + 'static> ProbeResults<A> {
    /// No question was asked yet.
    pub fn new(common: Arc<Common>, pace: Pace) -> Self {
        Self { common, pace, records: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Record<A>>> {
        self.records.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The answer about `key`, and the time of the next consultation; `None` if a reconciliation will be triggered.
    /// Asks if there is no answer, or an old one.
    pub fn consult<Q>(self: &Arc<Self>, key: Key, question: Q) -> (Option<A>, Option<Duration>)
    where
        Q: Question<Answer = A>,
    {
        let now = Instant::now();
        let mut records = self.lock();
        let record = records.entry(question.profile().to_owned()).or_insert_with(|| Record {
            key: key.clone(),
            answer: None,
            due: now,
            failures: 0,
            running: None,
        });
        if record.key.objects != key.objects {
            // The key of this answer no longer exists.
            (record.answer, record.failures, record.due) = (None, 0, now);
            if let Some(running) = record.running.take() {
                running.cancel();
            }
        }
        let known = record.answer.clone();
        if record.running.is_some() {
            return (known, None);
        }
        // Do not wait again for a wrong answer that stays wrong: one turn is enough.
        let anew = record.key != key || record.failures == 0;
        if known.is_some() && record.key == key && record.due > now {
            return (known, Some(record.due.duration_since(now)));
        }
        record.key = key.clone();
        let stop = self.common.supervisor.stop().child_token();
        record.running = Some(stop.clone());
        let patience = if anew { self.pace.patience } else { Duration::ZERO };
        let answers = Arc::clone(self);
        self.common.supervisor.spawn_job("probe", async move {
            let asking = AssertUnwindSafe(ask(&answers.common.turns, &question, patience)).catch_unwind();
            let Some(asked) = stop.run_until_cancelled(asking).await else { return };
            let answer = asked.unwrap_or_else(|_| {
                tracing::error!(profile = question.profile(), "a probe panicked");
                question.failed("the probe panicked, which is a bug in the controller; see its log".to_owned())
            });
            question.concluded(&answer);
            answers.conclude(&key, &question, answer);
        });
        (known, None)
    }

    fn conclude<Q: Question<Answer = A>>(&self, key: &Key, question: &Q, answer: A) {
        let profile = question.profile();
        let mut records = self.lock();
        let Some(record) = records.get_mut(profile).filter(|record| record.key == *key) else { return };
        record.failures = if question.is_right(&answer) { 0 } else { record.failures.saturating_add(1) };
        let after = match record.failures {
            0 => self.pace.interval,
            failures => palisade_runtime::delay(failures.saturating_add(2), self.pace.retry).min(self.pace.interval),
        };
        let changed = record.answer.as_ref() != Some(&answer);
        (record.answer, record.due, record.running) = (Some(answer), Instant::now() + after, None);
        drop(records);
        if changed {
            self.common.queue.trigger([ProfileName::new(profile)]);
        } else {
            self.common.queue.schedule(ProfileName::new(profile), after);
        }
    }

    /// The profile is gone.
    pub fn forget(&self, profile: &str) {
        let record = self.lock().remove(profile);
        if let Some(running) = record.and_then(|record| record.running) {
            running.cancel();
        }
    }
}

/// Asks until the answer is right or time is up, turn by turn.
async fn ask<Q: Question>(turns: &Arc<ProbeQueue>, question: &Q, patience: Duration) -> Q::Answer {
    let deadline = Instant::now() + patience;
    let (mut held, mut pause) = (Duration::ZERO, LEASE_BACKOFF.0);
    loop {
        // A question that got no turn before time was up gets one more.
        let last = Instant::now() >= deadline;
        let turn = turns.next(held).await;
        let answer = question.ask(&turn).await;
        held += turn.elapsed();
        tracing::debug!(profile = question.profile(), took = ?turn.elapsed(), "probe turn");
        drop(turn);
        if last || question.is_right(&answer) {
            return answer;
        }
        tokio::time::sleep(pause.min(deadline.saturating_duration_since(Instant::now()))).await;
        pause = pause.mul_f64(1.5).min(LEASE_BACKOFF.1);
    }
}
