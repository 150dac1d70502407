//! `controlplane build` builds the control plane; `controlplane run` runs it until it is interrupted.

use std::{path::PathBuf, process::ExitCode};

use palisade_controlplane::{ControlPlane, build};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: controlplane build
       controlplane run [--emulated-version 1.N] [--kubeconfig FILE]";

#[derive(Default)]
struct Run {
    emulated_version: Option<String>,
    kubeconfig: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match arguments.next().as_deref() {
        Some("build") if arguments.len() == 0 => print_binary(),
        Some("run") => match parse_run(arguments) {
            Some(options) => run(options).await,
            None => return usage(),
        },
        _ => return usage(),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("controlplane: {error}");
            ExitCode::FAILURE
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("{USAGE}");
    ExitCode::from(2)
}

// Two options do not earn an argument parser in a crate that every test links.
fn parse_run(mut arguments: impl Iterator<Item = String>) -> Option<Run> {
    let mut run = Run::default();
    while let Some(option) = arguments.next() {
        match option.as_str() {
            "--emulated-version" => run.emulated_version = Some(arguments.next()?),
            "--kubeconfig" => run.kubeconfig = Some(arguments.next()?.into()),
            _ => return None,
        }
    }
    Some(run)
}

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

fn print_binary() -> Result {
    println!("{}", build::binary()?.display());
    Ok(())
}

async fn run(options: Run) -> Result {
    // Before the start, which takes seconds: an interrupt then must not leave anything behind either.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupted = std::pin::pin!(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });

    let mut builder = ControlPlane::builder();
    if let Some(version) = options.emulated_version {
        builder = builder.emulated_version(version);
    }
    let cluster = tokio::select! {
        cluster = builder.start() => cluster?,
        () = &mut interrupted => return Ok(()),
    };
    let result = serve(&cluster, options.kubeconfig.as_ref(), interrupted).await;
    cluster.stop().await?;
    result
}

#[allow(clippy::disallowed_methods, reason = "this program writes the file it was told to write")]
async fn serve(cluster: &ControlPlane, copy: Option<&PathBuf>, interrupted: impl Future<Output = ()>) -> Result {
    if let Some(copy) = copy {
        std::fs::write(copy, cluster.kubeconfig())?;
    }
    let path = copy.map_or(cluster.kubeconfig_path(), PathBuf::as_path);
    println!("export KUBECONFIG={}", path.display());
    eprintln!("{} is ready; Ctrl-C stops it", cluster.url());
    interrupted.await;
    Ok(())
}
