//! `spec.scheduling`: fields of a pod that determine where and how it runs.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Other, Texts},
    Setting, at, setting,
};
use crate::{Flag, Text};

/// Scheduling restrictions: runtime classes, priority classes, schedulers, nodes and tolerations.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scheduling {
    /// Runtime classes that pods may have; '' for pods without one, * for all, or $name. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 0, max = 256)))]
    pub runtime_classes: Option<Vec<Text>>,
    /// Priority classes that pods may have; '' for none, * for all, or $name. If a pod has no class, the API server
    /// sets the default class of the cluster, if there is one, before policies run. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 0, max = 256)))]
    pub priority_classes: Option<Vec<Text>>,
    /// Schedulers that pods may use, * for all, or $name. A pod without one uses default-scheduler. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub schedulers: Option<Vec<Text>>,
    /// Whether a new pod, or a pod template, may set nodeName, which bypasses the scheduler and the taints of the node.
    /// true, false or $name. If unset: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<Flag>,
    /// Labels of nodes that each pod must select in its nodeSelector: each of these keys, with one of its values.
    /// Additional selectors are allowed. If unset or empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub node_selector: Option<Vec<NodeLabel>>,
    /// Tolerations that pods may have: one entry must cover each toleration of a pod. An empty list allows none. The
    /// tolerations that the API server adds to each pod (node.kubernetes.io/not-ready and unreachable with the effect
    /// NoExecute) are always allowed. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32))]
    pub tolerations: Option<Vec<AllowedToleration>>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("scheduling.runtimeClasses", Texts(at!(scheduling.runtime_classes))),
    setting("scheduling.priorityClasses", Texts(at!(scheduling.priority_classes))),
    setting("scheduling.schedulers", Texts(at!(scheduling.schedulers))),
    setting("scheduling.nodeName", Allowance(at!(scheduling.node_name))),
    setting("scheduling.nodeSelector", Other(&at!(scheduling.node_selector))),
    setting("scheduling.tolerations", Other(&at!(scheduling.tolerations))),
];

/// A label that pods must select.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NodeLabel {
    /// The key of the label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// Values that a pod may select, or $name.
    #[schemars(length(min = 1, max = 64))]
    pub values: Vec<Text>,
}

/// A toleration that pods may have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.key) || self.operator == 'Exists'", "operator must be Exists if key is unset"))]
#[x_kube(validation = ("!has(self.value) || self.operator == 'Equal'", "value must be unset if operator is Exists"))]
pub struct AllowedToleration {
    /// The key of the taint, or $name. If unset: any, with the operator Exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Text>,
    /// Equal: pods may tolerate the taint with this value. Exists: pods may tolerate it with any value and operator.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// The value of the taint, or $name. If unset: the empty value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// The effect of the taint. If unset: all effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
}

// The schema describes these where they are used.
/// The comparison of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// It is equal.
    #[default]
    Equal,
    /// It can have any value.
    Exists,
}

/// The effect of a taint on pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
pub enum TaintEffect {
    /// They are not scheduled to the node.
    NoSchedule,
    /// They are scheduled elsewhere if possible.
    PreferNoSchedule,
    /// They are not scheduled to the node, and evicted from it.
    NoExecute,
}
