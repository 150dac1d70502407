//! `spec.rollout` and `status.rollout`: how a profile gets from Audit to Deny, wave by wave.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, Time};
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::enforcement::Stage;

/// How the controller takes namespaces to stricter stages. It promotes a namespace only if no pod and no workload in it
/// violates the profile, and never makes one weaker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Rollout {
    /// The controller promotes no namespace while this is true.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub pause: bool,
    /// What the controller does when an object in a namespace violates the profile.
    #[serde(default)]
    pub on_violation: OnViolation,
    /// What the controller does when the API server denies a pod of a workload during a soak time.
    #[serde(default, skip_serializing_if = "OnDenial::is_ignored")]
    pub on_denial: OnDenial,
    /// The waves, one after the other.
    #[schemars(length(min = 1, max = 16))]
    pub waves: Vec<Wave>,
}

/// What a rollout does when an object in a namespace violates the profile.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum OnViolation {
    /// That namespace stays where it is, and the others go on.
    #[default]
    Hold,
    /// No namespace is promoted until it complies.
    Stop,
}

/// What a rollout does when the API server denies a pod of a workload, in a namespace in Deny, during a soak time.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum OnDenial {
    /// Nothing.
    #[default]
    Ignore,
    /// The soak time begins again: the next wave begins when a whole one has passed without a denial.
    SoakAgain,
}

impl OnDenial {
    /// Whether the rollout goes on whatever is denied.
    pub fn is_ignored(&self) -> bool {
        *self == Self::Ignore
    }
}

/// Some of the selected namespaces, and the stage to which they go. Exactly one of names, selector and percent is set.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("[has(self.names), has(self.selector), has(self.percent)].filter(x, x).size() == 1",
    "exactly one of names, selector and percent must be set"))]
pub struct Wave {
    /// The stage to which its namespaces go; those at a stricter one stay there.
    #[serde(default)]
    pub stage: Stage,
    /// The namespaces with these names.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 256),
        inner(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))
    )]
    pub names: Option<Vec<String>>,
    /// The namespaces with these labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// About so many of a hundred namespaces. Which ones depends on their names alone: those of 10 percent are among
    /// those of 50.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100))]
    pub percent: Option<i32>,
    /// How many seconds pass after the last namespace of the wave was promoted or held, before the next wave begins.
    #[serde(default)]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub soak_seconds: i64,
}

/// How the annotation of a namespace begins that the controller holds because something in it violates the profile
/// ([`crate::names::rollout_annotation`]). With another beginning, somebody else holds it.
pub const HELD_BY_VIOLATIONS: &str = "Violations: ";

/// How far a rollout is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RolloutStatus {
    /// Promoting: namespaces of the wave are judged and promoted. Soaking: the wave's soak time passes. Paused: spec.rollout
    /// says so. Stopped: a namespace violates the profile, and onViolation is Stop; or a pod was denied during the soak
    /// time, and onDenial is `SoakAgain`. Failed: the controller cannot judge or
    /// promote namespaces, and tries again. Complete: all waves are over; namespaces that come later are promoted, too.
    pub phase: RolloutPhase,
    /// The number of the wave, from 1.
    pub wave: i32,
    /// How many waves there are.
    pub waves: i32,
    /// What the waves were when this one began. Other waves begin at the first.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 64))]
    pub plan: String,
    /// When the wave's soak time began, by the clock of an API server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub soak_started: Option<Time>,
    /// Namespaces at the stage to which all waves together take them.
    pub promoted: i64,
    /// Namespaces whose turn is yet to come.
    pub pending: i64,
    /// Namespaces that stay where they are. Their annotation rollout.toolsecurity.dev/PROFILE says why.
    pub held: i64,
    /// The first ten of them by name, and why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 10))]
    pub held_namespaces: Vec<HeldNamespace>,
    /// What is under way, or what is wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(max = 1024))]
    pub message: String,
}

/// What a rollout does.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display, strum::IntoStaticStr,
)]
pub enum RolloutPhase {
    /// It judges and promotes namespaces.
    #[default]
    Promoting,
    /// It waits until the soak time is over.
    Soaking,
    /// Its profile says that it is paused.
    Paused,
    /// A namespace violates the profile, or a pod was denied during the soak time.
    Stopped,
    /// It could not judge or promote namespaces.
    Failed,
    /// All waves are over.
    Complete,
}

impl RolloutPhase {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Promoting, Self::Soaking, Self::Paused, Self::Stopped, Self::Failed, Self::Complete];
}

/// A namespace that a rollout leaves where it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HeldNamespace {
    /// Its name.
    pub name: String,
    /// Why.
    pub message: String,
}
