//! What Palisade promises, shown on a real API server. One binary, which starts and stops its control planes.
#![allow(clippy::disallowed_methods, reason = "tests on a real API server need a clock and files")]

mod access;
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
mod features;
mod fields;
mod files;
mod former;
mod gate;
mod generate;
mod generate_scale;
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
mod object_fixtures;
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

use std::{collections::BTreeSet, process::ExitCode, sync::LazyLock};

use libtest_mimic::Arguments;
use palisade_api::names;
use palisade_controlplane::{Builder, ControlPlane, Version};
use tokio::runtime::Runtime;

use crate::{
    groups::{Group, Registered},
    lanes::Lanes,
};

/// How many control planes run at once. Scenarios mostly wait, so it may be more than the cores.
const LANES: usize = 3;

/// The scenarios of all modules.
const MODULES: &[&[Registered]] = &[
    access::SCENARIOS,
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
    features::SCENARIOS,
    fields::SCENARIOS,
    files::SCENARIOS,
    former::SCENARIOS,
    gate::SCENARIOS,
    generate::SCENARIOS,
    generate_scale::SCENARIOS,
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
    object_fixtures::SCENARIOS,
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
    let version = match Version::of_environment() {
        Ok(version) => version,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let through_minors = match upgrade::versions() {
        Ok(versions) => {
            versions.first().map_or_else(ControlPlane::builder, |first| ControlPlane::builder().version(first))
        }
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
    };
    let lanes = Lanes::new(LANES);
    let mut known = BTreeSet::new();
    let mut all = Vec::new();
    for (emulated, what, control_plane, group) in groups(own_policies, with_own_profile, through_minors) {
        if group == Group::Upgraded && !version.is_default() {
            // An upgrade begins with an emulated minor.
            continue;
        }
        let (minor, kind, control_plane) = on(version, emulated, what, control_plane, group);
        let mut scenarios = groups::of(MODULES, group, minor);
        if version.is_default() {
            assert!(scenarios.iter().all(|one| one.lacking.is_none()), "{kind}: a scenario would run on no minor");
        } else {
            // A group that emulates an older minor has the same API server as others here.
            scenarios.retain(|one| known.insert(one.name));
        }
        all.extend(lanes.trials((&kind, minor), control_plane, scenarios));
    }
    let all: Vec<_> = all
        .into_iter()
        .map(|trial| if trial.name().contains("corpus_pods") { mutation::others().of(trial) } else { trial })
        .collect();
    // Each waits for its control plane.
    arguments.test_threads = Some(all.len());
    let conclusion = libtest_mimic::run(&arguments, all);
    lanes.print_slowest();
    lanes.print_failures();
    conclusion.exit_code()
}

/// The groups with their control planes: the minor that the API server emulates, the name of the group, the rest.
fn groups(
    own_policies: Builder,
    with_own_profile: Builder,
    through_minors: Builder,
) -> Vec<(Option<u8>, &'static str, Builder, Group)> {
    let plain = ControlPlane::builder;
    // Where no scenario reads the status of policies: checking their types took an eighth of the processors.
    let without_type_checks = || plain().type_checks(false);
    let replicas = || without_type_checks().controllers(["replicaset-controller"]);
    let controllers = || plain().controllers(palisade_tests::CONTROLLERS);
    let oldest = Some(33);
    // The longest come first: at the end no core waits for one of them.
    vec![
        (None, "", without_type_checks(), Group::Maintained),
        (None, "", without_type_checks(), Group::Reconciled),
        (oldest, "", plain(), Group::Oldest),
        (None, "", plain(), Group::Answers),
        // Its ReplicaSets have pods.
        (None, "", replicas(), Group::Judged),
        (None, "", without_type_checks(), Group::Large),
        (oldest, "", replicas().audit(true), Group::OldestRollouts),
        (oldest, "", without_type_checks(), Group::Webhooks),
        (Some(35), "", plain(), Group::Middle),
        // On a loaded machine the largest requests take longer than a minute.
        (None, "", without_type_checks().apiserver_flags(["--request-timeout=20m"]), Group::Alone),
        (Some(35), " beta", plain().apiserver_flags(["--feature-gates=MutatingAdmissionPolicy=true"]), Group::Beta),
        (None, " confined", plain(), Group::Unprivileged),
        (None, " audited", plain().audit(true), Group::Audited),
        (oldest, " confined", plain(), Group::Confined),
        (None, " with policies of its own", own_policies, Group::OwnPolicies),
        (None, " with a profile of its own", with_own_profile, Group::OwnProfile),
        (oldest, " upgraded", plain(), Group::Upgraded),
        (None, " through minors", through_minors, Group::Minors),
        (None, " with large objects", without_type_checks(), Group::Memory),
        (None, " pods of others", without_type_checks(), Group::Others),
        (None, " to make fixtures", plain(), Group::Fixtures),
        (oldest, " with Prometheus", plain(), Group::Prometheus),
        (None, " by helm", controllers(), Group::Helm),
        (None, " with a release", controllers(), Group::Release),
    ]
}

/// The minor of a group's API server, the kind of its scenarios, and its control plane. Only programs of the default version
/// emulate an older minor.
fn on(
    version: &Version,
    emulated: Option<u8>,
    what: &str,
    control_plane: Builder,
    group: Group,
) -> (u8, String, Builder) {
    let Some(minor) = emulated.filter(|_| version.is_default()) else {
        return (version.number, format!("{}{what}", version.minor), control_plane);
    };
    let control_plane = control_plane.emulated_version(format!("1.{minor}"));
    // Otherwise it would serve the beta and not act by it.
    let acts: &[&str] = if group == Group::Beta { &["--emulation-forward-compatible=true"] } else { &[] };
    (minor, format!("1.{minor}{what}"), control_plane.apiserver_flags(acts.iter().copied()))
}
