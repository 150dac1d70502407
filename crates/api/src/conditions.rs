//! The conditions of a profile and their reasons: a closed set, so that alerts can rely on it.

use strum::{Display, IntoStaticStr};

/// The type of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr)]
pub enum ConditionType {
    /// The profile is understood: it compiles, and each expression passed the offline check.
    Accepted,
    /// The policies and bindings that were compiled are in the API server, and parameters were written in each
    /// namespace where that is possible. Those where it is not are counted and named in the status.
    Programmed,
    /// Each API server denied what violates the profile, pods and workloads, and admitted what complies; and
    /// pods are mutated as the profile says.
    Enforced,
}

/// Why a condition has its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr)]
pub enum Reason {
    /// Accepted: true.
    Accepted,
    /// Accepted is false: a setting, parameter or reference is wrong. What was enforced before stays.
    InvalidSpec,
    /// Accepted is false: the offline check refused what was compiled. What was enforced before stays.
    CheckFailed,
    /// Accepted is false: the API server rejects what was compiled. What was enforced before stays. It is asked again.
    RefusedByApiServer,
    /// Accepted is unknown: the check panicked, which is an error of Palisade. It is made again.
    InternalError,
    /// Programmed: true.
    Programmed,
    /// Programmed is false: the controller has not finished.
    Pending,
    /// Programmed is false: a policy or a binding could not be written. It is tried again.
    ApplyFailed,
    /// Programmed is false: the profile is not accepted, and an earlier state of it is in force.
    LastGoodInForce,
    /// Programmed or Enforced is false: the profile is not accepted, and no earlier state of it is known.
    NotAccepted,
    /// Enforced: true.
    ProbesPassed,
    /// Enforced is false: an API server admitted a pod or a workload that violates the profile.
    ViolationAdmitted,
    /// Enforced is false: an API server denied a pod or a workload that complies with the profile.
    CompliantPodDenied,
    /// Enforced is false: the policies are in force, and nobody mutates pods as the profile says.
    NotMutated,
    /// Enforced is unknown: an API server could not be asked, or something else answered.
    ProbeFailed,
    /// Enforced is unknown: the probe namespace cannot carry the labels that the profile selects.
    ProbeImpossible,
    /// Enforced is false: the profile's stage warns and does not deny.
    StageWarn,
    /// Enforced is false: the profile's stage only writes to the audit log.
    StageAudit,
    /// Enforced is false: the profile allows everything.
    NothingRestricted,
    /// Enforced is false: what the API server has is not yet what the profile says.
    NotProgrammed,
}

impl ConditionType {
    /// All of them, in the order of the pipeline.
    pub const ALL: [Self; 3] = [Self::Accepted, Self::Programmed, Self::Enforced];
}
