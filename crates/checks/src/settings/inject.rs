//! Additions to new pods: `spec.mutation.inject`.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    inject_containers::InjectedContainer,
    inject_variables::{InjectedVariable, VARIABLE},
    inject_volumes::InjectedVolume,
};
use crate::Text;

/// Additions to the new pods that a selector matches. A field that the pod sets is kept. Pods for Windows get none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Injection {
    /// Name of this entry.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// The pods that get these additions. If unset: all new pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<When>,
    /// Whether init containers, among them sidecars, get volume mounts and environment variables, and lose workingDir,
    /// as containers do. If unset: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub init_containers: bool,
    /// Volumes, with their mounts in each container. If the pod has another volume of the same name, neither the volume
    /// nor its mounts are added. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub volumes: Vec<InjectedVolume>,
    /// Init containers and sidecars, before the init containers of the pod, unless the pod has a container with the name or
    /// another volume with the name of a volume that they mount. Like the pod's containers, they get the defaults, image
    /// redirects and additions of this profile. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub containers: Vec<InjectedContainer>,
    /// Environment variables of each container. At most 24.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 24), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<InjectedVariable>,
    /// Names of environment variables: workingDir is removed from a container that sets one of them. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        inner(length(min = 1, max = 128), regex(pattern = VARIABLE)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub remove_working_dir_if_set: Vec<String>,
    /// Labels, unless the pod has the key. Values may contain $name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub labels: BTreeMap<String, Text>,
    /// Annotations, unless the pod has the key. Values may contain $name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub annotations: BTreeMap<String, Text>,
    /// Labels of nodes in nodeSelector, unless the pod has the key. Values may contain $name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16))]
    pub node_selector: BTreeMap<String, Text>,
    /// Preferred node affinity terms, unless the pod has an equal term. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub preferred_node_affinity: Vec<PreferredNodes>,
    /// Tolerations, unless the pod has one with the same key, operator, value and effect. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub tolerations: Vec<InjectedToleration>,
    /// Topology spread constraints, unless the pod has one with the same topologyKey and whenUnsatisfiable. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["topologyKey", "whenUnsatisfiable"])
    )]
    pub topology_spread_constraints: Vec<InjectedSpread>,
    /// Names of Secrets in imagePullSecrets, unless the pod has the name. May contain $name. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8))]
    pub image_pull_secrets: Vec<Text>,
    /// Entries of /etc/hosts, unless the pod has one for the address. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["ip"]))]
    pub host_aliases: Vec<InjectedHostAlias>,
    /// DNS options, unless the pod has the name. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub dns_options: Vec<InjectedDnsOption>,
}

/// A selector of pods. All of it must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct When {
    /// Selector of the pod's labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pod_selector: Option<Selector>,
    /// Selector of the pod's annotations, with the same operators.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub annotation_selector: Option<Selector>,
}

/// A selector of labels or annotations. All of it must match.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Selector {
    /// Keys and their values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 16, "additionalProperties" = {"type": "string", "maxLength": 256}))]
    pub match_labels: BTreeMap<String, String>,
    /// Requirements of keys.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub match_expressions: Vec<Requirement>,
}

/// A requirement of a key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
    "In and NotIn need at least one value; Exists and DoesNotExist take none"))]
pub struct Requirement {
    /// The key.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// In: the value is listed. NotIn: it is not, or the key is absent. Exists: the key is present. DoesNotExist: the
    /// key is absent.
    pub operator: SelectorOperator,
    /// Values for In and NotIn.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), inner(length(max = 256)))]
    pub values: Vec<String>,
}

// The schema describes these where they are used.
/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum SelectorOperator {
    /// The value is listed.
    In,
    /// The value is not listed, or the key is absent.
    NotIn,
    /// The key is present.
    Exists,
    /// The key is absent.
    DoesNotExist,
}

/// A preferred node affinity term.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PreferredNodes {
    /// The weight.
    #[schemars(range(min = 1, max = 100))]
    pub weight: i64,
    /// Requirements of the node's labels.
    #[schemars(length(min = 1, max = 8))]
    pub match_expressions: Vec<NodeRequirement>,
}

/// A requirement of a node's label.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
    "In and NotIn need at least one value; Exists and DoesNotExist take none"))]
pub struct NodeRequirement {
    /// The key of the label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// In, NotIn, Exists or DoesNotExist, as in a node affinity.
    pub operator: SelectorOperator,
    /// Values for In and NotIn; may contain $name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub values: Vec<Text>,
}

/// A toleration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.key) || (has(self.operator) && self.operator == 'Exists')", "operator must be Exists if key is unset"))]
#[x_kube(validation = ("!has(self.value) || !has(self.operator) || self.operator == 'Equal'", "value must be unset if operator is Exists"))]
#[x_kube(validation = ("!has(self.tolerationSeconds) || (has(self.effect) && self.effect == 'NoExecute')", "tolerationSeconds needs the effect NoExecute"))]
pub struct InjectedToleration {
    /// The key of the taint; may contain $name. If unset: any, with the operator Exists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<Text>,
    /// Equal or Exists. If unset: Equal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<super::TolerationOperator>,
    /// The value of the taint; may contain $name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// The effect of the taint. If unset: all effects.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effect: Option<super::TaintEffect>,
    /// The time until eviction, for the effect NoExecute. If unset: no eviction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 31_536_000))]
    pub toleration_seconds: Option<i64>,
}

/// A topology spread constraint.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectedSpread {
    /// The label of nodes that makes topology domains.
    #[schemars(length(min = 1, max = 317))]
    pub topology_key: String,
    /// ScheduleAnyway or DoNotSchedule.
    pub when_unsatisfiable: Unsatisfiable,
    /// The largest difference between the numbers of pods in two domains.
    #[schemars(range(min = 1, max = 1000))]
    pub max_skew: i64,
    /// Labels of the pods to spread; values may contain $name.
    #[schemars(extend("minProperties" = 1, "maxProperties" = 8))]
    pub match_labels: BTreeMap<String, Text>,
}

/// The effect on a pod that violates a topology spread constraint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum Unsatisfiable {
    /// It is scheduled, with lower priority.
    ScheduleAnyway,
    /// It is not scheduled.
    DoNotSchedule,
}

/// An entry of /etc/hosts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectedHostAlias {
    /// The IP address.
    #[schemars(length(min = 2, max = 45))]
    pub ip: String,
    /// Host names; may contain $name.
    #[schemars(length(min = 1, max = 16))]
    pub hostnames: Vec<Text>,
}

/// A DNS option.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectedDnsOption {
    /// Name of the option, such as ndots.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z][-a-z0-9]*$"))]
    pub name: String,
    /// Value of the option; may contain $name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
}
