//! Packages, SBOMs and the artefacts of a release.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};

use crate::{
    chart,
    project::root,
    sbom,
    shell::{self, AUDITABLE, CYCLONEDX, cargo, command, run, target},
};

/// Crates that can be used without the operator.
const TOOLKIT: [&str; 7] = ["kube-json", "cel", "admission", "manifest", "lint", "policy-test", "prove"];
/// Other crates that `cargo install palisade-cli` needs, and the command line.
const COMMAND_LINE: [&str; 9] =
    ["checks", "api", "compiler", "mutation", "gate", "migrate", "profiles", "runtime", "cli"];

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Shell(#[from] shell::Error),
    #[error("{0}")]
    Sbom(String),
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Package the crates of the toolkit and the command line, and build each package.
    Package,
    /// Write the SBOM of each program in target/sbom, and compare it with Cargo.lock.
    Sbom,
    /// Check that the SBOMs of a release are valid and match Cargo.lock.
    SbomCheck {
        /// Directory of the SBOMs.
        directory: PathBuf,
    },
    /// Build all release artefacts in target/release-artifacts.
    Release(Version),
    /// Rebuild the release in another directory, and compare the bytes.
    ReleaseCheck(Version),
    /// Install from the release artefacts in an empty directory, and evaluate a first pod.
    ReleaseSmoke,
    /// Push the release image to a local registry, and pull it by its digest.
    ReleaseRegistry,
}

#[derive(Args)]
pub(crate) struct Version {
    /// Version of the release, as in Cargo.toml.
    #[arg(long, default_value = env!("CARGO_PKG_VERSION"))]
    version: String,
}

pub(crate) fn task(verb: &Verb) -> Result<(), Error> {
    let artifacts = target().join("release-artifacts");
    let script = |name: &str| command(root().join("packaging").join(name));
    match verb {
        Verb::Package => {
            let packages = TOOLKIT.iter().chain(&COMMAND_LINE).map(|name| format!("--package=palisade-{name}"));
            run(cargo("package --locked").args(packages))?;
        }
        Verb::Sbom => sboms()?,
        Verb::SbomCheck { directory } => check_sboms(directory)?,
        Verb::Release(Version { version }) => {
            let auditable = AUDITABLE.install()?;
            sboms()?;
            let mut release = script("release.sh");
            release.env("CARGO_AUDITABLE", auditable).env("CARGO_CYCLONEDX", CYCLONEDX.install()?);
            run(release.arg(version).arg(artifacts))?;
        }
        Verb::ReleaseCheck(Version { version }) => {
            let mut reproduce = script("reproduce.sh");
            reproduce.env("CARGO_AUDITABLE", AUDITABLE.install()?).env("CARGO_CYCLONEDX", CYCLONEDX.install()?);
            run(reproduce.arg(version).arg(artifacts))?;
        }
        Verb::ReleaseSmoke => {
            check_sboms(&artifacts)?;
            run(script("smoke.sh").arg(artifacts).arg(chart::helm_path()?))?;
        }
        Verb::ReleaseRegistry => run(script("registry.sh").arg(artifacts))?,
    }
    Ok(())
}

fn sboms() -> Result<(), Error> {
    let directory = target().join("sbom");
    let mut sbom = command(root().join("packaging/sbom.sh"));
    run(sbom.env("CARGO_CYCLONEDX", CYCLONEDX.install()?).arg(&directory))?;
    check_sboms(&directory)
}

fn check_sboms(directory: &Path) -> Result<(), Error> {
    let (seen, wrong) = sbom::check(directory).map_err(Error::Sbom)?;
    if wrong.is_empty() {
        println!("{seen}");
        return Ok(());
    }
    Err(Error::Sbom(wrong.join("\n")))
}
