//! `spec.storage`.

use kube::KubeSchema;
use serde::{Deserialize, Serialize};

use super::{
    Kind::{Other, Texts},
    Setting, at, setting,
};
use crate::Text;

/// Restrictions on PersistentVolumeClaims and VolumeSnapshots. They are evaluated at the stage in enforcement.objects.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Storage {
    /// Classes that claims may have, in storageClassName and in the annotation volume.beta.kubernetes.io/storage-class; ''
    /// for claims without one, * for all, or $name. If storageClassName is unset, the API server sets the default class
    /// of the cluster, if there is one, before policies run. An empty list allows none. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 0, max = 253)))]
    pub allowed_storage_classes: Option<Vec<Text>>,
    /// Access modes that claims may have: ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod, * for all, or
    /// $name. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 8))]
    #[x_kube(validation = ("self.all(x, x in ['ReadWriteOnce', 'ReadOnlyMany', 'ReadWriteMany', 'ReadWriteOncePod', '*'] || x.startsWith('$'))",
        "must be ReadWriteOnce, ReadOnlyMany, ReadWriteMany, ReadWriteOncePod, * or $name"))]
    pub allowed_access_modes: Option<Vec<Text>>,
    /// Volume modes that claims may have: Filesystem, Block, * for both, or $name. If unset: both.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4))]
    #[x_kube(validation = ("self.all(x, x in ['Filesystem', 'Block', '*'] || x.startsWith('$'))",
        "must be Filesystem, Block, * or $name"))]
    pub allowed_volume_modes: Option<Vec<Text>>,
    /// The most storage that one claim may request, for example 10Gi, or $name. If unset: not limited.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[x_kube(validation = ("self.contains('$') || self.matches('^[0-9]+([.][0-9]+)?([kMGTPE]|[KMGTPE]i)?$')",
        "must be a quantity such as 10Gi, or $name"))]
    pub max_request: Option<Text>,
    /// Other namespaces that claims may name in dataSourceRef.namespace, where * at the end matches any suffix; * for all, or
    /// $name. The namespace of the claim is always allowed. An empty list allows no others. If unset: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    pub allowed_data_source_namespaces: Option<Vec<Text>>,
    /// Classes that VolumeSnapshots may have in volumeSnapshotClassName, and VolumeGroupSnapshots in
    /// volumeGroupSnapshotClassName; '' for objects without one, * for all, or $name. An empty list allows none. If unset:
    /// all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 0, max = 253)))]
    pub allowed_snapshot_classes: Option<Vec<Text>>,
}

/// The settings of this group, in the order in which messages name them.
pub(super) static SETTINGS: &[Setting] = &[
    setting("storage.allowedStorageClasses", Texts(at!(storage.allowed_storage_classes))),
    setting("storage.allowedAccessModes", Texts(at!(storage.allowed_access_modes))),
    setting("storage.allowedVolumeModes", Texts(at!(storage.allowed_volume_modes))),
    setting("storage.maxRequest", Other(&at!(storage.max_request))),
    setting("storage.allowedDataSourceNamespaces", Texts(at!(storage.allowed_data_source_namespaces))),
    setting("storage.allowedSnapshotClasses", Texts(at!(storage.allowed_snapshot_classes))),
];
