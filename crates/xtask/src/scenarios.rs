//! Tests on a real API server that `make test-all` leaves out or shortens.

use clap::Subcommand;

use crate::{
    chart,
    shell::{Error, build_all, build_control_plane, built, cargo, command, run, target},
};

/// Without this variable in the environment, scenarios that take minutes are left out.
pub(crate) const LARGE: &str = "PALISADE_LARGE";

#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Build the control plane for tests and the demo.
    ControlPlane,
    /// Run the scenarios with thousands of namespaces, dozens of profiles, objects of a megabyte, and the pods of other
    /// projects.
    Large,
    /// Measure repair with 50 profiles, half of them faulty, and 3,500 namespaces.
    Pressure,
    /// Roll a profile out to 1,000 namespaces, 32 with violations, while the controller is killed 20 times.
    Rollout,
    /// Write the objects of this version in an API server, for upgrade tests (tests/apiserver/fixtures).
    Fixtures,
    /// Kill, pause and end the leader of two controllers.
    Ha {
        /// Duration in seconds.
        #[arg(long, default_value_t = 300)]
        seconds: u64,
    },
    /// Run chaos tests on etcd, API server, controllers, webhook, connections and objects, and check invariants.
    Chaos {
        /// Duration in seconds.
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// Seed of the faults.
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Scan 3,500 namespaces with 20,000 pods in the background, and compare with the API server's answers.
    Scan,
    /// Run the suite of the Pod Security Standards (also part of `make test-all`).
    Conformance,
    /// Measure the cost of requests with the longest lists for the API server, with and without evaluation.
    Bounds,
    /// Run all attacks of the tests on a real API server, and print the results.
    Redteam {
        /// Emulate this minor version, for example 1.33.
        #[arg(long, value_name = "MINOR")]
        emulated: Option<String>,
    },
    /// Install chart, image and palisade from the artefacts of a release, and follow the tutorial.
    ReleaseSmokeCluster,
}

pub(crate) fn task(verb: &Verb) -> Result<(), Error> {
    build_control_plane()?;
    let scenarios = |filter: &str| {
        let mut test = cargo(&format!("test --workspace --test apiserver -- {filter} --nocapture"));
        test.env(LARGE, "1");
        test
    };
    match verb {
        Verb::ControlPlane => Ok(()),
        Verb::Large => ["memory::", "pressure::", "scale::", "mutates_corpus_pods"]
            .into_iter()
            .try_for_each(|filter| run(&mut scenarios(filter))),
        Verb::Pressure => {
            let mut test = scenarios("pressure");
            run(test.env("PALISADE_PRESSURE_NAMESPACES", "3500").env("PALISADE_PRESSURE_ROUNDS", "200"))
        }
        Verb::Rollout => {
            let mut test = scenarios("a_rollout_promotes");
            run(test.env("PALISADE_ROLLOUT_NAMESPACES", "1000").env("PALISADE_ROLLOUT_KILLS", "20"))
        }
        Verb::Fixtures => run(scenarios("what_this_version_makes").env("PALISADE_FIXTURES", "1")),
        Verb::Ha { seconds } => run(scenarios("a_replica_takes_over").env("PALISADE_HA_SECONDS", seconds.to_string())),
        Verb::Chaos { seconds, seed } => {
            build_all()?;
            let mut chaos = command(built("palisade-chaos"));
            chaos.args(["--seconds", &seconds.to_string(), "--seed", &seed.to_string(), "--directory"]);
            run(chaos.arg(target().join("chaos")))
        }
        Verb::Scan => {
            run(&mut cargo("build --release -p palisade-controller"))?;
            let controller = target().join("release/palisade-controller");
            run(scenarios("twenty_thousand_pods").env("PALISADE_SCAN_CONTROLLER", controller))
        }
        Verb::Conformance => run(&mut cargo("test --workspace --test conformance")),
        Verb::Bounds => run(scenarios("bounds::").env("PALISADE_BOUNDS", "all")),
        Verb::Redteam { emulated } => {
            let mut test = cargo("test --workspace --test redteam -- --nocapture");
            test.envs(emulated.as_ref().map(|minor| ("PALISADE_REDTEAM_EMULATED", minor)));
            run(test.env("PALISADE_REDTEAM", "full"))
        }
        Verb::ReleaseSmokeCluster => {
            let mut test = scenarios("tutorial::the_artifacts");
            run(test.env("PALISADE_ARTIFACTS", target().join("release-artifacts")).env("PALISADE_HELM", chart::helm()?))
        }
    }
}
