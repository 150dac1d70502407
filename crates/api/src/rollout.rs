//! `spec.rollout` and `status.rollout`: promotion of namespaces from Audit to Deny in waves.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::enforcement::Stage;

/// Automatic promotion of namespaces to stricter stages. The controller promotes a namespace only if no pod and no
/// workload in it violates the profile. It never weakens the stage of a namespace.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollout {
    /// Pauses the rollout: the controller promotes no namespaces while this is true. Default: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pause: bool,
    /// Action on a violation in a namespace. Hold: the namespace keeps its stage, and the rollout continues with the
    /// others. Stop: no namespace is promoted until the namespace complies. Default: Hold.
    #[serde(default)]
    pub on_violation: OnViolation,
    /// Action if the API server denies a pod of a workload during a soak time. Ignore: no action. `SoakAgain`: the soak
    /// time starts again. Default: Ignore.
    #[serde(default, skip_serializing_if = "OnDenial::is_ignored")]
    pub on_denial: OnDenial,
    /// Waves, in order. 1 to 16.
    #[schemars(length(min = 1, max = 16))]
    pub waves: Vec<Wave>,
}

/// Action on a violation in a namespace.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum OnViolation {
    /// The namespace keeps its stage, and the rollout continues with the others.
    #[default]
    Hold,
    /// No namespace is promoted until the namespace complies.
    Stop,
}

/// Action if the API server denies a pod of a workload during a soak time, in a namespace in stage Deny.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum OnDenial {
    /// No action.
    #[default]
    Ignore,
    /// The soak time starts again: the next wave begins after a full soak time without a denial.
    SoakAgain,
}

impl OnDenial {
    /// True if denials do not affect the rollout.
    pub fn is_ignored(&self) -> bool {
        *self == Self::Ignore
    }
}

/// A subset of the selected namespaces, and their target stage. Exactly one of names, selector and percent must be set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("[has(self.names), has(self.selector), has(self.percent)].filter(x, x).size() == 1",
    "exactly one of names, selector and percent must be set"))]
pub struct Wave {
    /// Target stage of the namespaces. Namespaces with a stricter stage keep it. Default: Deny.
    #[serde(default)]
    pub stage: Stage,
    /// Namespaces with these names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub names: Option<Vec<String>>,
    /// Namespaces with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Approximate percentage of namespaces, chosen by a stable hash of their names; larger percentages include smaller
    /// ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub percent: Option<i32>,
    /// Soak time in seconds between the last promotion or hold of a namespace in this wave and the start of the next
    /// wave. Default: 0, maximum: 31536000 (one year).
    #[serde(default)]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub soak_seconds: i64,
}

/// The prefix of the annotation of a namespace that the controller holds because of violations
/// ([`crate::names::rollout_annotation`]). With another prefix, the namespace is held manually.
pub const HELD_BY_VIOLATIONS: &str = "Violations: ";

/// Progress of a rollout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Phase of the rollout. Promoting: namespaces of the wave are evaluated and promoted. Soaking: the soak time of
    /// the wave is running. Paused: spec.rollout.pause is true. Stopped: a namespace violates the profile and
    /// onViolation is Stop, or a pod was denied during the soak time and onDenial is `SoakAgain`. Failed: the
    /// controller cannot evaluate or promote namespaces, and will retry. Complete: all waves are complete; namespaces
    /// that are added later are also promoted.
    pub phase: RolloutPhase,
    /// Number of the current wave, from 1.
    pub wave: i32,
    /// Total number of waves.
    pub waves: i32,
    /// Hash of the waves at the start of the current wave. If the waves change, the rollout starts again at the first
    /// wave.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub plan: String,
    /// Start of the soak time of the wave, by the clock of an API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub soak_started: Option<Time>,
    /// Namespaces that have reached the target stage of all waves.
    pub promoted: i64,
    /// Namespaces that are not yet promoted.
    pub pending: i64,
    /// Namespaces that are held at their stage. Their annotation rollout.toolsecurity.dev/PROFILE has the reason.
    pub held: i64,
    /// First ten held namespaces by name, with the reason.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub held_namespaces: Vec<HeldNamespace>,
    /// Current activity, or the error.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// Phase of a rollout.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum RolloutPhase {
    /// It evaluates and promotes namespaces.
    #[default]
    Promoting,
    /// It waits for the end of the soak time.
    Soaking,
    /// `spec.rollout.pause` is true.
    Paused,
    /// A namespace violates the profile, or a pod was denied during the soak time.
    Stopped,
    /// It could not evaluate or promote namespaces.
    Failed,
    /// All waves are complete.
    Complete,
}

impl RolloutPhase {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Promoting, Self::Soaking, Self::Paused, Self::Stopped, Self::Failed, Self::Complete];
}

/// A namespace that a rollout holds at its stage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldNamespace {
    /// Name of the namespace.
    pub name: String,
    /// Reason.
    pub message: String,
}
