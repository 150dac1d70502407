//! Delays of retries.

use std::{
    collections::hash_map::RandomState,
    hash::{BuildHasher, Hasher},
    time::Duration,
};

use kube::runtime::utils::{Backoff, ResetTimerBackoff};

/// The first delay after a failure.
const FIRST: Duration = Duration::from_millis(500);

/// The delay after the `failures`-th failure in a row (from 1): 0.5 s, 1 s, 2 s ... up to `most`, each up to a fifth
/// shorter or longer, so that simultaneous failures are not retried at the same time.
pub fn delay(failures: u32, most: Duration) -> Duration {
    let exact = FIRST.saturating_mul(1_u32 << failures.saturating_sub(1).min(16)).min(most);
    exact.mul_f64(0.8 + 0.4 * fraction())
}

/// Some number in 0..1.
fn fraction() -> f64 {
    let random = RandomState::new().build_hasher().finish();
    f64::from(u32::try_from(random >> 32).unwrap_or_default()) / f64::from(u32::MAX)
}

/// The delays of a watch that fails, up to 10 s. They start again after a minute without a failure: kube-runtime
/// already counts it as a success that a watch begins to list.
pub fn watch_backoff() -> impl Backoff {
    ResetTimerBackoff::new(WatchBackoff::default(), Duration::from_mins(1))
}

#[derive(Debug, Default)]
struct WatchBackoff {
    failures: u32,
}

impl Iterator for WatchBackoff {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        self.failures += 1;
        Some(delay(self.failures, Duration::from_secs(10)))
    }
}

impl Backoff for WatchBackoff {
    fn reset(&mut self) {
        self.failures = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_and_are_bounded() {
        let most = Duration::from_mins(1);
        for (failures, expected) in [(1, 0.5), (2, 1.0), (4, 4.0), (8, 60.0), (4_000_000, 60.0)] {
            let delay = delay(failures, most).as_secs_f64();
            assert!((expected * 0.79..=expected * 1.21).contains(&delay), "{failures}: {delay}");
        }
    }
}
