//! The environment variables of `spec.mutation.inject`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// Names of environment variables that Kubernetes accepts in each version.
pub(super) const VARIABLE: &str = r"^[-._a-zA-Z][-._a-zA-Z0-9]*$";

/// An environment variable of each container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.value) != has(self.valueFrom)", "set either value or valueFrom"))]
pub struct InjectedVariable {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 128), regex(pattern = VARIABLE))]
    pub name: String,
    /// The value; may contain $name. Write $$ for a dollar sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// The source of the value in the pod's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<VariableSource>,
    /// IfUnset: a variable of this name in the container is kept. Always: it gets this value. If unset: IfUnset.
    #[serde(default)]
    pub policy: VariablePolicy,
    /// Names of variables: a container that sets one of them does not get this variable. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(
        length(max = 8),
        inner(length(min = 1, max = 128), regex(pattern = VARIABLE)),
        extend("x-kubernetes-list-type" = "set")
    )]
    pub unless_set: Vec<String>,
}

/// The effect on a variable that a container sets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum VariablePolicy {
    /// It is kept.
    #[default]
    IfUnset,
    /// It is replaced.
    Always,
}

/// A key of a Secret or ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.secretKeyRef) != has(self.configMapKeyRef)", "set either secretKeyRef or configMapKeyRef"))]
pub struct VariableSource {
    /// A key of a Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret_key_ref: Option<KeyRef>,
    /// A key of a ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map_key_ref: Option<KeyRef>,
}

/// A key of an object.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct KeyRef {
    /// Name of the object; may contain $name.
    pub name: Text,
    /// The key; may contain $name.
    pub key: Text,
    /// Whether the object or the key may be missing. If unset: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}
