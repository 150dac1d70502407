//! `controlplane build` builds the control plane; `controlplane run` runs it until it is interrupted.

use std::{path::PathBuf, process::ExitCode};

use palisade_controlplane::{ControlPlane, Version, build};
use tokio::signal::unix::{SignalKind, signal};

const USAGE: &str = "usage: controlplane build [--minor 1.N]
       controlplane run [--minor 1.N] [--emulated-version 1.N] [--kubeconfig FILE]

PALISADE_MINOR=1.N is the same as --minor 1.N. KUBEBUILDER_ASSETS has precedence for run.";

#[derive(Default)]
struct Options {
    minor: Option<String>,
    emulated_version: Option<String>,
    kubeconfig: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let result = match arguments.next().as_deref() {
        Some("build") => match parse(arguments) {
            Some(Options { minor, emulated_version: None, kubeconfig: None }) => print_binary(minor.as_deref()),
            _ => return usage(),
        },
        Some("run") => match parse(arguments) {
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

// Three options do not earn an argument parser in a crate that every test links.
fn parse(mut arguments: impl Iterator<Item = String>) -> Option<Options> {
    let mut options = Options::default();
    while let Some(option) = arguments.next() {
        match option.as_str() {
            "--minor" => options.minor = Some(arguments.next()?),
            "--emulated-version" => options.emulated_version = Some(arguments.next()?),
            "--kubeconfig" => options.kubeconfig = Some(arguments.next()?.into()),
            _ => return None,
        }
    }
    Some(options)
}

type Result = std::result::Result<(), Box<dyn std::error::Error>>;

fn version(minor: Option<&str>) -> std::result::Result<&'static Version, palisade_controlplane::Error> {
    minor.map_or_else(Version::of_environment, |minor| Version::of(Some(minor)))
}

fn print_binary(minor: Option<&str>) -> Result {
    println!("{}", build::binary(version(minor)?)?.display());
    Ok(())
}

async fn run(options: Options) -> Result {
    // Before the start, which takes seconds: an interrupt then must not leave anything behind either.
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupted = std::pin::pin!(async {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    });

    let mut builder = ControlPlane::builder().version(version(options.minor.as_deref())?);
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
