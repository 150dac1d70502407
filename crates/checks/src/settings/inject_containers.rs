//! The containers of `spec.mutation.inject`.

use std::collections::BTreeMap;

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::inject_variables::{VARIABLE, VariableSource};
use crate::Text;

/// An init container or sidecar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectedContainer {
    /// Name of the container.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// Init: it ends before the next container starts. Sidecar: it starts before the next container and runs until the
    /// containers of the pod have ended (an init container with restartPolicy Always).
    #[serde(rename = "type")]
    pub kind: ContainerType,
    /// The image; may contain $name.
    pub image: Text,
    /// The program and its first arguments; may contain $name. If unset: those of the image. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub command: Vec<Text>,
    /// Arguments; may contain $name. If unset: those of the image. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16))]
    pub args: Vec<Text>,
    /// Environment variables. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<ContainerVariable>,
    /// Mounts of volumes of this entry. At most 16.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["mountPath"]))]
    pub volume_mounts: Vec<ContainerMount>,
    /// Requests and limits of resources.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ContainerResources>,
    /// Security settings. Unset ones get the defaults of this profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security_context: Option<ContainerSecurity>,
}

/// The lifetime of an added container.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum ContainerType {
    /// It ends before the next container starts.
    Init,
    /// It runs until the containers of the pod have ended.
    Sidecar,
}

/// An environment variable of an added container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("has(self.value) != has(self.valueFrom)", "set either value or valueFrom"))]
pub struct ContainerVariable {
    /// Name of the variable.
    #[schemars(length(min = 1, max = 128), regex(pattern = VARIABLE))]
    pub name: String,
    /// The value; may contain $name. Write $$ for a dollar sign.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<Text>,
    /// The source of the value in the pod's namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value_from: Option<VariableSource>,
}

/// A mount of an added container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerMount {
    /// Name of a volume of this entry.
    #[schemars(length(min = 1, max = 63))]
    pub name: String,
    /// Path in the container.
    #[schemars(length(min = 1, max = 256), regex(pattern = r"^[^:$]+$"))]
    pub mount_path: String,
    /// Path in the volume; may contain $name. If unset: the whole volume.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_path: Option<Text>,
    /// Whether the mount is read-only. If unset: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// Resources of an added container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerResources {
    /// Quantities by resource, such as cpu and memory; may contain $name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub requests: BTreeMap<String, Text>,
    /// Quantities by resource, such as cpu and memory; may contain $name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(extend("maxProperties" = 8))]
    pub limits: BTreeMap<String, Text>,
}

/// Security settings of an added container.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerSecurity {
    /// The user id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub run_as_user: Option<i64>,
    /// The primary group id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 2_147_483_647))]
    pub run_as_group: Option<i64>,
    /// Whether the container must not run as root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_as_non_root: Option<bool>,
    /// Whether the container is privileged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub privileged: Option<bool>,
    /// Whether a process can gain more privileges than its parent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allow_privilege_escalation: Option<bool>,
    /// Whether the root filesystem is read-only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_only_root_filesystem: Option<bool>,
    /// Capabilities, by their names without CAP_.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<ContainerCapabilities>,
    /// The seccomp profile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seccomp_profile: Option<ContainerSeccomp>,
}

/// Capabilities of an added container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerCapabilities {
    /// Capabilities to add.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub add: Vec<String>,
    /// Capabilities to drop.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 16), inner(length(min = 1, max = 63)))]
    pub drop: Vec<String>,
}

/// The seccomp profile of an added container.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ContainerSeccomp {
    /// RuntimeDefault: the profile of the container runtime. Unconfined: none.
    #[serde(rename = "type")]
    pub kind: SeccompType,
}

/// The kind of a seccomp profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum SeccompType {
    /// The profile of the container runtime.
    RuntimeDefault,
    /// None.
    Unconfined,
}
