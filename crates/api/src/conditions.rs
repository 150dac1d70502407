//! The conditions of a profile and of an exception, and their reasons: closed sets, so that alerts can rely on them.

use strum::{Display, EnumString, IntoStaticStr};

/// The type of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr)]
pub enum ConditionType {
    /// The profile is understood: it compiles, and each expression passed the offline check.
    Accepted,
    /// The policies and bindings that were compiled are in the API server, and so are the parameters of each namespace
    /// that has valid ones. The status counts and names the other namespaces.
    Programmed,
    /// Each API server denied dry runs of violating pods and workloads, and admitted complying ones; and pods are
    /// mutated as the profile says.
    Enforced,
    /// What the other conditions amount to, as kubectl, Argo CD and Flux understand it: the profile does what it asks for.
    /// True in the stages Audit and Warn once the profile is programmed.
    Ready,
    /// The controller is still at work, or will retry by itself (kstatus).
    Reconciling,
    /// Retries cannot help: somebody must change the profile or the cluster (kstatus).
    Stalled,
    /// All waves of `spec.rollout` are over, and all their namespaces are promoted. Only of a profile with a rollout; it
    /// says nothing about Ready.
    RolledOut,
}

/// Why a condition has its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr)]
pub enum Reason {
    /// Accepted: true.
    Accepted,
    /// Accepted is false: a setting, parameter or reference is wrong. What was enforced before stays.
    InvalidSpec,
    /// Accepted is false: the offline check rejected the compiled objects. What was enforced before stays.
    CheckFailed,
    /// Accepted is false: the API server rejects the compiled objects. What was enforced before stays. The controller
    /// tries again.
    RefusedByApiServer,
    /// Accepted is false: a bug in Palisade keeps the profile from being compiled. What was enforced before stays. The
    /// controller tries again.
    InternalError,
    /// Programmed: true.
    Programmed,
    /// Programmed is false: the controller has not finished.
    Pending,
    /// Programmed is false: a policy or a binding could not be written. The controller tries again.
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
    /// Enforced is unknown: an API server could not be probed, or something else answered.
    ProbeFailed,
    /// Enforced is unknown: the probe namespace cannot carry the labels that the profile selects.
    ProbeImpossible,
    /// Enforced is false: the profile's stage warns and does not deny.
    StageWarn,
    /// Enforced is false: the profile's stage only writes to the audit log.
    StageAudit,
    /// Enforced is false: the profile allows everything.
    NothingRestricted,
    /// Enforced is false: the API server does not yet have what the profile compiles to.
    NotProgrammed,
    /// Accepted, Programmed and Enforced are false: the profile is being deleted, and the controller removes what it
    /// generated for it.
    Deleting,
    /// `RolledOut`: true.
    Completed,
    /// `RolledOut` is false: namespaces are promoted, or a soak time passes.
    InProgress,
    /// `RolledOut` is false: all waves are over, and some namespaces stay where they are.
    Held,
    /// `RolledOut` is false: spec.rollout.pause is true.
    Paused,
    /// `RolledOut` is false: a namespace violates the profile, or a pod was denied during the soak time.
    Stopped,
    /// `RolledOut` is false: the controller cannot judge or promote. It tries again.
    RolloutFailed,
}

/// The type of a condition of a ToolSecurityException.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr)]
pub enum ExceptionCondition {
    /// Somebody has approved what the spec says now.
    Approved,
    /// It is in force: it stands in the parameters of its namespace, and its time is not over.
    Ready,
    /// It can have no effect before somebody changes it, the profile or the namespace (kstatus).
    Stalled,
    /// Something that exists would violate the profile without it. Only where the background scan is on.
    InUse,
}

/// Why a condition of a ToolSecurityException has its status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, IntoStaticStr)]
pub enum ExceptionReason {
    /// Ready is unknown or false: the controller has yet to look at it, or to write the parameters of the namespace.
    Pending,
    /// Nobody has approved it.
    AwaitingApproval,
    /// An approval is there, of another generation or of another object of its name; or it is being deleted.
    ApprovalOutdated,
    /// Approved is true.
    Approved,
    /// Ready is true.
    InForce,
    /// Its time is over.
    Expired,
    /// The profile does not let tenants ask for that.
    NotCovered,
    /// The profile does not select the namespace.
    NamespaceNotSelected,
    /// There is no such profile.
    ProfileNotFound,
    /// The namespace has as many exceptions as its parameters can hold.
    TooMany,
    /// `InUse` is true.
    ExemptsObjects,
    /// `InUse` is false: nothing that exists needs it.
    ExemptsNothing,
}

impl ExceptionReason {
    /// Whether, as the reason of Ready, it stays until somebody changes the exception, the profile or the namespace.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Expired | Self::NotCovered | Self::NamespaceNotSelected | Self::ProfileNotFound | Self::TooMany
        )
    }
}

/// What a reason means for whoever waits for a profile. The names are those of kstatus
/// (`sigs.k8s.io/cli-utils/pkg/kstatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The profile does what it asks for.
    Current,
    /// The controller is at work.
    InProgress,
    /// Something failed, and the controller tries again.
    Retrying,
    /// Something failed, and somebody must act.
    Failed,
}

impl ConditionType {
    /// All of them: those of the pipeline in its order, then those that summarize them, then that of the rollout.
    pub const ALL: [Self; 7] = [
        Self::Accepted,
        Self::Programmed,
        Self::Enforced,
        Self::Ready,
        Self::Reconciling,
        Self::Stalled,
        Self::RolledOut,
    ];

    /// Whether it repeats what another condition says.
    pub fn is_summary(self) -> bool {
        matches!(self, Self::Ready | Self::Reconciling | Self::Stalled)
    }
}

impl Reason {
    /// What it means for whoever waits for the profile.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Accepted
            | Self::Programmed
            | Self::ProbesPassed
            | Self::StageWarn
            | Self::StageAudit
            | Self::NothingRestricted
            | Self::Completed
            | Self::Paused => Outcome::Current,
            Self::Pending | Self::NotProgrammed | Self::Deleting | Self::InProgress => Outcome::InProgress,
            Self::InternalError | Self::ApplyFailed | Self::ProbeFailed | Self::RolloutFailed => Outcome::Retrying,
            Self::InvalidSpec
            | Self::CheckFailed
            | Self::RefusedByApiServer
            | Self::LastGoodInForce
            | Self::NotAccepted
            | Self::ViolationAdmitted
            | Self::CompliantPodDenied
            | Self::NotMutated
            | Self::ProbeImpossible
            | Self::Held
            | Self::Stopped => Outcome::Failed,
        }
    }
}
