//! Volumes, paths of the node, and drivers.

use std::path::Path;

use palisade_api::settings::HostPath;
use palisade_checks::{Resolve, Text, defaults::CONTAINER_LISTS};
use serde_json::{Value as Json, json};

use super::{Change, Found, Subject, for_all, is_of_a_namespace, items, missing, text};

/// Paths that belong to the node: with one of them, or one below, a pod can take over the node or read data of the
/// kubelet.
const OF_THE_NODE: [&str; 32] = [
    "/boot",
    "/dev",
    "/etc/cni",
    "/etc/containerd",
    "/etc/crio",
    "/etc/docker",
    "/etc/gshadow",
    "/etc/kubernetes",
    "/etc/pki/tls/private",
    "/etc/rancher",
    "/etc/shadow",
    "/etc/ssh",
    "/etc/ssl/private",
    "/opt/cni",
    "/proc",
    "/root",
    "/run/containerd",
    "/run/crio",
    "/run/docker",
    "/run/k3s",
    "/run/secrets",
    "/sys",
    "/var/lib/cloud",
    "/var/lib/cni",
    "/var/lib/containerd",
    "/var/lib/containers",
    "/var/lib/docker",
    "/var/lib/etcd",
    "/var/lib/kubelet",
    "/var/lib/rancher",
    "/var/log",
    "/var/spool",
];
/// Directories with programs or configuration of the node. A pod that can write below one of them takes over the node.
const READ_BY_THE_NODE: [&str; 7] = ["/bin", "/etc", "/lib", "/lib64", "/run", "/sbin", "/usr"];
/// Directories that are never allowed as a whole.
const ROOTS: [&str; 15] = [
    "/", "/bin", "/etc", "/home", "/lib", "/lib64", "/opt", "/run", "/sbin", "/srv", "/tmp", "/usr", "/var",
    "/var/lib", "/var/run",
];

/// The prefix of the volume with the token of a pod, which the API server adds. No template has it.
const TOKEN: &str = "\"kube-api-access-";

/// Whether a pod with this path of the node can take over the node or read data of the kubelet.
pub fn is_of_the_node(path: &str, is_written: bool) -> bool {
    // `/var/run` is a link to `/run`.
    let path = path.strip_prefix("/var").filter(|rest| rest.starts_with("/run")).unwrap_or(path);
    let path = if path.is_empty() { "/" } else { path };
    let is_below = |one: &&str| path == *one || path.starts_with(&format!("{one}/"));
    ROOTS.contains(&path)
        || Path::new(path).extension().is_some_and(|extension| extension == "sock")
        || OF_THE_NODE.iter().any(is_below)
        || (is_written && READ_BY_THE_NODE.iter().any(is_below))
}

/// `volumes.allowed`
pub(super) fn kinds(subject: &Subject<'_>) -> Found {
    let volumes = &subject.settings.volumes;
    let Some(list) = &volumes.allowed else { return Ok(vec![]) };
    let allowed = list.resolve(subject.values);
    let fields = subject.volumes().filter_map(Json::as_object).flat_map(|volume| volume.keys());
    let fields = fields.map(String::as_str).chain(subject.message.contains(TOKEN).then_some("projected"));
    let mut changes = Vec::new();
    for kind in missing(fields.filter(|key| *key != "name"), &allowed) {
        let change =
            Change::add("volumes.allowed", text(kind)?, format!("Any pod may mount a volume of the kind {kind}."));
        changes.push(match kind {
            "hostPath" if volumes.host_paths.is_none() => {
                return Err("the profile lists no paths of the node, so all paths would be allowed".to_owned());
            }
            "hostPath" => Change { allows: "Any pod may mount the paths of the node in spec.volumes.hostPaths.".to_owned(), ..change },
            "gitRepo" => return Err("a gitRepo volume runs git on the node".to_owned()),
            "csi" if volumes.csi_drivers.is_none() => {
                change.but("spec.volumes.csiDrivers is omitted, so pods may use any CSI driver of the cluster.")
            }
            "flexVolume" if volumes.flex_volumes.is_none() => {
                change.but("spec.volumes.flexVolumes is omitted, so pods may use any such driver of the node.")
            }
            "nfs" => change.but("A pod sets the server and the path: it can use any share that the nodes can reach without authentication."),
            "configMap" | "csi" | "downwardAPI" | "emptyDir" | "ephemeral" | "flexVolume" | "image" | "persistentVolumeClaim"
            | "projected" | "secret" => change,
            _ => change.but("A pod sets the address of the storage: it can use any storage that the nodes can reach."),
        });
        if kind == "hostPath" {
            changes.extend(host_paths(subject)?);
        }
    }
    Ok(changes.into_iter().map(|change| for_all(change, list)).collect())
}

