//! The groups of scenarios, and the list with which each module registers its scenarios.

use crate::lanes::Scenario;

/// Scenarios that share a control plane. `main` has the order of the groups and their control planes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Group {
    /// Repairs, deletions, and a restart of the API server.
    Maintained,
    /// Edits of profiles, and their policies meanwhile.
    Reconciled,
    /// On the oldest minor.
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
    /// The environment variable that must be set.
    pub(crate) needs: Option<&'static str>,
}

/// Registers the scenarios of a module as its `SCENARIOS`: each function with its groups, and its place in each of them. With
/// `if "VARIABLE"` a scenario runs only if the environment has this variable.
macro_rules! scenarios {
    ($($name:ident: $($group:ident $($place:literal)?),+ $(if $variable:literal)?;)+) => {
        pub(crate) const SCENARIOS: &[$crate::groups::Registered] = &[$($crate::groups::Registered {
            path: concat!(module_path!(), "::", stringify!($name)),
            run: |cluster| Box::pin($name(cluster)),
            places: &[$(($crate::groups::Group::$group, $crate::groups::first![$($place,)? 0])),+],
            needs: $crate::groups::first![$(Some($variable),)? None],
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

/// The scenarios of a group, in their order.
pub(crate) fn of(modules: &[&'static [Registered]], group: Group) -> Vec<(&'static str, Scenario)> {
    let all = modules.iter().flat_map(|module| module.iter());
    let runs = |one: &&Registered| one.needs.is_none_or(|variable| std::env::var_os(variable).is_some());
    let place = |one: &'static Registered| {
        let (_, place) = one.places.iter().find(|(of, _)| *of == group)?;
        let (_, name) = one.path.split_once("::")?;
        Some((*place, name, one.run))
    };
    let mut found: Vec<_> = all.filter(runs).filter_map(place).collect();
    found.sort_unstable_by_key(|(place, name, _)| (*place, *name));
    for pair in found.windows(2) {
        assert_ne!(pair[0].0, pair[1].0, "{group:?}: {} and {} have the same place", pair[0].1, pair[1].1);
    }
    found.into_iter().map(|(_, name, run)| (name, run)).collect()
}
