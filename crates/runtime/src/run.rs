//! The start and the end of a process: its runtime, logs, client and signals.

use std::{error::Error, io, process::ExitCode};

use kube::{Client, Config};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::{Layer, Registry};

use crate::LogOptions;

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
fn on_signal() -> io::Result<CancellationToken> {
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
