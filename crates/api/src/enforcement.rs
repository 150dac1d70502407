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

impl Enforcement {
    /// The stages of a namespace. `label` is the value of its label stage.toolsecurity.dev/PROFILE.
    pub fn stages(&self, label: Option<&str>) -> Stages {
        let workloads = self.workloads.stage();
        match label.filter(|_| !self.namespace_stages.is_uniform()).map(Stage::of_label) {
            Some(stage) => Stages { pods: stage, workloads: workloads.and(Some(stage)) },
            None => Stages { pods: self.pods, workloads },
        }
    }
}

/// The stages of a namespace: of its pods, and of its workloads; `None` if these are not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// What happens to pods.
    pub pods: Stage,
    /// What happens to workloads.
    pub workloads: Option<Stage>,
}

impl Stages {
    /// Whether the label of `stage` would make pods or workloads stricter, and neither weaker.
    pub fn rise_to(self, stage: Stage) -> bool {
        let all = || [Some(self.pods), self.workloads].into_iter().flatten();
        all().any(|one| stage.is_stricter_than(one)) && !all().any(|one| one.is_stricter_than(stage))
    }
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

    /// What happens to an object that violates the profile, as a predicate of the object.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Deny => "is denied",
            Self::Warn => "is admitted with a warning, and noted in the audit log",
            Self::Audit => "is admitted, and noted in the audit log",
        }
    }

    /// Whether it admits less than the other.
    pub fn is_stricter_than(self, other: Self) -> bool {
        let rank = |stage| Self::ALL.iter().position(|one| *one == stage);
        rank(self) < rank(other)
    }

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_makes_a_namespace_stricter_only_if_it_makes_nothing_weaker() {
        let stages = |pods, workloads| Stages { pods, workloads };
        assert!(stages(Stage::Audit, Some(Stage::Audit)).rise_to(Stage::Warn));
        assert!(stages(Stage::Audit, None).rise_to(Stage::Deny));
        assert!(stages(Stage::Deny, Some(Stage::Warn)).rise_to(Stage::Deny));
        assert!(!stages(Stage::Audit, Some(Stage::Deny)).rise_to(Stage::Warn));
        assert!(!stages(Stage::Deny, Some(Stage::Audit)).rise_to(Stage::Warn));
        assert!(!stages(Stage::Warn, None).rise_to(Stage::Warn));
    }

    #[test]
    fn a_label_counts_only_where_namespaces_have_stages() {
        let of = |namespace_stages, workloads| Enforcement { pods: Stage::Audit, workloads, namespace_stages };
        let own = Stages { pods: Stage::Audit, workloads: Some(Stage::Warn) };
        assert_eq!(of(NamespaceStages::Uniform, WorkloadStage::Warn).stages(Some("Deny")), own);
        let by_label = of(NamespaceStages::ByLabel, WorkloadStage::Warn);
        assert_eq!(by_label.stages(None), own);
        assert_eq!(by_label.stages(Some("Waarn")), Stages { pods: Stage::Deny, workloads: Some(Stage::Deny) });
        let pods_only = of(NamespaceStages::ByLabel, WorkloadStage::Off);
        assert_eq!(pods_only.stages(Some("Warn")), Stages { pods: Stage::Warn, workloads: None });
    }
}
