//! The parts that all processes share: logs, signals, HTTP servers that no client can block, TLS, a health server,
//! supervised tasks, delays of retries, lists that fit into memory, work that must not end the process.
//!
//! Each module uses only modules before it:
//!
//! 1. `log`, `metrics`, `retry`, `stack`, `lists`, `supervisor`, `server`, `tls`, `health`.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    reason = "this crate does I/O: it has a clock, files and an environment"
)]

mod health;
pub mod lists;
mod log;
mod metrics;
mod retry;
mod server;
mod stack;
mod supervisor;
pub mod tls;

pub use health::{Health, serve_health};
pub use log::LogOptions;
pub use metrics::{about_process, text};
pub use retry::{delay, watch_backoff};
pub use server::{BodyError, GRACE, HttpMetrics, HttpServer, Limits, Share};
pub use stack::{NoResult, STACK, on_large_stack};
pub use supervisor::{Supervisor, TaskFailure};

use std::{error::Error, io, process::ExitCode, time::Duration};

use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::{Layer, Registry};

/// A receiver of spans.
pub struct Spans {
    /// Gets the spans and events of `tracing`.
    pub layer: Box<dyn Layer<Registry> + Send + Sync>,
    /// Sends the last spans, when the process stops.
    pub end: Box<dyn FnOnce()>,
}

/// Runs `work` with a client of the cluster that the environment names, until it returns; SIGTERM and SIGINT cancel its
/// token. `name` is that of the binary. `spans` is called in the runtime.
///
/// The exit code is 0, 1 if `work` failed, or 2 if the flags are wrong.
pub fn main<E>(
    name: &'static str,
    log: &LogOptions,
    spans: impl FnOnce() -> Result<Option<Spans>, String>,
    work: impl AsyncFnOnce(Client, CancellationToken) -> Result<(), E>,
) -> ExitCode
where
    E: Error + 'static,
{
    // Both processes mostly wait; a thread for each processor of a large node would only cost memory.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("{name}: {error}");
            return ExitCode::FAILURE;
        }
    };
    let entered = runtime.enter();
    let spans = match spans() {
        Ok(spans) => spans,
        Err(error) => {
            eprintln!("{name}: cannot send traces: {error}");
            return ExitCode::from(2);
        }
    };
    let (layer, end) = spans.map(|spans| (spans.layer, spans.end)).unzip();
    let levels = match log.start(layer) {
        Ok(levels) => levels,
        Err(error) => {
            eprintln!("{name}: --log-level {}: {error}", log.level());
            return ExitCode::from(2);
        }
    };
    drop(entered);
    let run = async {
        levels.map(|levels| tokio::spawn(levels.follow()));
        let client = Client::try_from(Config::infer().await?)?;
        work(client, on_signal()?).await.map_err(Into::into)
    };
    let result: Result<(), Box<dyn Error>> = runtime.block_on(run);
    let code = match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "{name} failed");
            ExitCode::FAILURE
        }
    };
    if let Some(end) = end {
        end();
    }
    code
}

/// A token that SIGTERM and SIGINT cancel.
///
/// # Errors
/// The signals cannot be caught.
pub fn on_signal() -> io::Result<CancellationToken> {
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = CancellationToken::new();
    let shutdown = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    Ok(shutdown)
}

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
