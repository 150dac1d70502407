//! `make demo`: from nothing to protected namespaces on a real control plane, with figures.
#![allow(clippy::disallowed_methods, reason = "the demo starts processes and measures time")]

mod bench_eval;
mod bench_webhook;
mod controller;
mod report;
mod scene;

use std::{error::Error, process::ExitCode};

use clap::Parser;
use palisade_tests::{WEBHOOK, run_webhook};

/// Starts a control plane and the controller, applies Toolforge's profile and shows what it does.
#[derive(Parser)]
struct Arguments {
    /// How many tool namespaces there are.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    namespaces: u32,
    /// Stops everything at the end, instead of leaving it to play with until Ctrl-C.
    #[arg(long)]
    once: bool,
    /// Also measures the webhook against this other one, the program of tests/webhook-bench.
    #[arg(long)]
    bench_webhook: Option<std::path::PathBuf>,
    /// And this one, with Kyverno's handler: the program of tests/webhook-bench/kyverno.
    #[arg(long, requires = "bench_webhook")]
    bench_kyverno: Option<std::path::PathBuf>,
    /// Also measures this `palisade` against the control plane.
    #[arg(long)]
    bench_eval: Option<std::path::PathBuf>,
    /// The minor version that the API server emulates, 1.33 to 1.36. `PALISADE_MINOR` selects the program instead.
    #[arg(long)]
    emulated_version: Option<String>,
}

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

#[tokio::main]
async fn main() -> ExitCode {
    // The webhook must be a process.
    if std::env::args().nth(1).as_deref() == Some(WEBHOOK) {
        return run_webhook().await;
    }
    let arguments = Arguments::parse();
    let demo = async {
        let running = tokio::select! {
            result = scene::play(&arguments) => result?,
            _ = tokio::signal::ctrl_c() => return Err("interrupted".into()),
        };
        // Here an interrupt is how one ends it.
        if !arguments.once {
            tokio::signal::ctrl_c().await?;
        }
        running.stop().await
    };
    match demo.await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
