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
    /// Allowed kinds of volumes, by their field in a pod (configMap, emptyDir, ...), * for all, or $name. An
    /// empty list allows none. If absent: configMap, csi, downwardAPI, emptyDir, ephemeral, image,
    /// persistentVolumeClaim, projected and secret. Kinds that Kubernetes adds later are refused unless listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 48))]
    #[x_kube(validation = ("self.all(x, x == '*' || x.matches('^[a-z][A-Za-z]*$') || x.startsWith('$'))",
        "a kind of volume is the name of its field in a pod, such as configMap or cephfs; or * or $name"))]
    pub allowed: Option<Vec<Text>>,
    /// Directories and files of the node that hostPath volumes may use, where that kind is allowed. If absent
    /// or empty: none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub host_paths: Option<Vec<HostPath>>,
    /// Drivers that csi volumes may use, where that kind is allowed; * for all, or $name. An empty list allows
    /// none. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub csi_drivers: Option<Vec<Text>>,
    /// Drivers that flexVolume volumes may use, where that kind is allowed; * for all, or $name. An empty list
    /// allows none. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub flex_volumes: Option<Vec<Text>>,
    /// Values of mountPropagation that containers may set in volumeMounts besides None: HostToContainer, Bidirectional,
    /// * for both, or $name. An empty list allows None alone. If absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4))]
    #[x_kube(validation = ("self.all(x, x in ['None', 'HostToContainer', 'Bidirectional', '*'] || x.startsWith('$'))",
        "an allowed mountPropagation is None, HostToContainer, Bidirectional, * or $name"))]
    pub mount_propagation: Option<Vec<Text>>,
    /// Whether a hostPath volume that must be mounted with readOnly: true must be so with all that is mounted below
    /// its path on the node: with recursiveReadOnly: Enabled, which needs a container runtime that knows it. true,
    /// false or $name. If absent: false.
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
    /// The path: it and all below it may be used. May contain $name.
    #[x_kube(validation = ("(self.startsWith('/') || self.startsWith('$')) && !self.split('/').exists(s, s == '..')",
        "a path of the node is absolute and has no .."))]
    pub path_prefix: Text,
    /// Whether containers may mount it only with readOnly: true. true, false or $name.
    #[serde(default = "writable")]
    pub read_only: Flag,
}

fn writable() -> Flag {
    Flag::Constant(false)
}

/// Whether a kind of volume is refused in every namespace. Then restrictedVolumes says so; once is enough.
pub(crate) fn kind_refused(settings: &Settings, kind: &str) -> bool {
    let allowed = settings.volumes.allowed.as_deref();
    allowed.is_some_and(|kinds| !any(kinds) && kinds.iter().all(|text| text.0 != kind && !text.0.contains('$')))
}

/// Whether a kind of volume is allowed in a namespace.
pub(crate) fn kind_allowed(settings: &Settings, values: &Values, kind: &str) -> bool {
    let allowed = settings.volumes.allowed.as_ref().map(|kinds| kinds.resolve(values));
    allowed.is_none_or(|kinds| kinds.iter().any(|allowed| allowed == "*" || allowed == kind))
}
