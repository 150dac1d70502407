//! `PodSecurityPolicy`, as `policy/v1beta1` and `extensions/v1beta1` had it until Kubernetes 1.24.
//!
//! The types are part of Palisade, because no library has them now (source: `k8s.io/api` v0.24,
//! `policy/v1beta1/types.go`). An unknown field is an error, so that none is dropped. The meaning of a field is that of
//! the admission plugin (`pkg/security/podsecuritypolicy`), not that of its name.

mod annotations;
mod convert;
mod findings;
mod ids;
mod lists;
mod volumes;

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Deserializer, Serialize};

pub use convert::{Converted, convert};

/// A `PodSecurityPolicy`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PodSecurityPolicy {
    /// `policy/v1beta1` or `extensions/v1beta1`.
    #[serde(default)]
    pub api_version: String,
    /// `PodSecurityPolicy`.
    #[serde(default)]
    pub kind: String,
    /// Its name, and its annotations, four of which are part of the policy.
    pub metadata: ObjectMeta,
    /// The policy.
    pub spec: PodSecurityPolicySpec,
}

impl PodSecurityPolicy {
    /// Its name; empty if it has none.
    pub fn name(&self) -> &str {
        self.metadata.name.as_deref().unwrap_or_default()
    }
}

/// The permissions of pods. An explicit null means an unset field, as for the API server.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "the fields are those of Kubernetes")]
pub struct PodSecurityPolicySpec {
    /// Whether containers may be privileged.
    #[serde(default, deserialize_with = "or_default")]
    pub privileged: bool,
    /// Capabilities that are added to a container which does not drop them; a container may add them, too.
    #[serde(default, deserialize_with = "or_default")]
    pub default_add_capabilities: Vec<String>,
    /// Capabilities that the plugin adds to those that each container drops.
    #[serde(default, deserialize_with = "or_default")]
    pub required_drop_capabilities: Vec<String>,
    /// Capabilities that containers may add; * for all.
    #[serde(default, deserialize_with = "or_default")]
    pub allowed_capabilities: Vec<String>,
    /// Kinds of volumes that pods may use; * for all. Empty: none.
    #[serde(default, deserialize_with = "or_default")]
    pub volumes: Vec<String>,
    /// Whether pods may use the network namespace of the node.
    #[serde(default, deserialize_with = "or_default")]
    pub host_network: bool,
    /// Ports of the node that containers may use. Empty: none.
    #[serde(default, deserialize_with = "or_default")]
    pub host_ports: Vec<PortRange>,
    /// Whether pods may use the process namespace of the node.
    #[serde(default, rename = "hostPID", deserialize_with = "or_default")]
    pub host_pid: bool,
    /// Whether pods may use the IPC namespace of the node.
    #[serde(default, rename = "hostIPC", deserialize_with = "or_default")]
    pub host_ipc: bool,
    /// The SELinux label.
    pub se_linux: SeLinuxStrategy,
    /// The user of containers.
    pub run_as_user: UserStrategy,
    /// The primary group of containers. Absent: any.
    #[serde(default)]
    pub run_as_group: Option<GroupStrategy>,
    /// Further groups of the pod.
    pub supplemental_groups: GroupStrategy,
    /// The group of the pod's volumes.
    pub fs_group: GroupStrategy,
    /// Whether the root filesystem of containers must be read-only.
    #[serde(default, deserialize_with = "or_default")]
    pub read_only_root_filesystem: bool,
    /// The default of allowPrivilegeEscalation.
    #[serde(default)]
    pub default_allow_privilege_escalation: Option<bool>,
    /// Whether containers may gain privileges. Absent: they may.
    #[serde(default)]
    pub allow_privilege_escalation: Option<bool>,
    /// Paths of the node that hostPath volumes may use. Empty: all.
    #[serde(default, deserialize_with = "or_default")]
    pub allowed_host_paths: Vec<AllowedHostPath>,
    /// Drivers that flex volumes may use. Empty: all.
    #[serde(default, deserialize_with = "or_default")]
    pub allowed_flex_volumes: Vec<AllowedFlexVolume>,
    /// Drivers that csi volumes may use. Empty: all.
    #[serde(default, rename = "allowedCSIDrivers", deserialize_with = "or_default")]
    pub allowed_csi_drivers: Vec<AllowedCsiDriver>,
    /// Sysctls that pods may set, in addition to the safe ones; a trailing * matches any suffix.
    #[serde(default, deserialize_with = "or_default")]
    pub allowed_unsafe_sysctls: Vec<String>,
    /// Sysctls that pods may not set, whatever else is allowed.
    #[serde(default, deserialize_with = "or_default")]
    pub forbidden_sysctls: Vec<String>,
    /// Values of procMount that containers may set. Empty: Default.
    #[serde(default, deserialize_with = "or_default")]
    pub allowed_proc_mount_types: Vec<ProcMount>,
    /// Runtime classes. Absent: any.
    #[serde(default)]
    pub runtime_class: Option<RuntimeClassStrategy>,
}

