//! The pure crates reach nothing that does I/O, and the toolkit nothing of the product: not by choice of their authors, but
//! because it is not there.

use std::{
    collections::{BTreeMap, BTreeSet},
    process::{Command, Output},
};

use serde_json::Value as Json;

/// Crates that promise "no I/O, no clock, no environment".
const PURE: [&str; 14] = [
    "palisade-admission",
    "palisade-api",
    "palisade-cel",
    "palisade-checks",
    "palisade-compiler",
    "palisade-gate",
    "palisade-kube-json",
    "palisade-lint",
    "palisade-manifest",
    "palisade-migrate",
    "palisade-mutation",
    "palisade-policy-test",
    "palisade-profiles",
    "palisade-prove",
];

/// Kubernetes' admission, offline: usable and published without the product.
const TOOLKIT: [&str; 7] = [
    "palisade-admission",
    "palisade-cel",
    "palisade-kube-json",
    "palisade-lint",
    "palisade-manifest",
    "palisade-policy-test",
    "palisade-prove",
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

pub(crate) fn cargo(args: &[&str]) -> String {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let Output { status, stdout, stderr } =
        Command::new(cargo).args(args).current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// The crates that `package` is built from on this machine, besides those of its build and tests.
///
/// `cargo tree` and not `cargo metadata`: that one gives `kube` the features that the controller asks for, whoever
/// uses it, and wants the crates of all platforms to be there.
pub(crate) fn dependencies(package: &str) -> BTreeSet<String> {
    let lines = cargo(&["tree", "--offline", "--edges=normal", "--prefix=none", "--format={p}", "--package", package]);
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

#[test]
fn the_command_line_links_no_server() {
    const SERVERS: [&str; 6] =
        ["axum", "kube-runtime", "opentelemetry", "prometheus-client", "tracing-opentelemetry", "tracing-subscriber"];
    let (found, controller) = (dependencies("palisade-cli"), dependencies("palisade-controller"));
    let linked: Vec<_> = SERVERS.into_iter().filter(|name| found.contains(*name)).collect();
    assert!(linked.is_empty(), "palisade-cli depends on {linked:?}; `cargo tree -p palisade-cli -i <crate>` says why");
    assert!(SERVERS.into_iter().all(|name| controller.contains(name)), "{controller:?}");
}

/// The crates of this workspace that each of them names in its manifest, also for its tests.
fn named() -> BTreeMap<String, BTreeSet<String>> {
    let metadata: Json =
        serde_json::from_str(&cargo(&["metadata", "--offline", "--no-deps", "--format-version=1"])).unwrap();
    let name = |of: &Json| of["name"].as_str().unwrap().to_owned();
    let own = |package: &Json| {
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        dependencies.filter(|one| one["path"].is_string()).map(name).collect()
    };
    metadata["packages"].as_array().unwrap().iter().map(|package| (name(package), own(package))).collect()
}

#[test]
fn the_toolkit_does_not_depend_on_the_product() {
    let named = named();
    for package in TOOLKIT {
        // All that is named is of the toolkit, so that what is reached is, too.
        let others: Vec<_> = named[package].iter().filter(|name| !TOOLKIT.contains(&name.as_str())).collect();
        assert!(others.is_empty(), "{package} is of the toolkit and depends on {others:?}, which is of the product");
    }
    // What is looked for is found where it is.
    assert!(named["palisade-gate"].contains("palisade-compiler"), "{named:?}");
    assert!(named["palisade-admission"].contains("palisade-cel"), "{named:?}");
}
