//! The controller's binary: `palisade-controller`.

#![allow(clippy::disallowed_methods, reason = "a binary has an environment")]

use std::process::ExitCode;

use clap::Parser;
use palisade_controller::{LogFormat, Options, run};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Keeps what the API server enforces equal to what the profiles say.
#[derive(Debug, Parser)]
#[command(name = "palisade-controller", version)]
struct Args {
    #[command(flatten)]
    options: Options,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
    /// What is logged: a level, or directives as in `info,palisade_controller=debug`.
    #[arg(long, env = "PALISADE_LOG", default_value = "info")]
    log_level: String,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = log(&args) {
        eprintln!("palisade-controller: --log-level {}: {error}", args.log_level);
        return ExitCode::from(2);
    }
    // The work is waiting; the threads of a large node would only cost memory.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(controller(args.options)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "palisade-controller failed");
            ExitCode::FAILURE
        }
    }
}

fn log(args: &Args) -> Result<(), tracing_subscriber::filter::ParseError> {
    let log = tracing_subscriber::fmt().with_env_filter(EnvFilter::try_new(&args.log_level)?);
    match args.log_format {
        LogFormat::Json => log.json().flatten_event(true).with_current_span(true).with_span_list(false).init(),
        LogFormat::Text => log.init(),
    }
    Ok(())
}

async fn controller(options: Options) -> Result<(), Box<dyn std::error::Error>> {
    let client = kube::Client::try_from(kube::Config::infer().await?)?;
    let shutdown = CancellationToken::new();
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let stop = shutdown.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        stop.cancel();
    });
    Ok(run(client, options, shutdown).await?)
}
