//! `spec.volumes`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Demand, Other, Texts},
    Setting, Settings, any, at, setting,
};
use crate::{Flag, Resolve, Text, Values};

/// Volumes that pods may use.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Volumes {
    /// Allowed volume types, by their field in a pod (configMap, emptyDir, ...), * for all, or $name. An empty list
    /// allows none. If unset: configMap, csi, downwardAPI, emptyDir, ephemeral, image, persistentVolumeClaim,
    /// projected and secret. Types that Kubernetes adds later are denied unless listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 48))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.matches('^[a-z][A-Za-z]*$') || x.startsWith('$'))",
        "must be the field name of a volume type, such as configMap or cephfs; or * or $name"))]
    pub allowed: Option<Vec<Text>>,
    /// Directories and files of the node that hostPath volumes may use, if that type is allowed. If unset or empty:
    /// none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub host_paths: Option<Vec<HostPath>>,
    /// Drivers that csi volumes may use, if that type is allowed; * for all, or $name. An empty list allows none. If
    /// unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub csi_drivers: Option<Vec<Text>>,
    /// Drivers that flexVolume volumes may use, if that type is allowed; * for all, or $name. An empty list allows
    /// none. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub flex_volumes: Option<Vec<Text>>,
    /// Values of mountPropagation that containers may set in volumeMounts in addition to None: HostToContainer,
    /// Bidirectional, * for both, or $name. An empty list allows only None. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4))]
    #[x_kube(validation = ("self.all(x, x in ['None', 'HostToContainer', 'Bidirectional', '*'] || x.startsWith('$'))",
        "must be None, HostToContainer, Bidirectional, * or $name"))]
    pub mount_propagation: Option<Vec<Text>>,
    /// Whether mounts of a read-only hostPath volume must also set recursiveReadOnly: Enabled, which includes file
    /// systems that are mounted below its path on the node. It needs a container runtime that supports it. true, false
    /// or $name. If unset: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recursive_read_only: Option<Flag>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("volumes.allowed", Texts(at!(volumes.allowed))),
    setting("volumes.hostPaths", Other(&at!(volumes.host_paths))),
    setting("volumes.csiDrivers", Texts(at!(volumes.csi_drivers))),
    setting("volumes.flexVolumes", Texts(at!(volumes.flex_volumes))),
    setting("volumes.mountPropagation", Texts(at!(volumes.mount_propagation))),
    setting("volumes.recursiveReadOnly", Demand(at!(volumes.recursive_read_only))),
];

/// A directory or file of the node that hostPath volumes may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct HostPath {
    /// Path of the directory or file. All paths below it are also allowed. May contain $name.
    #[x_kube(validation = ("(self.startsWith('/') || self.startsWith('$')) && !self.split('/').exists(s, s == '..')",
        "must be an absolute path without .."))]
    pub path_prefix: Text,
    /// Whether containers may mount it only with readOnly: true. true, false or $name.
    #[serde(default = "writable")]
    pub read_only: Flag,
}

fn writable() -> Flag {
    Flag::Constant(false)
}

/// Whether a volume type is forbidden in every namespace. Then only the check restrictedVolumes reports it.
pub(crate) fn kind_refused(settings: &Settings, kind: &str) -> bool {
    let allowed = settings.volumes.allowed.as_deref();
    allowed.is_some_and(|kinds| !any(kinds) && kinds.iter().all(|text| text.0 != kind && !text.0.contains('$')))
}

/// Whether a volume type is allowed in a namespace.
pub(crate) fn kind_allowed(settings: &Settings, values: &Values, kind: &str) -> bool {
    let allowed = settings.volumes.allowed.as_ref().map(|kinds| kinds.resolve(values));
    allowed.is_none_or(|kinds| kinds.iter().any(|allowed| allowed == "*" || allowed == kind))
}
