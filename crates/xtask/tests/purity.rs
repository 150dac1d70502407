//! The pure crates reach nothing that does I/O: not by choice of their authors, but because it is not there.
#![allow(clippy::unwrap_used, reason = "all of this is tests")]

use std::{
    collections::BTreeSet,
    process::{Command, Output},
};

/// Crates that promise "no I/O, no clock, no environment".
const PURE: [&str; 8] = [
    "palisade-api",
    "palisade-cel",
    "palisade-checks",
    "palisade-compiler",
    "palisade-harness",
    "palisade-manifest",
    "palisade-migrate",
    "palisade-suite",
];

/// Crates without which there is no network and no runtime.
const FORBIDDEN: [&str; 11] = [
    "axum",
    "hyper",
    "kube-client",
    "kube-runtime",
    "mio",
    "reqwest",
    "rustls",
    "socket2",
    "tokio",
    "tokio-util",
    "tower",
];

/// The crates that `package` is built from on this machine, besides those of its build and tests.
///
/// `cargo tree` and not `cargo metadata`: that one gives `kube` the features that the controller asks for, whoever
/// uses it, and wants the crates of all platforms to be there.
fn dependencies(package: &str) -> BTreeSet<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let Output { status, stdout, stderr } = Command::new(cargo)
        .args(["tree", "--offline", "--edges=normal", "--prefix=none", "--format={p}", "--package", package])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    let lines = String::from_utf8(stdout).unwrap();
    lines.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn pure_crates_reach_no_runtime_and_no_network() {
    for package in PURE {
        let found = dependencies(package);
        let forbidden: Vec<_> = FORBIDDEN.into_iter().filter(|name| found.contains(*name)).collect();
        assert!(
            forbidden.is_empty(),
            "{package} depends on {forbidden:?}; `cargo tree -p {package} -i <crate>` says why"
        );
    }
    // What is looked for is found where it is.
    let controller = dependencies("palisade-controller");
    assert!(["tokio", "hyper", "kube-client"].into_iter().all(|name| controller.contains(name)), "{controller:?}");
}
