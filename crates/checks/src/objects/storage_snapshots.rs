//! # storageSnapshots
//!
//! The class of a VolumeSnapshot decides where the data is copied, at which price, and whether the copy is kept when the
//! VolumeSnapshot is deleted. The snapshot controller uses the default class of the driver for a VolumeSnapshot without one.
//!
//! The kinds are custom resources. If the cluster does not have them, nothing is evaluated; they are evaluated as soon as
//! they are installed.
//!
//! ## If your object was denied
//!
//! Set `spec.volumeSnapshotClassName` of a VolumeSnapshot, or `spec.volumeGroupSnapshotClassName` of a VolumeGroupSnapshot, to
//! a class that the message lists.

use super::{
    classes,
    kinds::{VOLUME_GROUP_SNAPSHOT, VOLUME_SNAPSHOT},
};
use crate::{ObjectCheck, ObjectRule};

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "storageSnapshots",
    title: "Classes of VolumeSnapshots",
    settings: &["storage.allowedSnapshotClasses"],
    kinds: &[VOLUME_SNAPSHOT, VOLUME_GROUP_SNAPSHOT],
    fields: &["spec.volumeSnapshotClassName", "spec.volumeGroupSnapshotClassName"],
    exempt: None,
    fixtures: include_str!("storage_snapshots.yaml"),
    compile: |settings, cx| {
        let mut rule = ObjectRule::default();
        let allowed = settings.storage.allowed_snapshot_classes.as_ref()?;
        let path = "spec.storage.allowedSnapshotClasses";
        let found = "[string(variables.object.?spec.?volumeSnapshotClassName.orValue(''))]";
        let field = "spec.volumeSnapshotClassName";
        classes::only(&[VOLUME_SNAPSHOT], (path, field), found, allowed, cx, &mut rule);
        let found = "[string(variables.object.?spec.?volumeGroupSnapshotClassName.orValue(''))]";
        let field = "spec.volumeGroupSnapshotClassName";
        classes::only(&[VOLUME_GROUP_SNAPSHOT], (path, field), found, allowed, cx, &mut rule);
        rule.unless_empty()
    },
};
