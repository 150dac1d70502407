//! Leader election by a Lease: decides the next step from the last read. Pure; [`crate::leader::election`] sends the
//! requests.
//!
//! The protocol is that of client-go (`k8s.io/client-go/tools/leaderelection`). Clocks of different machines are never
//! compared: a replica takes over after it has seen the same record for the validity period in that record.

use std::time::Duration;

use k8s_openapi::{
    api::coordination::v1::{Lease, LeaseSpec},
    apimachinery::pkg::apis::meta::v1::MicroTime,
    jiff::Timestamp,
};
use tokio::time::Instant;

/// Durations of the leader election.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Time that standbys wait for a leader that does not renew the Lease.
    pub lease: Duration,
    /// How long a leader leads that could not renew the Lease.
    pub renew: Duration,
    /// How often a replica asks.
    pub retry: Duration,
}

impl Timing {
    /// Checks that a leader certainly stops before another one starts.
    ///
    /// # Errors
    ///
    /// The inconsistent durations, for the user.
    pub fn check(&self) -> Result<(), String> {
        if self.lease < Duration::from_secs(1) {
            return Err("--leader-elect-lease-duration must be at least 1s: a Lease counts whole seconds".to_owned());
        }
        for (longer, name, shorter, other) in [
            (self.lease, "lease-duration", self.renew, "renew-deadline"),
            (self.renew, "renew-deadline", self.retry, "retry-period"),
        ] {
            if longer <= shorter {
                return Err(format!(
                    "--leader-elect-{name} ({longer:?}) must be longer than --leader-elect-{other} ({shorter:?})"
                ));
            }
        }
        Ok(())
    }
}

/// Observations of the Lease by a replica.
#[derive(Debug, Default)]
pub struct Observed {
    record: Option<LeaseSpec>,
    /// When it saw this record for the first time.
    since: Option<Instant>,
}

/// The next step.
#[derive(Debug, PartialEq)]
pub enum Action {
    /// Write this, if the Lease has not changed since it was read.
    Write(Box<LeaseSpec>),
    /// This one leads.
    Wait(String),
}

impl Observed {
    /// The next step of a replica after reading the Lease.
    pub fn next(&mut self, lease: &Lease, me: &str, timing: &Timing, now: Instant, clock: Timestamp) -> Action {
        let record = lease.spec.clone().unwrap_or_default();
        if self.record.as_ref() != Some(&record) {
            (self.record, self.since) = (Some(record.clone()), Some(now));
        }
        let holder = record.holder_identity.clone().unwrap_or_default();
        let mine = holder == me;
        if !mine && !holder.is_empty() {
            let seconds = u64::try_from(record.lease_duration_seconds.unwrap_or_default()).unwrap_or_default();
            // A record that says nothing is taken for one of ours.
            let holds = if seconds == 0 { timing.lease } else { Duration::from_secs(seconds) };
            if self.since.is_none_or(|since| now.duration_since(since) < holds) {
                return Action::Wait(holder);
            }
        }
        let seconds = timing.lease.as_secs() + u64::from(timing.lease.subsec_nanos() > 0);
        let transitions = record.lease_transitions.unwrap_or_default();
        Action::Write(Box::new(LeaseSpec {
            holder_identity: Some(me.to_owned()),
            lease_duration_seconds: i32::try_from(seconds).ok(),
            acquire_time: if mine { record.acquire_time } else { Some(MicroTime(clock)) },
            renew_time: Some(MicroTime(clock)),
            lease_transitions: Some(if mine { transitions } else { transitions.saturating_add(1) }),
            ..LeaseSpec::default()
        }))
    }
}

