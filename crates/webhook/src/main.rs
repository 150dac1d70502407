//! The webhook's binary: `palisade-webhook`.

use std::process::ExitCode;

use clap::Parser;
use palisade_runtime::LogOptions;
use palisade_webhook::{Options, run};

/// Mutate pods if the API server does not support MutatingAdmissionPolicy
#[derive(Debug, Parser)]
#[command(name = "palisade-webhook", version)]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    log: LogOptions,
}

fn main() -> ExitCode {
    let Args { options, log } = Args::parse();
    let work = async |client, stop| run(client, options, stop).await;
    palisade_runtime::main("palisade-webhook", &log, || Ok(None), work)
}
