//! `spec.enforcement`: how far a profile is enforced.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What happens to a pod that violates the profile.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Enforcement {
    /// Deny: the pod is refused. Warn: it is admitted, its author is warned and the audit log has a note.
    /// Audit: it is admitted, and the audit log has a note.
    #[serde(default)]
    pub pods: Stage,
    /// What happens to a Deployment, ReplicaSet, ReplicationController, DaemonSet, StatefulSet, Job, CronJob or
    /// PodTemplate whose pod template violates the profile, with the words of pods; Off: templates are not judged,
    /// only the pods that are made of them.
    #[serde(default)]
    pub workloads: WorkloadStage,
    /// Whether a namespace can be at a stage of its own. Uniform: all are at the stages above. `ByLabel`: the value of a
    /// namespace's label stage.toolsecurity.dev/PROFILE, which is Deny, Warn or Audit, is its stage, for pods and, unless
    /// workloads is Off, for workloads. A namespace without the label is at the stages above, and with any other value at
    /// Deny.
    #[serde(default, skip_serializing_if = "NamespaceStages::is_uniform")]
    pub namespace_stages: NamespaceStages,
}

/// Whether a namespace can be at a stage of its own.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum NamespaceStages {
    /// No: all namespaces are at the stages of the profile.
    #[default]
    Uniform,
    /// The label stage.toolsecurity.dev/PROFILE of a namespace wins over the stages of the profile.
    ByLabel,
}

impl NamespaceStages {
    /// Whether all namespaces are at the stages of the profile.
    pub fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }
}

/// How far a profile is enforced.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum Stage {
    /// Violations are refused.
    #[default]
    Deny,
    /// Violations are admitted with a warning and a note in the audit log.
    Warn,
    /// Violations are admitted with a note in the audit log.
    Audit,
}

impl Stage {
    /// All, the strictest first.
    pub const ALL: [Self; 3] = [Self::Deny, Self::Warn, Self::Audit];

    /// The stage of a namespace by the value of its label: what is neither Warn nor Audit is Deny.
    pub fn of_label(value: &str) -> Self {
        Self::ALL.into_iter().find(|stage| stage.to_string() == value).unwrap_or(Self::Deny)
    }
}

/// How far a profile is enforced on pod templates.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum WorkloadStage {
    /// Violations are refused.
    Deny,
    /// Violations are admitted with a warning and a note in the audit log.
    #[default]
    Warn,
    /// Violations are admitted with a note in the audit log.
    Audit,
    /// Templates are not judged.
    Off,
}

impl WorkloadStage {
    /// The stage; `None` if templates are not judged.
    pub fn stage(self) -> Option<Stage> {
        match self {
            Self::Deny => Some(Stage::Deny),
            Self::Warn => Some(Stage::Warn),
            Self::Audit => Some(Stage::Audit),
            Self::Off => None,
        }
    }
}