/// Null means an absent field.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(deserializer: D) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A range of ids, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdRange {
    /// The lowest.
    pub min: i64,
    /// The highest.
    pub max: i64,
}

/// A range of ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PortRange {
    /// The lowest.
    pub min: i32,
    /// The highest.
    pub max: i32,
}

/// How the user of containers is chosen.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserStrategy {
    /// The rule.
    pub rule: UserRule,
    /// The allowed users of `MustRunAs`.
    #[serde(default, deserialize_with = "or_default")]
    pub ranges: Vec<IdRange>,
}

/// A rule for users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum UserRule {
    /// In a range; the default is the lowest user of the first range.
    MustRunAs,
    /// Not root; the default is `runAsNonRoot: true`.
    MustRunAsNonRoot,
    /// Anything.
    RunAsAny,
}

/// How a group is chosen.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupStrategy {
    /// The rule.
    pub rule: GroupRule,
    /// The allowed groups of `MustRunAs` and `MayRunAs`.
    #[serde(default, deserialize_with = "or_default")]
    pub ranges: Vec<IdRange>,
}

/// A rule for groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum GroupRule {
    /// In a range; the default is the lowest group of the first range.
    MustRunAs,
    /// In a range if it is set.
    MayRunAs,
    /// Anything.
    RunAsAny,
}

/// How the SELinux label is chosen.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SeLinuxStrategy {
    /// The rule.
    pub rule: SeLinuxRule,
    /// The label of `MustRunAs`.
    #[serde(default)]
    pub se_linux_options: Option<SeLinuxOptions>,
}

/// A rule for SELinux labels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SeLinuxRule {
    /// Exactly the given label, which is also the default.
    MustRunAs,
    /// Anything.
    RunAsAny,
}

/// An SELinux label. Absent fields must not be set.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SeLinuxOptions {
    /// `system_u`
    #[serde(default, deserialize_with = "or_default")]
    pub user: String,
    /// `object_r`
    #[serde(default, deserialize_with = "or_default")]
    pub role: String,
    /// `container_t`
    #[serde(default, rename = "type", deserialize_with = "or_default")]
    pub type_: String,
    /// `s0:c123,c456`
    #[serde(default, deserialize_with = "or_default")]
    pub level: String,
}

/// A path of the node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AllowedHostPath {
    /// The path; it covers everything below.
    #[serde(default, deserialize_with = "or_default")]
    pub path_prefix: String,
    /// Whether it must be mounted read-only.
    #[serde(default, deserialize_with = "or_default")]
    pub read_only: bool,
}

/// A driver of flex volumes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedFlexVolume {
    /// Its name.
    pub driver: String,
}

/// A driver of csi volumes.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AllowedCsiDriver {
    /// Its name.
    pub name: String,
}

/// A value of procMount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProcMount {
    /// Parts of /proc are masked.
    Default,
    /// Nothing is.
    Unmasked,
}

impl fmt::Display for ProcMount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// How the runtime class is chosen.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuntimeClassStrategy {
    /// Classes that pods may name; * for all. A pod may always name none.
    #[serde(default, deserialize_with = "or_default")]
    pub allowed_runtime_class_names: Vec<String>,
    /// The class of pods that name none.
    #[serde(default)]
    pub default_runtime_class_name: Option<String>,
}
