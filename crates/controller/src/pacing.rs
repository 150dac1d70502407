//! Rounds of policy writes, for API servers that can exit while they compile a policy
//! (<https://github.com/kubernetes/kubernetes/issues/135757>).
//!
//! Before 1.36, kube-apiserver keeps the types of the variables of all policies in one map
//! (`pkg/admission/plugin/cel/composition.go` of k8s.io/apiserver). Compiling a policy with variables writes to this map
//! without a lock. Up to 1.33, cel-go plans an expression anew for each evaluation, and so each evaluation with variables
//! reads the map. A read during a write ends the process. Since 1.34 (cel-go 0.26), an expression is planned once, when it
//! is compiled, and compilations do not run concurrently.
//!
//! An API server checks once a second whether a policy or binding has changed. It compiles a policy that has a binding,
//! if it has not compiled this resource version. Therefore it compiles a written policy twice: kube-controller-manager
//! adds the result of its type check to the status. It compiles nothing for parameters, nor for a binding of a policy
//! that already has one; and dry runs do not use this map.
//!
//! Each compilation has the same risk, no matter how far apart they are. Spacing the writes of one change would only
//! prolong it. So the writes of all profiles are collected into rounds: fewer generations are written, and several writes
//! of a policy become one compilation. Probes evaluate policies, and wait until a round is over.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

/// The newest minor version with the error.
const LAST_AFFECTED_MINOR: u32 = 33;
/// How long changes are collected before a round.
const COLLECTION: Duration = Duration::from_secs(5);
/// The time between two rounds: no write waits longer.
pub const ROUND_INTERVAL: Duration = Duration::from_secs(30);
/// How long after a write API servers compile: one second for the policy, one for its status, one in reserve.
const SETTLING: Duration = Duration::from_secs(3);
/// The longest time that a probe waits for this, if other clients cause writes again and again.
const MAX_SETTLING: Duration = Duration::from_secs(10);

/// True if an API server of this minor version can exit while it compiles a policy.
pub fn is_affected(minor: u32) -> bool {
    minor <= LAST_AFFECTED_MINOR
}

/// When policies may be written and probed. If no API server is affected, at any time.
#[derive(Debug, Default)]
pub struct Pacing {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// The affected API servers, with their versions; `None` before they were asked.
    affected: Option<Vec<String>>,
    /// The rounds of profiles that wait.
    waiting: BTreeMap<String, Instant>,
    /// The last begin of a round, or the last write.
    last: Option<Instant>,
}

impl Inner {
    fn is_on(&self) -> bool {
        self.affected.as_ref().is_some_and(|affected| !affected.is_empty())
    }

    fn next_round(&self, now: Instant) -> Instant {
        let scheduled = self.waiting.values().copied().filter(|at| *at > now).min();
        scheduled.unwrap_or_else(|| {
            let collected = now + COLLECTION;
            self.last.map_or(collected, |last| collected.max(last + ROUND_INTERVAL))
        })
    }
}

/// The answer about a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permit {
    /// Write now.
    Now,
    /// Ask again after this time.
    After(Duration),
    /// The versions of the API servers are not known yet. All profiles are triggered once they are.
    Unknown,
}

impl Pacing {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// These API servers are affected. Returns whether that is new.
    pub fn set_affected(&self, affected: Vec<String>) -> bool {
        let mut inner = self.lock();
        if affected.is_empty() {
            inner.waiting.clear();
        }
        let new = inner.affected.as_ref() != Some(&affected);
        inner.affected = Some(affected);
        new
    }

    /// The affected API servers, as part of a message.
    pub fn affected(&self) -> Option<String> {
        let inner = self.lock();
        inner.affected.as_ref().filter(|affected| !affected.is_empty()).map(|affected| affected.join(", "))
    }

    /// When API servers may compile a new generation of a profile.
    pub fn permit(&self, profile: &str) -> Permit {
        let (mut inner, now) = (self.lock(), Instant::now());
        match &inner.affected {
            None => return Permit::Unknown,
            Some(affected) if affected.is_empty() => return Permit::Now,
            Some(_) => {}
        }
        let at = inner.waiting.get(profile).copied().unwrap_or_else(|| inner.next_round(now));
        if at > now {
            inner.waiting.insert(profile.to_owned(), at);
            return Permit::After(at.duration_since(now));
        }
        inner.waiting.remove(profile);
        inner.last = Some(now);
        Permit::Now
    }

    /// The profile no longer waits.
    pub fn forget(&self, profile: &str) {
        self.lock().waiting.remove(profile);
    }

    /// A policy was written, in a round or to restore it.
    pub fn wrote(&self) {
        self.lock().last = Some(Instant::now());
    }