/// `volumes.hostPaths`
pub(super) fn host_paths(subject: &Subject<'_>) -> Found {
    let Some(paths) = &subject.settings.volumes.host_paths else { return Ok(vec![]) };
    let mut changes: Vec<Change> = Vec::new();
    for volume in subject.volumes() {
        let Some(found) = volume["hostPath"]["path"].as_str() else { continue };
        let path = found.trim_end_matches('/');
        if !found.starts_with('/') || path.split('/').any(|part| part == ".." || part == ".") || path.contains("//") {
            return Err(format!("{found} is not an absolute path without . and .."));
        }
        match covered(paths, subject, path) {
            Some(Cover::ReadOnly) if is_written(subject.pod, volume) => {
                return Err(format!(
                    "{found} is read-only in the profile, and the pod does not mount it with readOnly: true"
                ));
            }
            Some(Cover::ReadOnly | Cover::Writable) => continue,
            None => {}
        }
        let is_written = is_written(subject.pod, volume);
        if is_of_the_node(path, is_written) {
            return Err(format!("{found} would give control of the node"));
        }
        if is_of_a_namespace(paths.iter().map(|one| &one.path_prefix), path) {
            return Err(format!("{found} is below a path that is separate for each namespace"));
        }
        let change = if is_written {
            let allows = format!("Any pod may mount {path} of its node and everything below it, and write there.");
            Change::add("volumes.hostPaths", json!({"pathPrefix": text(path)?}), allows).but(
                "Not every container mounts it with readOnly: true. A pod can change files there that other pods read.",
            )
        } else {
            let allows = format!("Any pod may mount {path} of its node and everything below it, read-only.");
            Change::add("volumes.hostPaths", json!({"pathPrefix": text(path)?, "readOnly": true}), allows)
        };
        if !changes.contains(&change) {
            changes.push(change);
        }
    }
    Ok(changes)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cover {
    Writable,
    ReadOnly,
}

/// How the profile covers a path in the namespace. A writable prefix takes precedence.
fn covered(paths: &[HostPath], subject: &Subject<'_>, path: &str) -> Option<Cover> {
    let covers = |one: &&HostPath| {
        let prefix = one.path_prefix.resolve(subject.values);
        format!("{path}/").starts_with(&format!("{}/", prefix.trim_end_matches('/')))
    };
    let covering: Vec<_> = paths.iter().filter(covers).map(|one| one.read_only.resolve(subject.values)).collect();
    match covering.as_slice() {
        [] => None,
        all if all.iter().all(|read_only| *read_only) => Some(Cover::ReadOnly),
        _ => Some(Cover::Writable),
    }
}

/// Whether a container can write to a volume, or the kubelet creates a missing path.
pub fn is_written(pod: &Json, volume: &Json) -> bool {
    let containers = CONTAINER_LISTS.iter().flat_map(|list| items(&pod["spec"][*list]));
    let mut mounts = containers.flat_map(|one| items(&one["volumeMounts"]));
    mounts.any(|mount| mount["name"] == volume["name"] && mount["readOnly"] != true)
        || matches!(volume["hostPath"]["type"].as_str(), Some("DirectoryOrCreate" | "FileOrCreate"))
}

/// `volumes.csiDrivers`
pub(super) fn csi(subject: &Subject<'_>) -> Found {
    let found = subject.volumes().filter_map(|one| one["csi"]["driver"].as_str());
    drivers(subject, "volumes.csiDrivers", subject.settings.volumes.csi_drivers.as_deref(), found, "CSI driver")
}

/// `volumes.flexVolumes`
pub(super) fn flex(subject: &Subject<'_>) -> Found {
    let found = subject.volumes().filter_map(|one| one["flexVolume"]["driver"].as_str());
    drivers(subject, "volumes.flexVolumes", subject.settings.volumes.flex_volumes.as_deref(), found, "driver")
}

fn drivers<'a>(
    subject: &Subject<'_>,
    path: &'static str,
    list: Option<&[Text]>,
    found: impl Iterator<Item = &'a str>,
    what: &str,
) -> Found {
    let Some(list) = list else { return Ok(vec![]) };
    let change = |driver: &str| {
        let allows = format!("Any pod may use the {what} {driver}, with any attributes.");
        Ok(for_all(Change::add(path, text(driver)?, allows), list))
    };
    missing(found, &list.resolve(subject.values)).into_iter().map(change).collect()
}

/// `volumes.mountPropagation`
pub(super) fn propagation(subject: &Subject<'_>) -> Found {
    let Some(list) = &subject.settings.volumes.mount_propagation else { return Ok(vec![]) };
    let mounts = subject.containers().flat_map(|one| items(&one["volumeMounts"]));
    let found = mounts.filter_map(|mount| mount["mountPropagation"].as_str()).filter(|one| *one != "None");
    let mut changes = Vec::new();
    for one in missing(found, &list.resolve(subject.values)) {
        if one == "Bidirectional" {
            return Err("with Bidirectional, mounts of a container appear on the node".to_owned());
        }
        let allows = format!("Any container may mount volumes with mountPropagation {one}.");
        changes.push(for_all(Change::add("volumes.mountPropagation", text(one)?, allows), list));
    }
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_the_node_are_known() {
        for path in [
            "",
            "/etc",
            "/var/run",
            "/var/run/docker.sock",
            "/run/containerd/x",
            "/var/log/pods",
            "/var/lib/kubelet/pki",
            "/etc/shadow",
            "/etc/ssh/ssh_host_rsa_key",
            "/var/lib/docker/volumes",
        ] {
            assert!(is_of_the_node(path, false), "{path}");
        }
        for path in ["/etc/cron.d", "/etc/openstack/clouds.yaml", "/usr/local/bin", "/var/run/site"] {
            assert!(is_of_the_node(path, true), "{path}");
        }
        for path in ["/etc/openstack/clouds.yaml", "/data", "/etc/ldap.conf", "/var/lib/sss/pipes", "/development"] {
            assert!(!is_of_the_node(path, false), "{path}");
        }
    }
}
