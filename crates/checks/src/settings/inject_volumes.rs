//! The volumes of `spec.mutation.inject`.

use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// A volume with its mounts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[x_kube(validation = ("[has(self.hostPath), has(self.secret), has(self.configMap), has(self.emptyDir), has(self.persistentVolumeClaim), has(self.nfs)].filter(x, x).size() == 1",
    "set exactly one of hostPath, secret, configMap, emptyDir, persistentVolumeClaim and nfs"))]
pub struct InjectedVolume {
    /// Name of the volume.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"))]
    pub name: String,
    /// A file or directory of the node.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_path: Option<HostPathSource>,
    /// A Secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<SecretSource>,
    /// A ConfigMap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config_map: Option<ConfigMapSource>,
    /// An empty directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub empty_dir: Option<EmptyDirSource>,
    /// A PersistentVolumeClaim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub persistent_volume_claim: Option<ClaimSource>,
    /// A directory of an NFS server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nfs: Option<NfsSource>,
    /// Mounts in each container, unless the container has a mount or a block device at the path. At most 8.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 8), extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["mountPath"]))]
    pub mounts: Vec<InjectedMount>,
}

/// A mount of a volume.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct InjectedMount {
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

/// A file or directory of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostPathSource {
    /// The path; may contain $name.
    pub path: Text,
    /// Type of the file at the path. If unset, it is not checked.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub kind: Option<HostPathType>,
}

/// Type of the file at a path of the node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema, strum::Display)]
pub enum HostPathType {
    /// A directory; it is created if it is missing.
    DirectoryOrCreate,
    /// A directory.
    Directory,
    /// A file; it is created if it is missing.
    FileOrCreate,
    /// A file.
    File,
    /// A socket.
    Socket,
    /// A character device.
    CharDevice,
    /// A block device.
    BlockDevice,
}

/// A Secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SecretSource {
    /// Name of the Secret; may contain $name.
    pub secret_name: Text,
    /// Whether the Secret may be missing. If unset: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// A ConfigMap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ConfigMapSource {
    /// Name of the ConfigMap; may contain $name.
    pub name: Text,
    /// Whether the ConfigMap may be missing. If unset: false.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub optional: Option<bool>,
}

/// An empty directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct EmptyDirSource {
    /// Memory: a tmpfs. If unset: the node's storage.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub medium: Option<Medium>,
}

/// The medium of an empty directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Medium {
    /// A tmpfs.
    Memory,
}

/// A PersistentVolumeClaim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimSource {
    /// Name of the claim; may contain $name.
    pub claim_name: Text,
    /// Whether all mounts are read-only. If unset: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}

/// A directory of an NFS server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NfsSource {
    /// The server; may contain $name.
    pub server: Text,
    /// The path; may contain $name.
    pub path: Text,
    /// Whether all mounts are read-only. If unset: false.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub read_only: bool,
}