    /// Waits until API servers have compiled the policies that were written. Returns how long that took.
    pub async fn settled(&self) -> Duration {
        let begin = Instant::now();
        loop {
            let until = {
                let inner = self.lock();
                inner.last.filter(|_| inner.is_on()).map(|last| (last + SETTLING).min(begin + MAX_SETTLING))
            };
            match until.filter(|until| *until > Instant::now()) {
                Some(until) => tokio::time::sleep_until(until).await,
                None => return begin.elapsed(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn paced() -> Pacing {
        let pacing = Pacing::default();
        assert_eq!(pacing.permit("a"), Permit::Unknown);
        pacing.set_affected(vec!["https://a (1.33)".to_owned()]);
        pacing
    }

    #[test]
    fn versions_up_to_1_33_are_affected() {
        let affected: Vec<u32> = (28..40).filter(|minor| is_affected(*minor)).collect();
        assert_eq!(affected, [28, 29, 30, 31, 32, 33]);
    }

    #[tokio::test(start_paused = true)]
    async fn unaffected_servers_cost_nothing() {
        let pacing = Pacing::default();
        pacing.set_affected(Vec::new());
        pacing.wrote();
        assert_eq!((pacing.permit("a"), pacing.settled().await), (Permit::Now, Duration::ZERO));
        assert_eq!(pacing.affected(), None);
        assert!(pacing.lock().waiting.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn changes_of_all_profiles_are_in_one_round() {
        let pacing = paced();
        assert_eq!(pacing.permit("a"), Permit::After(COLLECTION));
        tokio::time::advance(Duration::from_secs(3)).await;
        // Another edit does not prolong the wait.
        for profile in ["a", "b"] {
            assert_eq!(pacing.permit(profile), Permit::After(Duration::from_secs(2)), "{profile}");
        }
        tokio::time::advance(Duration::from_secs(2)).await;
        for profile in ["a", "b"] {
            assert_eq!(pacing.permit(profile), Permit::Now, "{profile}");
        }
        for profile in ["a", "c"] {
            assert_eq!(pacing.permit(profile), Permit::After(ROUND_INTERVAL), "{profile}");
        }
        // The change of `a` was taken back.
        pacing.forget("a");
        tokio::time::advance(ROUND_INTERVAL).await;
        assert_eq!(pacing.permit("c"), Permit::Now);
        assert_eq!(pacing.permit("a"), Permit::After(ROUND_INTERVAL));
    }

    #[tokio::test(start_paused = true)]
    async fn waiting_ends_when_the_last_affected_server_is_upgraded() {
        let pacing = paced();
        assert_eq!(pacing.permit("a"), Permit::After(COLLECTION));
        assert!(!pacing.set_affected(vec!["https://a (1.33)".to_owned()]));
        assert!(pacing.set_affected(Vec::new()));
        assert_eq!(pacing.permit("a"), Permit::Now);
    }

    #[tokio::test(start_paused = true)]
    async fn probes_wait_until_policies_are_compiled_but_not_forever() {
        let pacing = Arc::new(paced());
        assert_eq!(pacing.settled().await, Duration::ZERO);
        pacing.wrote();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(pacing.settled().await, SETTLING.saturating_sub(Duration::from_secs(1)));
        let writer = Arc::clone(&pacing);
        let writes = tokio::spawn(async move {
            loop {
                writer.wrote();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
        });
        tokio::time::sleep(Duration::from_millis(1)).await;
        assert_eq!(pacing.settled().await, MAX_SETTLING);
        writes.abort();
    }

    /// Edits, writes of repairs and edits that are taken back, at random times.
    #[tokio::test(start_paused = true)]
    async fn no_write_waits_longer_than_the_interval_and_rounds_are_an_interval_apart() {
        let mut random = 1_u64;
        let mut one_in = |n: u64| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33).is_multiple_of(n)
        };
        let (pacing, step) = (paced(), Duration::from_millis(500));
        let (mut edited, mut rounds) = (BTreeMap::<String, Instant>::new(), Vec::<Instant>::new());
        let (mut edits, mut written) = (0, 0);
        // Hours without an edit in most seconds, and hours with several edits each second.
        for rarity in [400, 40, 4, 1].into_iter().flat_map(|rarity| [rarity; 2000]) {
            tokio::time::advance(step).await;
            let now = Instant::now();
            // Reconciles run when they are due, and after each edit.
            let mut asking: Vec<_> = edited.keys().cloned().collect();
            for profile in ["a", "b", "c"].map(str::to_owned) {
                if one_in(rarity) {
                    edits += 1;
                    asking.push(profile);
                } else if one_in(1000) {
                    pacing.forget(&profile);
                    edited.remove(&profile);
                    asking.retain(|asking| *asking != profile);
                }
            }
            for profile in asking {
                let since = *edited.entry(profile.clone()).or_insert(now);
                match pacing.permit(&profile) {
                    Permit::Unknown => panic!("the servers are known"),
                    Permit::After(wait) => assert!(!wait.is_zero() && now + wait <= since + ROUND_INTERVAL),
                    Permit::Now => {
                        edited.remove(&profile);
                        written += 1;
                        if rounds.last() != Some(&now) {
                            rounds.push(now);
                        }
                    }
                }
            }
            if one_in(500) {
                pacing.wrote();
            }
        }
        assert!(rounds.is_sorted_by(|one, next| *next - *one >= ROUND_INTERVAL), "{rounds:?}");
        assert!(rounds.len() > 80 && written * 10 < edits, "{} rounds, {written} of {edits} written", rounds.len());
    }
}
