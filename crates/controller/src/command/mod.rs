//! The command line: the controller, and the commands for uninstallation and verification.

pub mod cleanup;
pub mod verify;

use std::{ffi::OsString, process::ExitCode, time::Duration};

use clap::{CommandFactory as _, Parser, Subcommand, error::ErrorKind};
use kube::Client;
use palisade_runtime::LogOptions;
use tokio_util::sync::CancellationToken;

#[cfg(feature = "traces")]
use crate::traces::TraceOptions;
use crate::{
    command::{cleanup::CleanupError, verify::VerifyError},
    lanes::run::{self, run},
    options::{Options, time},
};

const NAME: &str = "palisade-controller";

/// Enforce ToolSecurityProfiles through admission policies of the API server
#[derive(Debug, Parser)]
#[command(name = NAME, version)]
struct Args {
    #[command(subcommand)]
    task: Option<Task>,
    #[command(flatten)]
    options: Options,
    #[command(flatten)]
    log: LogOptions,
    #[cfg(feature = "traces")]
    #[command(flatten)]
    traces: TraceOptions,
}

/// Commands that terminate.
#[derive(Clone, Copy, Debug, Subcommand)]
enum Task {
    /// Delete all profiles before an uninstallation
    ///
    /// Waits until all generated objects are removed. If no controller is running, this command acts as the controller.
    Cleanup {
        /// Time limit. After it, the command fails and lists the remaining profiles.
        #[arg(long, default_value = "4m", value_parser = time)]
        timeout: Duration,
    },
    /// Check that there is a leader and that all profiles are Ready
    Verify {
        /// Time limit.
        #[arg(long, default_value = "1m", value_parser = time)]
        timeout: Duration,
    },
}

#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Run(#[from] run::Error),
    #[error(transparent)]
    Cleanup(#[from] CleanupError),
    #[error(transparent)]
    Verify(#[from] VerifyError),
}

/// Runs the program with arguments; the first one is the name of the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let Args {
        task,
        options,
        log,
        #[cfg(feature = "traces")]
        traces,
    } = Args::parse_from(arguments);
    if let Err(mistake) = options.election() {
        Args::command().error(ErrorKind::ValueValidation, mistake).exit();
    }
    let work = async |client, stop| work(client, task, options, stop).await;
    #[cfg(feature = "traces")]
    let spans = || traces.start(NAME);
    #[cfg(not(feature = "traces"))]
    let spans = || Ok(None);
    palisade_runtime::main(NAME, &log, spans, work)
}

async fn work(client: Client, task: Option<Task>, options: Options, stop: CancellationToken) -> Result<(), Error> {
    match task {
        None => run(client, options, stop).await?,
        Some(Task::Cleanup { timeout }) => cleanup::run(client, options, timeout, stop).await?,
        Some(Task::Verify { timeout }) => verify::run(client, timeout, stop).await?,
    }
    Ok(())
}
