//! Measurements on a real API server, and the other engines that they compare.

use std::path::{Path, PathBuf};

use clap::Subcommand;
use palisade_cel::Minor;

use crate::{
    bench, oracle,
    shell::{self, build_all, build_control_plane, built, cache, cargo, command, directory, go, output, run, target},
};

/// Benchmarks write their results here.
const RESULTS: [&str; 4] = ["--json", "docs/benchmarks.json", "--plot", "docs/benchmarks.svg"];

#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    #[error(transparent)]
    Shell(#[from] shell::Error),
    #[error(transparent)]
    Cel(#[from] bench::Error),
}

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Measure the cost of a request for the API server, with Palisade in several configurations and with other engines.
    Bench,
    /// Run short benchmarks, and fail if a compliant request, palisade eval or CEL exceeds its limit.
    BenchSmoke,
    /// Measure the cost of namespaces, with one profile and with one policy for each.
    BenchNamespaces {
        /// Numbers of namespaces, separated by commas.
        #[arg(long, default_value = "10,100,1000,3500")]
        namespaces: String,
    },
    /// Measure the cost of containers, profiles and edits.
    BenchCurves,
    /// Compare palisade eval with a control plane that is started for the requests.
    BenchEval {
        /// Cargo profile of the programs.
        #[arg(long, default_value = "release")]
        profile: String,
    },
    /// Compare the webhook with one on controller-runtime and with Kyverno, at 500 requests per second.
    BenchWebhook,
    /// Build the other engines for `bench` from their Go modules.
    Peers,
}

/// Returns whether all figures are within their limits.
pub(crate) fn task(verb: &Verb) -> Result<bool, Error> {
    match verb {
        Verb::Bench => {
            build_control_plane()?;
            peers();
            run(&mut cargo("build -p palisade-bench"))?;
            run(&mut cargo("build --release -p palisade-webhook"))?;
            let mut bench = command(built("palisade-bench"));
            bench.arg("--webhook").arg(target().join("release/palisade-webhook"));
            run(bench.arg("--peers").arg(peers_directory()).args(RESULTS))?;
        }
        Verb::BenchSmoke => {
            // The tests have built these programs and the oracle.
            build_all()?;
            run(command(built("controlplane")).arg("build"))?;
            let oracle = oracle::build(Minor::DEFAULT)?;
            let mut requests = command(built("palisade-bench"));
            run(requests.args("--rounds 8 --requests 150 --only palisade,psa --check".split(' ')))?;
            run(command(built("palisade-demo")).args(["--once", "--bench-eval"]).arg(built("palisade")))?;
            return Ok(bench::run(&oracle, 200)?);
        }
        Verb::BenchNamespaces { namespaces } => curve(&["--namespaces", namespaces])?,
        Verb::BenchCurves => {
            curve(&["--containers", "1,2,5,10,16,20", "--profiles", "1,2,5,10", "--edits", "10,1000,3500"])?;
        }
        Verb::BenchEval { profile } => {
            let packages = "-p palisade-cli -p palisade-controller -p palisade-demo";
            run(&mut cargo(&format!("build --profile {profile} {packages}")))?;
            let programs = target().join(if profile == "dev" { "debug" } else { profile });
            let mut demo = command(programs.join("palisade-demo"));
            run(demo.args(["--once", "--bench-eval"]).arg(programs.join("palisade")))?;
        }
        Verb::BenchWebhook => bench_webhook()?,
        Verb::Peers => peers(),
    }
    Ok(true)
}

fn curve(arguments: &[&str]) -> Result<(), shell::Error> {
    build_control_plane()?;
    run(&mut cargo("build -p palisade-bench"))?;
    run(command(built("palisade-bench")).args(arguments))
}

fn bench_webhook() -> Result<(), shell::Error> {
    run(&mut cargo("build --release -p palisade-controller -p palisade-webhook -p palisade-demo"))?;
    let build = |module: &str, name: &str| {
        let program = cache().join(name);
        run(&mut go(module, "vet ."))?;
        run(go(module, "build -o").arg(&program).arg(".")).map(|()| program)
    };
    let webhook = build("tests/webhook-bench", "webhook-bench")?;
    let kyverno = build("tests/webhook-bench/kyverno", "webhook-bench-kyverno")?;
    let mut demo = command(target().join("release/palisade-demo"));
    demo.args(["--namespaces", "3500", "--once", "--bench-webhook"]).arg(webhook);
    run(demo.arg("--bench-kyverno").arg(kyverno))
}

fn peers_directory() -> PathBuf {
    cache().join("peers")
}

/// An engine that `bench` measures.
struct Peer {
    name: &'static str,
    package: &'static str,
    /// The module, which has the CRDs in a directory.
    module: &'static str,
    crds: &'static str,
}

const PEERS: [Peer; 2] = [
    Peer {
        name: "kyverno",
        package: "github.com/kyverno/kyverno/cmd/kyverno",
        module: "github.com/kyverno/kyverno",
        crds: "config/crds",
    },
    Peer {
        name: "gatekeeper",
        package: "github.com/open-policy-agent/gatekeeper/v3",
        module: "github.com/open-policy-agent/gatekeeper/v3",
        crds: "charts/gatekeeper/crds",
    },
];

/// Builds the other engines. The benchmark does not measure an engine that could not be built.
fn peers() {
    for peer in &PEERS {
        if let Err(error) = peer.build() {
            eprintln!("{error}\n{} could not be built, and is not measured", peer.name);
        }
    }
}

impl Peer {
    /// Builds the program, and copies its CRDs next to it.
    fn build(&self) -> Result<(), shell::Error> {
        let (module, out) = (format!("tests/peers/{}", self.name), peers_directory().join(self.name));
        let mut build = go(&module, "build");
        run(build.args(["-ldflags", "-s -w", "-o"]).arg(out.join(self.name)).arg(self.package))?;
        let sources = output(go(&module, "list -m -f {{.Dir}}").arg(self.module))?;
        let crds = out.join("crds");
        directory(&crds, true)?;
        // The module cache is read-only. The trailing dot copies the content of the directory.
        run(command("cp").arg("-r").arg(Path::new(&sources).join(self.crds).join(".")).arg(&crds))?;
        run(command("chmod").args(["-R", "u+w"]).arg(&crds))
    }
}
