//! The API of Palisade, group `toolsecurity.dev/v1alpha1`: [`ToolSecurityProfile`] (written by administrators),
//! [`ToolSecurityException`] (written by tenants), [`ToolSecurityParams`] (written by Palisade into each selected
//! namespace), [`ToolSecurityReport`] (written by the background scan), and the names, labels, conditions and reasons
//! that both sides rely on.
//!
//! This crate is pure: no I/O, no clock, no environment.
#![warn(missing_docs)]

pub mod conditions;
pub mod crd;
mod custom_check;
mod enforcement;
mod exception;
mod generate;
pub mod names;
mod params;
mod profile;
mod published;
mod report;
pub mod revision;
mod rollout;
mod time;

pub use custom_check::{CustomCheck, CustomDefault, CustomTarget};
pub use enforcement::{Enforcement, NamespaceStages, OptionalStage, Stage, Stages};
pub use exception::{
    Approval, ApprovalState, ExceptionScope, ScopeKind, ToolSecurityException, ToolSecurityExceptionSpec,
    ToolSecurityExceptionStatus,
};
pub use generate::{DeletionPolicy, GeneratedStatus, ObjectTemplate};
pub use palisade_checks::{
    Diagnostic, Level, Location, Origin, ParameterName, ParameterType, Resolved, Settings, Values, catalogue, objects,
    settings,
    settings::{ObjectKind, ObjectOperation},
};
pub use params::{
    ContainerException, FailedNamespace, MAX_CONTAINERS, MAX_WORKLOADS, ToolSecurityParams, ToolSecurityParamsSpec,
};
pub use profile::{
    EngineInForce, Exception, ExceptionCounts, ExceptionRequests, Exemptions, IntOrText, MutationStatus,
    NamespaceCounts, Override, Parameter, PssEquivalent, RequestCounts, Source, StageCounts, ToolSecurityProfile,
    ToolSecurityProfileSpec, ToolSecurityProfileStatus,
};
pub use published::Published;
pub use report::{
    MAX_NOT_JUDGED, MAX_VIOLATIONS, NotJudged, ReportedViolation, ScanStatus, ToolSecurityReport,
    ToolSecurityReportSpec,
};
pub use rollout::{
    HELD_BY_VIOLATIONS, HeldNamespace, OnDenial, OnViolation, Rollout, RolloutPhase, RolloutStatus, Wave,
};
