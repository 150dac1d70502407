//! What Palisade promises, shown on a real API server. One binary, which starts and stops its control planes.
#![allow(clippy::disallowed_methods, reason = "tests on a real API server need a clock and files")]

mod admission;
mod api_servers;
mod approvals;
mod audit;
mod bounds;
mod catalogue;
mod check;
mod confinement;
mod crds;
mod customs;
mod dashboards;
mod deletion;
mod enforcement;
mod exceptions;
mod exemptions;
mod fields;
mod files;
mod former;
mod gate;
mod groups;
mod guard;
mod helm;
mod history;
mod lanes;
mod leader;
mod lifecycle;
mod lint;
mod memory;
mod mutation;
mod mutation_cases;
mod namespaces;
mod objects;
mod own_stage;
mod parameters;
mod plugins;
mod policies;
mod policy_reports;
mod pressure;
mod privilege;
mod refuted;
mod rollout;
mod scale;
mod scan;
mod stages;
mod steering;
mod stored;
mod templates;
mod toolforge;
mod traces;
mod trail;
mod tutorial;
mod unused;
mod updates;
mod upgrade;
mod validation;
mod webhook;
mod whatif;
mod workloads;

use std::{process::ExitCode, sync::LazyLock};

use libtest_mimic::Arguments;
use palisade_api::names;
use palisade_controlplane::ControlPlane;
use tokio::runtime::Runtime;

use crate::{
    groups::{Group, Registered},
    lanes::Lanes,
};

/// How many control planes run at once. Scenarios mostly wait, so it may be more than the cores.
const LANES: usize = 3;

/// The scenarios of all modules.
const MODULES: &[&[Registered]] = &[
    admission::SCENARIOS,
    api_servers::SCENARIOS,
    approvals::SCENARIOS,
    audit::SCENARIOS,
    bounds::SCENARIOS,
    catalogue::SCENARIOS,
    check::SCENARIOS,
    confinement::SCENARIOS,
    crds::SCENARIOS,
    customs::SCENARIOS,
    dashboards::SCENARIOS,
    deletion::SCENARIOS,
    enforcement::SCENARIOS,
    exceptions::SCENARIOS,
    exemptions::SCENARIOS,
    fields::SCENARIOS,
    files::SCENARIOS,
    former::SCENARIOS,
    gate::SCENARIOS,
    guard::SCENARIOS,
    helm::SCENARIOS,
    history::SCENARIOS,
    leader::SCENARIOS,
    lifecycle::SCENARIOS,
    lint::SCENARIOS,
    memory::SCENARIOS,
    mutation::SCENARIOS,
    mutation_cases::SCENARIOS,
    namespaces::SCENARIOS,
    objects::SCENARIOS,
    own_stage::SCENARIOS,
    parameters::SCENARIOS,
    plugins::SCENARIOS,
    policies::SCENARIOS,
    policy_reports::SCENARIOS,
    pressure::SCENARIOS,
    privilege::SCENARIOS,
    refuted::SCENARIOS,
    rollout::SCENARIOS,
    scale::SCENARIOS,
    scan::SCENARIOS,
    stages::SCENARIOS,
    steering::SCENARIOS,
    stored::SCENARIOS,
    templates::SCENARIOS,
    toolforge::SCENARIOS,
    traces::SCENARIOS,
    trail::SCENARIOS,
    tutorial::SCENARIOS,
    unused::SCENARIOS,
    updates::SCENARIOS,
    upgrade::SCENARIOS,
    validation::SCENARIOS,
    webhook::SCENARIOS,
    whatif::SCENARIOS,
    workloads::SCENARIOS,
];

static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("a runtime"));

fn main() -> ExitCode {
    // What is killed and stopped must be a process.
    match std::env::args().nth(1).as_deref() {
        Some(palisade_tests::WEBHOOK) => return RUNTIME.block_on(palisade_tests::run_webhook()),
        Some(names::CONTROLLER) => return palisade_tests::run_controller(),
        Some(audit::PALISADE) => return ExitCode::from(palisade_cli::run(std::env::args_os().skip(1))),
        _ => {}
    }
    let mut arguments = Arguments::from_args();
    let with_files =
        confinement::with_policies_of_its_own().and_then(|one| Ok((one, files::with_a_profile_of_its_own()?)));
    let ((own_policies, _directory), (with_own_profile, _profile)) = match with_files {
        Ok(found) => found,
        Err(error) => {
            eprintln!("a directory of policies: {error}");
            return ExitCode::FAILURE;
        }
    };
    // Where no scenario reads the status of policies: checking their types took an eighth of the processors.
    let without_type_checks = || ControlPlane::builder().type_checks(false);
    let emulated = |version: &str| ControlPlane::builder().emulated_version(version);
    // Or it would serve the beta and not act by it.
    let acting = ["--feature-gates=MutatingAdmissionPolicy=true", "--emulation-forward-compatible=true"];
    // The longest come first: at the end no core waits for one of them.
    let groups = [
        ("1.36", without_type_checks(), Group::Maintained),
        ("1.36", without_type_checks(), Group::Reconciled),
        ("1.33", emulated("1.33"), Group::Oldest),
        ("1.36", ControlPlane::builder(), Group::Answers),
        // Its ReplicaSets have pods.
        ("1.36", without_type_checks().controllers(["replicaset-controller"]), Group::Judged),
        ("1.36", without_type_checks(), Group::Large),
        (
            "1.33",
            emulated("1.33").type_checks(false).audit(true).controllers(["replicaset-controller"]),
            Group::OldestRollouts,
        ),
        ("1.33", emulated("1.33").type_checks(false), Group::Webhooks),
        ("1.35", emulated("1.35"), Group::Middle),
        // On a loaded machine the largest requests take longer than a minute.
        ("1.36", without_type_checks().apiserver_flags(["--request-timeout=20m"]), Group::Alone),
        ("1.35 beta", emulated("1.35").apiserver_flags(acting), Group::Beta),
        ("1.36 confined", ControlPlane::builder(), Group::Unprivileged),
        ("1.36 audited", ControlPlane::builder().audit(true), Group::Audited),
        ("1.33 confined", emulated("1.33"), Group::Confined),
        ("1.36 with policies of its own", own_policies, Group::OwnPolicies),
        ("1.36 with a profile of its own", with_own_profile, Group::OwnProfile),
        ("1.33 to 1.36", emulated("1.33"), Group::Upgraded),
        ("1.36 with large objects", without_type_checks(), Group::Memory),
        ("1.36 pods of others", without_type_checks(), Group::Others),
        ("1.36 to make fixtures", ControlPlane::builder(), Group::Fixtures),
        ("1.33 with Prometheus", emulated("1.33"), Group::Prometheus),
        ("1.36 by helm", ControlPlane::builder().controllers(palisade_tests::CONTROLLERS), Group::Helm),
        ("1.36 with a release", ControlPlane::builder().controllers(palisade_tests::CONTROLLERS), Group::Release),
    ];
    let lanes = Lanes::new(LANES);
    let all: Vec<_> = groups
        .into_iter()
        .flat_map(|(kind, control_plane, group)| lanes.trials(kind, control_plane, groups::of(MODULES, group)))
        .map(|trial| if trial.name().contains("corpus_pods") { mutation::others().of(trial) } else { trial })
        .collect();
    // Each waits for its control plane.
    arguments.test_threads = Some(all.len());
    let conclusion = libtest_mimic::run(&arguments, all);
    lanes.print_slowest();
    lanes.print_failures();
    conclusion.exit_code()
}
