//! `spec.scheduling`: what a pod says of where and how it is run.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Allowance, Other, Texts},
    Setting, at, setting,
};
use crate::{Flag, Text};

/// What a pod says of where and how it is run.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Scheduling {
    /// Runtime classes that pods may name; '' for a pod that names none, * for all, or $name. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 0, max = 256)))]
    pub runtime_classes: Option<Vec<Text>>,
    /// Priority classes that pods may have; '' for none, * for all, or $name. The API server gives a pod that names
    /// none the cluster's default class, if there is one, before it is judged. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 0, max = 256)))]
    pub priority_classes: Option<Vec<Text>>,
    /// Schedulers that may place pods, * for all, or $name. A pod that names none has default-scheduler. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64))]
    pub schedulers: Option<Vec<Text>>,
    /// Whether a new pod, or a pod template, may name its node, past the scheduler and the taints of the node. true,
    /// false or $name. If absent: true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node_name: Option<Flag>,
    /// Labels of nodes that each pod must select in its nodeSelector: each of these keys, with one of its values. Whatever
    /// else a pod selects only leaves it fewer nodes. If absent or empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["key"]))]
    pub node_selector: Option<Vec<NodeLabel>>,
    /// Taints that pods may tolerate, written as tolerations: what a pod tolerates, one of these must. An empty list allows
    /// none. What the API server itself adds to each pod, node.kubernetes.io/not-ready and unreachable with the effect
    /// NoExecute, is always allowed. If absent: all.
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

/// What pods may tolerate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.key) || self.operator == 'Exists'", "without a key the operator must be Exists"))]
#[x_kube(validation = ("!has(self.value) || self.operator == 'Equal'", "with Exists there is no value"))]
pub struct AllowedToleration {
    /// The key of the taint, or $name. If absent: any, with the operator Exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<Text>,
    /// Equal: pods may tolerate the taint with this value. Exists: with any, and with whatever operator.
    #[serde(default)]
    pub operator: TolerationOperator,
    /// The value of the taint, or $name. If absent: the empty one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// The effect of the taint. If absent: all effects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<TaintEffect>,
}

// The schema describes these where they are used.
/// How a value is compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum TolerationOperator {
    /// It is this one.
    #[default]
    Equal,
    /// It is any.
    Exists,
}

/// What a taint does to pods that do not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::IntoStaticStr)]
pub enum TaintEffect {
    /// They are not scheduled to the node.
    NoSchedule,
    /// They are scheduled elsewhere if possible.
    PreferNoSchedule,
    /// They are not scheduled to the node, and evicted from it.
    NoExecute,
}
