//! Checks with a separate stage (`spec.enforcement.checks`): an additional policy evaluates them, with bindings for all
//! namespaces (ADR 50).

use std::collections::BTreeSet;

use palisade_api::{Diagnostic, Enforcement, Stage};
use palisade_kube_json::field_path::FieldPath;

/// Where a profile has them.
const PATH: &str = "spec.enforcement.checks";

/// The checks with a separate stage.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnStage<'a> {
    /// Their stage.
    pub stage: Stage,
    enforcement: &'a Enforcement,
}

impl<'a> OwnStage<'a> {
    /// Of a profile; `None` if no check has a separate stage.
    pub fn of(enforcement: &'a Enforcement) -> Option<Self> {
        enforcement.checks.values().next().map(|stage| Self { stage: *stage, enforcement })
    }

    /// Of a shape whose objects are at `stage` otherwise; `None` if the stage of the checks makes no difference there.
    pub fn in_shape(self, stage: Stage) -> Option<Self> {
        let is_same = self.enforcement.namespace_stages.is_uniform() && self.stage == stage;
        (!is_same).then_some(self)
    }

    /// Whether a check has it.
    pub fn has(self, check: &str) -> bool {
        self.enforcement.checks.contains_key(check)
    }

    /// Whether the policy of the shape evaluates a check. It evaluates all checks if those with a separate stage are in
    /// Deny: so no check is without a policy while the profile changes.
    pub fn shape_judges(self, check: &str) -> bool {
        self.stage == Stage::Deny || !self.has(check)
    }
}

/// The errors in `spec.enforcement.checks` of a profile that makes these checks.
pub(crate) fn mistakes(enforcement: &Enforcement, made: &BTreeSet<&str>) -> Vec<Diagnostic> {
    let Some(own) = OwnStage::of(enforcement) else { return Vec::new() };
    let at = |id: &str| FieldPath::from(PATH).child(id);
    let unknown = enforcement.checks.keys().filter(|id| !made.contains(id.as_str()));
    let mut found: Vec<_> = unknown
        .map(|id| {
            let made: Vec<_> = made.iter().copied().collect();
            Diagnostic::new(at(id), format!("{id:?} is not a check of this profile"))
                .help(format!("the checks of the profile are {}", made.join(", ")))
        })
        .collect();
    // The CRD says the same, but a file may never have met an API server.
    if let Some((id, stage)) = enforcement.checks.iter().find(|(_, stage)| **stage != own.stage) {
        found.push(
            Diagnostic::new(at(id), format!("has the stage {stage}, but others have {}", own.stage))
                .help("one policy evaluates all checks with a separate stage; use the same stage for all, or use pods and workloads"),
        );
    }
    if found.is_empty() && made.iter().all(|check| !own.shape_judges(check)) {
        found.push(
            Diagnostic::new(PATH, "must not list all checks of the profile")
                .help(format!("remove it, and set pods and workloads to {}", own.stage)),
        );
    }
    found
}
