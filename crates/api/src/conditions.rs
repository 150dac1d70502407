//! The conditions of a profile and of an exception, and their reasons: closed sets, so that alerts can rely on them.

use strum::{Display, EnumString, IntoStaticStr};

/// The type of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr)]
pub enum ConditionType {
    /// The profile is valid: it compiles, and each expression passed the offline check.
    Accepted,
    /// The compiled policies and bindings are in the API server, and so are the parameters of every namespace with
    /// valid ones. The status counts and lists the other namespaces.
    Programmed,
    /// Every API server denied dry runs of violating pods and workloads and admitted compliant ones, and mutation was
    /// observed.
    Enforced,
    /// Summary of the other conditions for kubectl, Argo CD and Flux: the profile is in effect. True in the stages
    /// Audit and Warn once the profile is programmed.
    Ready,
    /// The controller is working or will retry automatically (kstatus).
    Reconciling,
    /// Retries cannot help: the profile or the cluster needs a manual fix (kstatus).
    Stalled,
    /// All waves of `spec.rollout` are complete, and all their namespaces are promoted. Only for a profile with a
    /// rollout; it does not affect Ready.
    RolledOut,
    /// All objects of `spec.generate` exist as specified, and no others. Only for a profile with `spec.generate`; it
    /// does not affect Ready.
    Generated,
}

/// Reason of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, IntoStaticStr)]
pub enum Reason {
    /// Accepted: true.
    Accepted,
    /// Accepted is false: a setting, parameter or reference is invalid. The last accepted generation stays in effect.
    InvalidSpec,
    /// Accepted is false: the offline check rejected the compiled objects. The last accepted generation stays in
    /// effect.
    CheckFailed,
    /// Accepted is false: the API server rejects the compiled objects. The last accepted generation stays in effect.
    /// The controller will retry.
    RefusedByApiServer,
    /// Accepted is false: a bug in Palisade prevents compilation of the profile. The last accepted generation stays in
    /// effect. The controller will retry.
    InternalError,
    /// Programmed: true.
    Programmed,
    /// Programmed is false: the controller has not finished.
    Pending,
    /// Programmed is false: a policy or a binding could not be written. The controller will retry.
    ApplyFailed,
    /// Programmed is false: the profile is not accepted, and an earlier generation is in effect.
    LastGoodInForce,
    /// Programmed or Enforced is false: the profile is not accepted, and no earlier generation is known.
    NotAccepted,
    /// Enforced: true.
    ProbesPassed,
    /// Enforced is false: an API server admitted a pod or a workload that violates the profile.
    ViolationAdmitted,
    /// Enforced is false: an API server denied a pod or a workload that complies with the profile.
    CompliantPodDenied,
    /// Enforced is false: the policies are in effect, but the mutation that the profile specifies was not observed.
    NotMutated,
    /// Enforced is unknown: an API server could not be probed, or another component answered.
    ProbeFailed,
    /// Enforced is unknown: the probe namespace cannot have the labels that the profile selects.
    ProbeImpossible,
    /// Enforced is false: the stage of the profile is Warn.
    StageWarn,
    /// Enforced is false: the stage of the profile is Audit.
    StageAudit,
    /// Enforced is false: no check of the profile restricts pods, workloads or other objects.
    NothingRestricted,
    /// Enforced is false: the compiled objects are not yet in the API server.
    NotProgrammed,
    /// Accepted, Programmed and Enforced are false: the profile is being deleted, and the controller removes the
    /// objects that it generated for it.
    Deleting,
    /// `RolledOut`: true.
    Completed,
    /// `RolledOut` is false: namespaces are being promoted, or a soak time is running.
    InProgress,
    /// `RolledOut` is false: all waves are complete, and some namespaces are held.
    Held,
    /// `RolledOut` is false: spec.rollout.pause is true.
    Paused,
    /// `RolledOut` is false: a namespace violates the profile, or a pod was denied during the soak time.
    Stopped,
    /// `RolledOut` is false: the controller cannot evaluate or promote namespaces. It will retry.
    RolloutFailed,
    /// `Generated`: true.
    ObjectsReady,
    /// `Generated` is false: objects are being written.
    WritingObjects,
    /// `Generated` is false: objects could not be computed, written or deleted in some namespaces. The controller will
    /// retry.
    ObjectsFailed,
}

/// The type of a condition of a ToolSecurityException.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Display, IntoStaticStr)]
pub enum ExceptionCondition {
    /// The current spec is approved.
    Approved,
    /// It is in effect: it is in the parameters of its namespace, and it has not expired.
    Ready,
    /// It cannot take effect until the exception, the profile or the namespace is changed (kstatus).
    Stalled,
    /// An existing object would violate the profile without it. Only if the background scan is enabled.
    InUse,
}

/// Reason of a condition of a ToolSecurityException.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Display, EnumString, IntoStaticStr)]
pub enum ExceptionReason {
    /// Ready is unknown or false: the controller has not yet evaluated it or written the parameters of the namespace.
    Pending,
    /// It is not approved.
    AwaitingApproval,
    /// The approval is void: it is for another generation or another object of the same name, or the exception is being
    /// deleted.
    ApprovalOutdated,
    /// Approved is true.
    Approved,
    /// Ready is true.
    InForce,
    /// It has expired.
    Expired,
    /// The profile does not allow exception requests for these checks.
    NotCovered,
    /// The profile does not select the namespace.
    NamespaceNotSelected,
    /// The profile does not exist.
    ProfileNotFound,
    /// The namespace has the maximum number of exceptions.
    TooMany,
    /// `InUse` is true.
    ExemptsObjects,
    /// `InUse` is false: no existing object needs it.
    ExemptsNothing,
}

impl ExceptionReason {
    /// True if, as the reason of Ready, it lasts until the exception, the profile or the namespace is changed.
    pub fn is_final(self) -> bool {
        matches!(
            self,
            Self::Expired | Self::NotCovered | Self::NamespaceNotSelected | Self::ProfileNotFound | Self::TooMany
        )
    }
}

/// Meaning of a reason for clients that wait for a profile. The names are those of kstatus
/// (`sigs.k8s.io/cli-utils/pkg/kstatus`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The profile is in effect.
    Current,
    /// The controller is working.
    InProgress,
    /// An error occurred; the controller will retry.
    Retrying,
    /// An error occurred; a manual fix is required.
    Failed,
}

impl ConditionType {
    /// All condition types: the pipeline in order, the summaries, the rollout, the generated objects.
    pub const ALL: [Self; 8] = [
        Self::Accepted,
        Self::Programmed,
        Self::Enforced,
        Self::Ready,
        Self::Reconciling,
        Self::Stalled,
        Self::RolledOut,
        Self::Generated,
    ];

    /// True if it summarizes other conditions.
    pub fn is_summary(self) -> bool {
        matches!(self, Self::Ready | Self::Reconciling | Self::Stalled)
    }
}

impl Reason {
    /// Its meaning for clients that wait for the profile.
    pub fn outcome(self) -> Outcome {
        match self {
            Self::Accepted
            | Self::Programmed
            | Self::ProbesPassed
            | Self::StageWarn
            | Self::StageAudit
            | Self::NothingRestricted
            | Self::Completed
            | Self::ObjectsReady
            | Self::Paused => Outcome::Current,
            Self::Pending | Self::NotProgrammed | Self::Deleting | Self::InProgress | Self::WritingObjects => {
                Outcome::InProgress
            }
            Self::InternalError | Self::ApplyFailed | Self::ProbeFailed | Self::RolloutFailed | Self::ObjectsFailed => {
                Outcome::Retrying
            }
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
