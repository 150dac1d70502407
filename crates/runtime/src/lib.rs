//! The parts that all processes share: logs, signals, HTTP servers that no client can block, TLS, a health server,
//! supervised tasks, delays of retries, lists that fit into memory, work that must not end the process.
//!
//! The command line is no server: it builds this crate without the feature `server`, and gets `stack`, `lists` and
//! [`duration`] only.
//!
//! Each module uses only modules before it:
//!
//! 1. `log`, `metrics`, `retry`, `stack`, `lists`, `supervisor`, `server`, `tls`, `health`, `run`.
#![warn(missing_docs)]
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate does I/O: it has a clock, files and an environment"
)]

#[cfg(feature = "server")]
mod health;
pub mod lists;
#[cfg(feature = "server")]
mod log;
#[cfg(feature = "server")]
mod metrics;
#[cfg(feature = "server")]
mod retry;
#[cfg(feature = "server")]
mod run;
#[cfg(feature = "server")]
mod server;
mod stack;
#[cfg(feature = "server")]
mod supervisor;
#[cfg(feature = "server")]
pub mod tls;

use std::time::Duration;

pub use stack::{NoResult, STACK, on_large_stack};
#[cfg(feature = "server")]
pub use {
    health::{Health, serve_health},
    log::LogOptions,
    metrics::{about_process, text},
    retry::{delay, watch_backoff},
    run::{Spans, main},
    server::{BodyError, GRACE, HttpMetrics, HttpServer, Limits, Share},
    supervisor::{Supervisor, TaskFailure},
};

/// Parses `250ms`, `10s`, `5m`, `1h` or `90d`.
///
/// # Errors
///
/// The error in the text.
pub fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| format!("{text:?} must begin with a number"))?;
    let seconds = match unit {
        "ms" => return Ok(Duration::from_millis(number)),
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 24 * 3600,
        _ => return Err(format!("{text:?} must end with ms, s, m, h or d")),
    };
    Ok(Duration::from_secs(number.saturating_mul(seconds)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_require_a_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("5m"), Ok(Duration::from_mins(5)));
        assert_eq!(duration("90d"), Ok(Duration::from_hours(90 * 24)));
        for wrong in ["5", "m", "", "-1s", "5w"] {
            assert!(duration(wrong).is_err(), "{wrong}");
        }
    }
}
