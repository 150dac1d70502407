//! How updates of existing objects are judged where parameters may be missing.
//!
//! The API server looks for parameters before it evaluates anything, and denies a request if there are none: also the
//! one that removes the last finalizer in a namespace that is being deleted, where parameters went first or never came.
//! So requests that can remove a finalizer have a binding of their own (ADR 22).

use palisade_api::ToolSecurityProfile;

use crate::{Custom, Lowered, exceptions::excepted_checks};

/// How updates of pods are judged. New pods, their ephemeral containers and resizes are always judged with parameters,
/// if the profile has any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PodUpdates {
    /// As creation: there are no parameters.
    AsCreation,
    /// Without parameters, by the checks that are the same in all namespaces. No update can change what the other
    /// checks restrict.
    WithoutParameters,
    /// By all checks where there are parameters: parameters restrict some of what an update can change.
    WithParameters,
}

impl PodUpdates {
    pub fn new(profile: &ToolSecurityProfile, rules: &[Lowered], customs: &[Custom], parameterized: bool) -> Self {
        let excepted = excepted_checks(&profile.spec);
        let by_parameters = rules.iter().any(|one| {
            one.check.restricts_what_updates_change() && (one.reads_parameters || excepted.contains(one.check.id))
        });
        // Nobody knows which fields a custom check reads.
        let by_customs = customs.iter().any(|one| one.mentions_params() || excepted.contains(one.check.id.as_str()));
        match (parameterized, by_parameters || by_customs) {
            (false, _) => Self::AsCreation,
            (true, false) => Self::WithoutParameters,
            (true, true) => Self::WithParameters,
        }
    }
}
