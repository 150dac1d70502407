//! The suite of `k8s.io/pod-security-admission` itself, on a real API server where Palisade enforces the Pod Security
//! Standards and the API server's own plugin does not.
//!
//! The suite is a Go program (`tests/conformance`). Here it is built, and run on a control plane of its own.
#![allow(clippy::disallowed_methods, reason = "starts a program and waits for it")]

use std::{
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use libtest_mimic::{Arguments, Trial};
use palisade_controlplane::{ControlPlane, Feature, Version, build::COMPILER_FLAGS};
use palisade_tests::{Cluster, TestResult, ensure, root};
use tokio::runtime::Runtime;

fn main() -> ExitCode {
    let trial = Trial::test("the_suite_of_the_standards_passes", || {
        let runtime = Runtime::new().map_err(|error| error.to_string())?;
        runtime.block_on(the_suite_of_the_standards_passes()).map_err(|error| error.to_string().into())
    });
    let kind = Version::of_environment().map_or("an unknown minor", |version| version.minor);
    libtest_mimic::run(&Arguments::from_args(), vec![trial.with_kind(kind)]).exit_code()
}

async fn the_suite_of_the_standards_passes() -> TestResult {
    let suite = build()?;
    let control_plane = ControlPlane::builder()
        .type_checks(false)
        // It reads the same labels, and would deny first.
        .apiserver_flags(["--disable-admission-plugins=PodSecurity"]);
    let mut cluster = Cluster::start_on(control_plane).await?;
    cluster.start_controller().await?;
    // The API server removes the field that this check reads.
    let without = if cluster.has(&Feature::PROC_MOUNT).await? { "" } else { "procMount" };
    let status = Command::new(&suite)
        .env("PALISADE_WITHOUT_CHECK", without)
        .arg("-test.timeout=15m")
        .env("KUBECONFIG", cluster.control_plane.kubeconfig_path())
        .status()
        .map_err(|error| format!("cannot run {}: {error}", suite.display()))?;
    cluster.stop().await?;
    ensure!(status.success(), "the suite ended with {status}: what it found is above");
    Ok(())
}

/// Builds the suite into this crate's directory for temporary files.
fn build() -> Result<PathBuf, String> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("conformance.test");
    let output = Command::new("go")
        .args(["test", "-c", "-trimpath", COMPILER_FLAGS, "-mod=readonly", "-o"])
        .arg(&program)
        .arg(".")
        .current_dir(root().join("tests/conformance"))
        // A static binary needs no C compiler. The rest keeps the caller's settings out.
        .envs([("CGO_ENABLED", "0"), ("GOWORK", "off"), ("GOFLAGS", "")])
        .output()
        .map_err(|error| format!("cannot run go, which builds the suite: {error}"))?;
    if output.status.success() {
        return Ok(program);
    }
    Err(format!(
        "go test -c in tests/conformance ended with {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    ))
}