/// The record of a leader that ends: the next one need not wait.
pub fn released(lease: &Lease, me: &str, clock: Timestamp) -> Option<LeaseSpec> {
    let record = lease.spec.clone().filter(|record| record.holder_identity.as_deref() == Some(me))?;
    Some(LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(clock)),
        ..record
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing =
        Timing { lease: Duration::from_secs(8), renew: Duration::from_secs(5), retry: Duration::from_secs(1) };

    fn lease(spec: Option<LeaseSpec>) -> Lease {
        Lease { spec, ..Lease::default() }
    }

    fn clock() -> Timestamp {
        Timestamp::UNIX_EPOCH
    }

    fn written(action: Action) -> LeaseSpec {
        match action {
            Action::Write(spec) => *spec,
            Action::Wait(holder) => panic!("waits for {holder}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn free_lease_is_taken_immediately() {
        let first = written(Observed::default().next(&lease(None), "a", &TIMING, Instant::now(), clock()));
        assert_eq!((first.holder_identity.as_deref(), first.lease_transitions), (Some("a"), Some(1)));
        assert_eq!(first.lease_duration_seconds, Some(8));
        let released = released(&lease(Some(first.clone())), "a", clock());
        assert!(released.as_ref().is_some_and(|record| record.holder_identity.as_deref() == Some("")));
        let next = written(Observed::default().next(&lease(released), "b", &TIMING, Instant::now(), clock()));
        assert_eq!((next.holder_identity.as_deref(), next.lease_transitions), (Some("b"), Some(2)));
    }

    #[tokio::test(start_paused = true)]
    async fn silent_leader_is_replaced_after_its_lease_duration() {
        let held = written(Observed::default().next(&lease(None), "a", &TIMING, Instant::now(), clock()));
        let mut observed = Observed::default();
        let wait = Action::Wait("a".to_owned());
        let ask = |observed: &mut Observed, record: &LeaseSpec| {
            observed.next(&lease(Some(record.clone())), "b", &TIMING, Instant::now(), clock())
        };
        assert_eq!(ask(&mut observed, &held), wait);
        tokio::time::advance(Duration::from_millis(7900)).await;
        assert_eq!(ask(&mut observed, &held), wait);
        // It has said something.
        let renewed = LeaseSpec { renew_time: Some(MicroTime(Timestamp::MAX)), ..held.clone() };
        assert_eq!(ask(&mut observed, &renewed), wait);
        tokio::time::advance(Duration::from_millis(7900)).await;
        assert_eq!(ask(&mut observed, &renewed), wait);
        tokio::time::advance(Duration::from_millis(200)).await;
        assert_eq!(written(ask(&mut observed, &renewed)).holder_identity.as_deref(), Some("b"));
    }

    #[tokio::test(start_paused = true)]
    async fn clocks_of_other_machines_do_not_matter() {
        for renewed in [Timestamp::MIN, Timestamp::MAX] {
            let record = LeaseSpec {
                holder_identity: Some("a".into()),
                lease_duration_seconds: Some(8),
                renew_time: Some(MicroTime(renewed)),
                ..LeaseSpec::default()
            };
            let action = Observed::default().next(&lease(Some(record)), "b", &TIMING, Instant::now(), clock());
            assert_eq!(action, Action::Wait("a".to_owned()));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn leader_renews_and_releases_only_its_lease() {
        let held = written(Observed::default().next(&lease(None), "a", &TIMING, Instant::now(), clock()));
        let renewed =
            written(Observed::default().next(&lease(Some(held.clone())), "a", &TIMING, Instant::now(), Timestamp::MAX));
        assert_eq!((renewed.acquire_time, renewed.lease_transitions), (held.acquire_time.clone(), Some(1)));
        assert_eq!(renewed.renew_time, Some(MicroTime(Timestamp::MAX)));
        assert_eq!(released(&lease(Some(held)), "b", clock()), None);
        assert_eq!(released(&lease(None), "b", clock()), None);
    }

    #[test]
    fn times_must_leave_a_gap_between_two_leaders() {
        assert_eq!(TIMING.check(), Ok(()));
        let same = Timing { renew: TIMING.lease, ..TIMING };
        assert!(same.check().unwrap_err().contains("--leader-elect-lease-duration (8s) must be longer than"));
        assert!(Timing { retry: TIMING.renew, ..TIMING }.check().is_err());
    }
}
