//! Lists: texts of settings, kinds of volumes, and the ways to write an SELinux level.

use palisade_checks::Text;

/// `*`, and the kinds of volumes by the names that `PodSecurityPolicy` has for them: as in a pod, but for cephFS.
pub(super) const VOLUMES: [&str; 30] = [
    "*",
    "awsElasticBlockStore",
    "azureDisk",
    "azureFile",
    "cephFS",
    "cinder",
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "fc",
    "flexVolume",
    "flocker",
    "gcePersistentDisk",
    "gitRepo",
    "glusterfs",
    "hostPath",
    "iscsi",
    "nfs",
    "persistentVolumeClaim",
    "photonPersistentDisk",
    "portworxVolume",
    "projected",
    "quobyte",
    "rbd",
    "scaleIO",
    "secret",
    "storageos",
    "vsphereVolume",
];

/// A literal text: a dollar sign in it does not refer to a parameter.
pub(super) fn text(constant: &str) -> Text {
    Text(constant.replace('$', "$$"))
}

/// Literal texts, without repetitions.
pub(super) fn texts(constants: &[impl AsRef<str>]) -> Vec<Text> {
    let mut found = Vec::new();
    for constant in constants {
        let text = text(constant.as_ref());
        if !found.contains(&text) {
            found.push(text);
        }
    }
    found
}

/// The levels that are equal to this one: its categories in any order, as the admission plugin compared them. With more
/// than three categories only the level as it is written, and `false`.
pub(super) fn levels(level: &str) -> (Vec<String>, bool) {
    if level.is_empty() {
        return (vec![], true);
    }
    let categories: Vec<_> =
        level.split_once(':').map(|(_, categories)| categories.split(',').collect()).unwrap_or_default();
    let sensitivity = level.split(':').next().unwrap_or_default();
    let orders: &[&[usize]] = match categories.len() {
        0 | 1 => return (vec![level.to_owned()], true),
        2 => &[&[0, 1], &[1, 0]],
        3 => &[&[0, 1, 2], &[0, 2, 1], &[1, 0, 2], &[1, 2, 0], &[2, 0, 1], &[2, 1, 0]],
        _ => return (vec![level.to_owned()], false),
    };
    let written = |order: &&[usize]| {
        let categories: Vec<_> = order.iter().map(|&index| categories[index]).collect();
        format!("{sensitivity}:{}", categories.join(","))
    };
    (orders.iter().map(written).collect(), true)
}
