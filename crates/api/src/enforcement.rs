//! `spec.enforcement`: the action on violations.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Action on violations, for pods, workloads and other objects.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Enforcement {
    /// Stage of pods. Deny: a violating pod is denied. Warn: it is admitted, the client gets a warning and the
    /// violation is audited. Audit: it is admitted and the violation is audited. Default: Deny.
    #[serde(default)]
    pub pods: Stage,
    /// Stage of workloads whose pod template violates the profile: Deployment, ReplicaSet, ReplicationController,
    /// DaemonSet, StatefulSet, Job, CronJob and PodTemplate. Deny, Warn and Audit have the same meaning as for pods.
    /// Off: pod templates are not evaluated, only the pods that are created from them. Default: Warn.
    #[serde(default)]
    pub workloads: OptionalStage,
    /// Stage of objects other than pods and workloads, which `network` and custom checks with target Object evaluate. Deny, Warn and
    /// Audit have the same meaning as for pods. Off: these objects are not evaluated. Default: the stage of pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub objects: Option<OptionalStage>,
    /// Selection of the stage of a namespace. Uniform: all namespaces have the stages above. `ByLabel`: the value of
    /// the namespace label stage.toolsecurity.dev/PROFILE (Deny, Warn or Audit) is the stage of its pods and, unless
    /// they are Off, of its workloads and other objects. A namespace without the label has the stages above. A namespace with any
    /// other value has the stage Deny. Default: Uniform.
    #[serde(default, skip_serializing_if = "NamespaceStages::is_uniform")]
    pub namespace_stages: NamespaceStages,
    /// Stages of individual checks, by id, for example {imageRegistries: Deny}. They apply to pods and, unless
    /// these are Off, to workloads and other objects, in every namespace. They take precedence over the stages above and over the
    /// label of the namespace. All entries must have the same stage, because one policy evaluates them. At most 64.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 64))]
    #[x_kube(validation = ("self.all(id, self[id] == 'Deny') || self.all(id, self[id] == 'Warn') || self.all(id, self[id] == 'Audit')",
        "all entries must have the same stage, because one policy evaluates them"))]
    pub checks: BTreeMap<String, Stage>,
}

/// Selection of the stage of a namespace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum NamespaceStages {
    /// All namespaces have the stages of the profile.
    #[default]
    Uniform,
    /// The namespace label stage.toolsecurity.dev/PROFILE takes precedence over the stages of the profile.
    ByLabel,
}

impl Enforcement {
    /// The stages of a namespace. `label` is the value of its label stage.toolsecurity.dev/PROFILE.
    pub fn stages(&self, label: Option<&str>) -> Stages {
        let (workloads, objects) = (self.workloads.stage(), self.objects());
        match label.filter(|_| !self.namespace_stages.is_uniform()).map(Stage::of_label) {
            Some(stage) => {
                Stages { pods: stage, workloads: workloads.and(Some(stage)), objects: objects.and(Some(stage)) }
            }
            None => Stages { pods: self.pods, workloads, objects },
        }
    }

    /// The stage of objects other than pods and workloads; `None` if it is Off.
    pub fn objects(&self) -> Option<Stage> {
        self.objects.map_or(Some(self.pods), OptionalStage::stage)
    }

    /// The stage of a check if `stage` is the stage of the other checks.
    pub fn stage_of(&self, check: &str, stage: Stage) -> Stage {
        self.checks.get(check).copied().unwrap_or(stage)
    }
}

/// The stages of a namespace for pods, workloads and other objects; `None` for objects that are not evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stages {
    /// The stage of pods.
    pub pods: Stage,
    /// The stage of workloads.
    pub workloads: Option<Stage>,
    /// The stage of other objects, if a check of the profile evaluates any.
    pub objects: Option<Stage>,
}

impl Stages {
    /// True if the label `stage` makes the stage of some objects stricter, and of none weaker.
    pub fn rise_to(self, stage: Stage) -> bool {
        let all = || [Some(self.pods), self.workloads, self.objects].into_iter().flatten();
        all().any(|one| stage.is_stricter_than(one)) && !all().any(|one| one.is_stricter_than(stage))
    }
}

impl NamespaceStages {
    /// True if all namespaces have the stages of the profile.
    pub fn is_uniform(&self) -> bool {
        *self == Self::Uniform
    }
}

/// Enforcement level of pods.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum Stage {
    /// Violations are denied.
    #[default]
    Deny,
    /// Violations are admitted with a warning, and audited.
    Warn,
    /// Violations are admitted and audited.
    Audit,
}

impl Stage {
    /// All, the strictest first.
    pub const ALL: [Self; 3] = [Self::Deny, Self::Warn, Self::Audit];

    /// The consequence of a violation, as a predicate of the object.
    pub fn consequence(self) -> &'static str {
        match self {
            Self::Deny => "is denied",
            Self::Warn => "is admitted with a warning and audited",
            Self::Audit => "is admitted and audited",
        }
    }

    /// True if it admits fewer objects than the other.
    pub fn is_stricter_than(self, other: Self) -> bool {
        let rank = |stage| Self::ALL.iter().position(|one| *one == stage);
        rank(self) < rank(other)
    }

    /// The stage for a label value: Deny for all values except Warn and Audit.
    pub fn of_label(value: &str) -> Self {
        Self::ALL.into_iter().find(|stage| stage.to_string() == value).unwrap_or(Self::Deny)
    }
}

/// Enforcement level of objects that are not evaluated at the level Off.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum OptionalStage {
    /// Violations are denied.
    Deny,
    /// Violations are admitted with a warning, and audited.
    #[default]
    Warn,
    /// Violations are admitted and audited.
    Audit,
    /// The objects are not evaluated.
    Off,
}

impl OptionalStage {
    /// The stage; `None` if the objects are not evaluated.
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
        let stages = |pods, workloads| Stages { pods, workloads, objects: Some(pods) };
        assert!(stages(Stage::Audit, Some(Stage::Audit)).rise_to(Stage::Warn));
        assert!(stages(Stage::Audit, None).rise_to(Stage::Deny));
        assert!(stages(Stage::Deny, Some(Stage::Warn)).rise_to(Stage::Deny));
        assert!(!stages(Stage::Audit, Some(Stage::Deny)).rise_to(Stage::Warn));
        assert!(!stages(Stage::Deny, Some(Stage::Audit)).rise_to(Stage::Warn));
        assert!(!stages(Stage::Warn, None).rise_to(Stage::Warn));
    }

    #[test]
    fn a_label_counts_only_where_namespaces_have_stages() {
        let of = |namespace_stages, workloads| Enforcement {
            pods: Stage::Audit,
            workloads,
            objects: Some(OptionalStage::Off),
            namespace_stages,
            checks: BTreeMap::new(),
        };
        let own = Stages { pods: Stage::Audit, workloads: Some(Stage::Warn), objects: None };
        assert_eq!(of(NamespaceStages::Uniform, OptionalStage::Warn).stages(Some("Deny")), own);
        let by_label = of(NamespaceStages::ByLabel, OptionalStage::Warn);
        assert_eq!(by_label.stages(None), own);
        assert_eq!(
            by_label.stages(Some("Waarn")),
            Stages { pods: Stage::Deny, workloads: Some(Stage::Deny), objects: None }
        );
        let pods_only = of(NamespaceStages::ByLabel, OptionalStage::Off);
        assert_eq!(pods_only.stages(Some("Warn")), Stages { pods: Stage::Warn, workloads: None, objects: None });
    }
}
