//! The groups of scenarios, and the list with which each module registers its scenarios.

use palisade_controlplane::Feature;

use crate::lanes::{Listed, Scenario};

/// Scenarios that share a control plane. `main` has the order of the groups and their control planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Repairs, deletions, and a restart of the API server.
    Maintained,
    /// Edits of profiles, and their policies meanwhile.
    Reconciled,
    /// On the oldest minor, emulated. Nightly tests run all scenarios on its own programs.
    Oldest,
    /// Compared with offline answers. Some read what the API server reports about types.
    Answers,
    /// Pods and workloads of tenants.
    Judged,
    /// Thousands of namespaces, or dozens of profiles.
    Large,
    /// Rollouts on the oldest minor, with pods of ReplicaSets.
    OldestRollouts,
    /// Where the webhook mutates.
    Webhooks,
    /// On a minor between the oldest and the newest.
    Middle,
    /// An API server stops to watch parameters of a built-in kind for other policies, and does not see them again.
    Alone,
    /// With MutatingAdmissionPolicy as a beta.
    Beta,
    /// Requests that must be denied to a service account.
    Unprivileged,
    /// With an audit log, which shows all requests. In `Unprivileged`, requests are tried that must be denied.
    Audited,
    /// Confinement of the controller on the oldest minor.
    Confined,
    /// Policies in a file of the API server.
    OwnPolicies,
    /// A profile in a file of the API server.
    OwnProfile,
    /// An upgrade of the API server.
    Upgraded,
    /// An upgrade of the programs through several minors.
    Minors,
    /// Other scenarios would list these objects.
    Memory,
    /// Pods of other projects, in the same namespaces as `Judged`.
    Others,
    /// It writes into the repository.
    Fixtures,
    /// With a Prometheus.
    Prometheus,
    /// Installed by helm.
    Helm,
    /// Installed from the artefacts of a release.
    Release,
}

/// A scenario with its groups.
pub(crate) struct Registered {
    /// The path of the function, from the root of this binary.
    pub(crate) path: &'static str,
    pub(crate) run: Scenario,
    /// The groups that run it. Within a group, scenarios run in the order of these numbers.
    pub(crate) places: &'static [(Group, u16)],
    /// The features of an API server without which it is skipped.
    pub(crate) features: &'static [&'static Feature],
    /// The environment variable that must be set.
    pub(crate) variable: Option<&'static str>,
}

/// With this variable in the environment, only [`QUICK`] runs.
const ONLY_QUICK: &str = "PALISADE_QUICK";

/// The scenarios of `make test`: each stage of the controller, each engine and each command of the tutorial once.
/// `make test-all` runs all scenarios.
const QUICK: &[(Group, &str)] = &[
    (Group::Answers, "admission::offline_verdicts_match_the_api_server"),
    (Group::Answers, "crds::invalid_profiles_are_rejected_by_the_crd"),
    (Group::Answers, "exceptions::an_approved_exception_holds_for_its_workload_until_its_end"),
    (Group::Judged, "enforcement::compliant_jobs_pass_and_every_rule_denies"),
    (Group::Judged, "workloads::every_workload_kind_is_judged_by_its_template"),
    (Group::Judged, "mutation::native_policy_mutates_like_the_patch"),
    (Group::Judged, "namespaces::a_new_namespace_never_admits_a_violation"),
    (Group::Judged, "namespaces::invalid_parameter_fails_only_its_namespace"),
    (Group::Judged, "rollout::a_rollout_promotes_what_complies_and_holds_the_rest"),
    (Group::Judged, "scan::the_scan_reports_what_the_api_server_would_deny"),
    (Group::Judged, "tutorial::every_command_of_the_tutorial_prints_what_the_page_shows"),
    (Group::Maintained, "lifecycle::an_invalid_profile_changes_nothing"),
    (Group::Maintained, "lifecycle::drift_is_repaired"),
    (Group::Maintained, "lifecycle::deleting_the_profile_frees_every_namespace"),
    (Group::Maintained, "lifecycle::api_server_restart_admits_no_violation"),
    (Group::Reconciled, "refuted::an_edit_that_probes_refute_is_taken_back"),
    (Group::Unprivileged, "confinement::controller_is_confined_to_its_own_objects"),
    (Group::Webhooks, "mutation::webhook_mutates_like_the_patch"),
];

/// Registers the scenarios of a module as its `SCENARIOS`: each function with its groups, and its place in each of them. With
/// `needs FEATURE` a scenario is skipped where the API server lacks this feature, and with `if "VARIABLE"` it runs only if the
/// environment has this variable.
macro_rules! scenarios {
    ($($name:ident: $($group:ident $($place:literal)?),+ $(needs $($feature:ident),+)? $(if $variable:literal)?;)+) => {
        pub(crate) const SCENARIOS: &[$crate::groups::Registered] = &[$($crate::groups::Registered {
            path: concat!(module_path!(), "::", stringify!($name)),
            run: |cluster| Box::pin($name(cluster)),
            places: &[$(($crate::groups::Group::$group, $crate::groups::first![$($place,)? 0])),+],
            features: &[$($(&palisade_controlplane::Feature::$feature),+)?],
            variable: $crate::groups::first![$(Some($variable),)? None],
        }),+];
    };
}

/// The first of one or two expressions.
macro_rules! first {
    [$first:expr $(, $default:expr)?] => {
        $first
    };
}

pub(crate) use {first, scenarios};

/// The scenarios of a group, in their order, on an API server of a minor.
pub(crate) fn of(modules: &[&'static [Registered]], group: Group, minor: u8) -> Vec<Listed> {
    let all = modules.iter().flat_map(|module| module.iter());
    let runs = |one: &&Registered| one.variable.is_none_or(|variable| std::env::var_os(variable).is_some());
    let place = |one: &'static Registered| {
        let (_, place) = one.places.iter().find(|(of, _)| *of == group)?;
        let (_, name) = one.path.split_once("::")?;
        Some((*place, Listed { name, run: one.run, lacking: Feature::lacking(one.features, minor) }))
    };
    let only_quick = std::env::var_os(ONLY_QUICK).is_some();
    let is_selected = |name: &str| !only_quick || QUICK.contains(&(group, name));
    let mut found: Vec<_> = all.filter(runs).filter_map(place).collect();
    found.sort_unstable_by_key(|(place, one)| (*place, one.name));
    for pair in found.windows(2) {
        assert_ne!(pair[0].0, pair[1].0, "{group:?}: {} and {} have the same place", pair[0].1.name, pair[1].1.name);
    }
    for (_, name) in QUICK.iter().filter(|(of, _)| *of == group) {
        assert!(found.iter().any(|(_, known)| known.name == *name), "{group:?} has no scenario {name}");
    }
    found.into_iter().map(|(_, one)| one).filter(|one| is_selected(one.name)).collect()
}
