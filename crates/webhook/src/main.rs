//! The webhook's binary: `palisade-webhook`.

#![allow(clippy::disallowed_methods, reason = "a binary has an environment")]

use std::process::ExitCode;

use clap::Parser;
use palisade_webhook::{LogFormat, Options, start};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Fills in what a profile says pods should have, where the API server cannot do it by itself.
#[derive(Debug, Parser)]
#[command(name = "palisade-webhook", version)]
struct Args {
    #[command(flatten)]
    options: Options,
    /// How log lines look.
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
    /// What is logged: a level, or directives as in `info,palisade_webhook=debug`.
    #[arg(long, env = "PALISADE_LOG", default_value = "info")]
    log_level: String,
}

fn main() -> ExitCode {
    let args = Args::parse();
    if let Err(error) = log(&args) {
        eprintln!("palisade-webhook: --log-level {}: {error}", args.log_level);
        return ExitCode::from(2);
    }
    // An answer takes some ten microseconds; the threads of a large node would only cost memory.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let result = match runtime {
        Ok(runtime) => runtime.block_on(webhook(args.options)),
        Err(error) => Err(error.into()),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(%error, "palisade-webhook failed");
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

async fn webhook(options: Options) -> Result<(), Box<dyn std::error::Error>> {
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
    Ok(start(client, options, shutdown).await?.join.await?)
}
