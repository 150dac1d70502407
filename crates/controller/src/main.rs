//! The controller's binary: `palisade-controller`.

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, error::ErrorKind};
use palisade_controller::{Options, run};
use palisade_process::LogOptions;

/// Keeps what the API server enforces equal to what the profiles say.
#[derive(Debug, Parser)]
#[command(name = "palisade-controller", version)]
struct Args {
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    log: LogOptions,
}

fn main() -> ExitCode {
    let Args { options, log } = Args::parse();
    if let Err(mistake) = options.election() {
        Args::command().error(ErrorKind::ValueValidation, mistake).exit();
    }
    palisade_process::main("palisade-controller", &log, async |client, stop| run(client, options, stop).await)
}
