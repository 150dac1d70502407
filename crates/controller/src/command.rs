//! The command line: the controller, and what runs before an uninstallation and after an installation.

use std::{ffi::OsString, process::ExitCode, time::Duration};

use clap::{CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use kube::Client;
use palisade_process::{LogOptions, TraceOptions};
use tokio_util::sync::CancellationToken;

use crate::{
    cleanup::{self, CleanupError},
    options::{Options, time},
    run::{self, run},
    verify::{self, VerifyError},
};

/// Keeps what the API server enforces equal to what the profiles say.
#[derive(Debug, Parser)]
#[command(name = "palisade-controller", version)]
struct Args {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    log: LogOptions,
    #[command(flatten)]
    traces: TraceOptions,
}

/// What ends by itself.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Task {
    /// Delete all profiles, and wait until nothing of them is left, before Palisade is uninstalled. Where no controller
    /// runs, this is one meanwhile.
    Cleanup {
        /// After this time it fails, and says what is left.
        #[arg(long, default_value = "4m", value_parser = time)]
        timeout: Duration,
    },
    /// Check that a controller leads, and that each profile is Ready.
    Verify {
        /// How long that may take.
        #[arg(long, default_value = "1m", value_parser = time)]
        timeout: Duration,
    },
}

/// Why the process failed.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error(transparent)]
    Cleanup(#[from] CleanupError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Runs what the arguments say, of which the first is the name of the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Args { task, options, log, traces } = Args::parse_from(arguments);
    if let Err(mistake) = options.election() {
        Args::command().error(ErrorKind::ValueValidation, mistake).exit();
    }
    let work = async |client, stop| work(client, task, options, stop).await;
    palisade_process::main("palisade-controller", &log, &traces, work)
}

async fn work(client: Client, task: Option<Task>, options: Options, stop: CancellationToken) -> Result<(), Error> {
    match task {
        None => run(client, options, stop).await?,
        Some(Task::Cleanup { timeout }) => cleanup::run(client, options, timeout, stop).await?,
        Some(Task::Verify { timeout }) => verify::run(client, timeout, stop).await?,
    }
    Ok(())
}
