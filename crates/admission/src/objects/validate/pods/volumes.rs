//! Volumes of pods and their sources (`validateVolumeSource` in `pkg/apis/core/validation/validation.go`).

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::{Minor, Regex};
use serde_json::Value;

use super::{
    super::{claims, formats, node::Node, quantities::quantity},
    Pod,
    paths::{descending, key_to_path, mode, need, no_backsteps},
    projected,
};
use crate::validation::{Checking, meta, names};

/// A source of volumes: its field, its name where there is more than one, its name where something is wrong with it, and
/// what is checked of it.
type Source = (&'static str, &'static str, &'static str, fn(&mut Checking<'_>, &Node<'_>, &Pod<'_>));

const SOURCES: &[Source] = &[
    ("emptyDir", "emptyDir", "emptyDir", empty_dir),
    ("hostPath", "hostPath", "hostPath", host_path),
    ("gitRepo", "gitRepo", "gitRepo", git_repo),
    ("gcePersistentDisk", "gcePersistentDisk", "persistentDisk", |c, n, _| partition(c, n, "pdName")),
    ("awsElasticBlockStore", "awsElasticBlockStore", "awsElasticBlockStore", |c, n, _| partition(c, n, "volumeID")),
    ("secret", "secret", "secret", |c, n, _| files(c, n, "secretName")),
    ("nfs", "nfs", "nfs", nfs),
    ("iscsi", "iscsi", "iscsi", iscsi),
    ("glusterfs", "glusterfs", "glusterfs", |c, n, _| need(c, n, &["endpoints", "path"])),
    ("flocker", "flocker", "flocker", flocker),
    ("persistentVolumeClaim", "persistentVolumeClaim", "persistentVolumeClaim", |c, n, _| need(c, n, &["claimName"])),
    ("rbd", "rbd", "rbd", |c, n, _| {
        need_list(c, n, "monitors");
        need(c, n, &["image"]);
    }),
    ("cinder", "cinder", "cinder", |c, n, _| {
        need(c, n, &["volumeID"]);
        secret_reference(c, n);
    }),
    ("cephfs", "cephFS", "cephfs", |c, n, _| need_list(c, n, "monitors")),
    ("quobyte", "quobyte", "quobyte", quobyte),
    ("downwardAPI", "downwarAPI", "downwardAPI", projected::downward),
    ("fc", "fc", "fc", fibre_channel),
    ("flexVolume", "flexVolume", "flexVolume", flex),
    ("configMap", "configMap", "configMap", |c, n, _| files(c, n, "name")),
    ("azureFile", "azureFile", "azureFile", |c, n, _| need(c, n, &["secretName", "shareName"])),
    ("vsphereVolume", "vsphereVolume", "vsphereVolume", |c, n, _| need(c, n, &["volumePath"])),
    ("photonPersistentDisk", "photonPersistentDisk", "photonPersistentDisk", |c, n, _| need(c, n, &["pdID"])),
    ("portworxVolume", "portworxVolume", "portworxVolume", |c, n, _| need(c, n, &["volumeID"])),
    ("azureDisk", "azureDisk", "azureDisk", azure_disk),
    ("storageos", "storageos", "storageos", storage_os),
    ("projected", "projected", "projected", projected::projected),
    ("scaleIO", "scaleIO", "scaleIO", |c, n, _| need(c, n, &["gateway", "system", "volumeName"])),
    ("csi", "csi", "csi", csi),
    ("ephemeral", "ephemeral", "ephemeral", ephemeral),
    ("image", "image", "image", image),
];

/// Checks volumes; those that are valid, by their names.
pub(super) fn volumes<'a>(checking: &mut Checking<'_>, pod: &Pod<'a>) -> BTreeMap<&'a str, &'a Value> {
    let (mut names, mut known) = (BTreeSet::new(), BTreeMap::new());
    let created: BTreeSet<String> = match &pod.name {
        Some(name) => {
            let own = pod.spec.list("volumes").filter(|volume| volume.has("ephemeral"));
            own.map(|volume| format!("{name}-{}", volume.text("name"))).collect()
        }
        None => BTreeSet::new(),
    };
    for volume in pod.spec.list("volumes") {
        let (before, name) = (checking.errors.len(), volume.text("name"));
        source(checking, &volume, pod);
        if name.is_empty() {
            checking.required(volume.field("name"), "");
        } else {
            formats::label(checking, volume.field("name"), name);
        }
        if names.contains(name) {
            checking.duplicate(volume.field("name"), name);
        }
        if checking.errors.len() == before {
            names.insert(name);
            known.insert(name, volume.value);
        }
        let claim = volume.get("persistentVolumeClaim");
        if created.contains(claim.text("claimName")) {
            let text = "must not reference a PVC that gets created for an ephemeral volume";
            checking.invalid(claim.field("claimName"), claim.text("claimName"), text);
        }
    }
    known
}

fn source(checking: &mut Checking<'_>, volume: &Node<'_>, pod: &Pod<'_>) {
    let mut found = false;
    for (key, doubled, path, check) in SOURCES {
        if !volume.has(key) {
            continue;
        }
        if found {
            checking.forbidden(volume.field(doubled), "may not specify more than 1 volume type");
        } else {
            check(checking, &volume.get_as(key, path), pod);
        }
        let name = volume.text("name");
        if *key == "iscsi" {
            let portal = volume.get(key).text("targetPortal");
            if volume.get(key).has("initiatorName") && name.len() + 1 + portal.len() > 64 {
                let text = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if \
                            iscsi.initiatorName is specified.";
                checking.invalid(volume.field("name"), name, text);
            }
        }
        let pod = pod.name.as_ref().filter(|_| *key == "ephemeral" && !found && !name.is_empty());
        if let Some(pod) = pod {
            let claim = format!("{pod}-{name}");
            let wrong = names::subdomain(&claim);
            let shown = crate::validation::quote(&claim);
            let wrong: Vec<_> = wrong.iter().map(|text| format!("PVC name {shown}: {text}")).collect();
            checking.each(volume.field("name"), name, &wrong);
        }
        found = true;
    }
    if !found {
        checking.required(&volume.path, "must specify a volume type");
    }
}

fn need_list(checking: &mut Checking<'_>, of: &Node<'_>, key: &str) {
    if of.elements(key).is_empty() {
        checking.required(of.field(key), "");
    }
}

fn secret_reference(checking: &mut Checking<'_>, of: &Node<'_>) {
    if let Some(secret) = of.part("secretRef") {
        need(checking, &secret, &["name"]);
    }
}

fn empty_dir(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    if quantity(of.get("sizeLimit").value).is_some_and(|size| size.sign() < 0) {
        checking.forbidden(of.field("sizeLimit"), "SizeLimit field must be a valid resource quantity");
    }
}

fn host_path(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    if of.text("path").is_empty() {
        checking.required(of.field("path"), "");
        return;
    }
    no_backsteps(checking, of.field("path"), of.text("path"));
    if let Some(kind) = of.part("type") {
        let kinds =
            ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
        checking.one_of(&kind, &kinds);
    }
}

fn git_repo(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    need(checking, of, &["repository"]);
    descending(checking, &of.field("directory"), of.text("directory"));
}

fn partition(checking: &mut Checking<'_>, of: &Node<'_>, name: &str) {
    need(checking, of, &[name]);
    if of.int("partition").is_some_and(|number| !(0..=255).contains(&number)) {
        checking.wrong(&of.get("partition"), "must be between 1 and 255, inclusive");
    }
}

/// Secrets and config maps.
fn files(checking: &mut Checking<'_>, of: &Node<'_>, name: &str) {
    need(checking, of, &[name]);
    mode(checking, of, "defaultMode");
    for item in of.list("items") {
        key_to_path(checking, &item);
    }
}

fn nfs(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    need(checking, of, &["server", "path"]);
    if !of.text("path").starts_with('/') {
        checking.invalid(of.field("path"), of.text("path"), "must be an absolute path");
    }
}

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).is_ok_and(|regex| regex.is_match(text))
}

/// Whether it is the name of an initiator or target of its kind; true of other kinds.
fn is_iqn(name: &str) -> bool {
    let pattern = match name.get(..3) {
        Some("iqn") => r"iqn\.\d{4}-\d{2}\.([[:alnum:]\-.]+)(:[^,;*&$|\s]+)$",
        Some("eui") => "^eui.[[:alnum:]]{16}$",
        Some("naa") => "^naa.[[:alnum:]]{32}$",
        _ => return true,
    };
    matches(pattern, name)
}

fn iscsi(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    let is_known = |name: &str| ["iqn", "eui", "naa"].iter().any(|prefix| name.starts_with(prefix));
    let unknown = "must be valid format starting with iqn, eui, or naa";
    need(checking, of, &["targetPortal", "iqn"]);
    let iqn = of.text("iqn");
    if !iqn.is_empty() {
        if !is_known(iqn) {
            checking.invalid(of.field("iqn"), iqn, unknown);
        } else if !is_iqn(iqn) {
            checking.invalid(of.field("iqn"), iqn, "must be valid format");
        }
    }
    if of.int("lun").is_some_and(|lun| !(0..=255).contains(&lun)) {
        checking.wrong(&of.get("lun"), "must be between 0 and 255, inclusive");
    }
    if (of.is_true("chapAuthDiscovery") || of.is_true("chapAuthSession")) && !of.has("secretRef") {
        checking.required(of.field("secretRef"), "");
    }
    if let Some(initiator) = of.part("initiatorName") {
        let (name, field) = (initiator.string(), of.field("initiatorname"));
        if !is_known(name) {
            checking.invalid(&field, name, unknown);
        }
        if !is_iqn(name) {
            checking.invalid(field, name, "must be valid format");
        }
    }
}

fn flocker(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    let (name, uuid) = (of.text("datasetName"), of.text("datasetUUID"));
    match (name.is_empty(), uuid.is_empty()) {
        (true, true) => checking.required(&of.path, "one of datasetName and datasetUUID is required"),
        (false, false) => {
            let text = "datasetName and datasetUUID can not be specified simultaneously";
            checking.invalid(&of.path, "resource", text);
        }
        _ => {}
    }
    if name.contains('/') {
        checking.invalid(of.field("datasetName"), name, "must not contain '/'");
    }
}

/// Whether it is a host and a port (`net.SplitHostPort`).
fn is_host_and_port(text: &str) -> bool {
    let Some((host, port)) = text.rsplit_once(':') else { return false };
    let host = match host.strip_prefix('[') {
        Some(inner) => match inner.strip_suffix(']') {
            Some(inner) => inner,
            None => return false,
        },
        None if host.contains(':') => return false,
        None => host,
    };
    ![host, port].iter().any(|part| part.contains(['[', ']']))
}

fn quobyte(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    let (registry, text) = (of.text("registry"), "must be a host:port pair or multiple pairs separated by commas");
    if registry.is_empty() {
        checking.required(of.field("registry"), text);
    } else if of.text("tenant").len() >= 65 {
        checking.required(of.field("tenant"), "must be a UUID and may not exceed a length of 64 characters");
    } else {
        for _ in registry.split(',').filter(|pair| !is_host_and_port(pair)) {
            checking.invalid(of.field("registry"), registry, text);
        }
    }
    need(checking, of, &["volume"]);
}

fn fibre_channel(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    let (targets, ids) = (of.elements("targetWWNs"), of.elements("wwids"));
    if targets.is_empty() && ids.is_empty() {
        checking.required(of.field("targetWWNs"), "must specify either targetWWNs or wwids, but not both");
    }
    if targets.is_empty() {
        return;
    }
    if !ids.is_empty() {
        let text = "targetWWNs and wwids can not be specified simultaneously";
        checking.invalid_texts(of.field("targetWWNs"), of.get("targetWWNs").value, text);
    }
    match of.int("lun") {
        None => checking.required(of.field("lun"), "lun is required if targetWWNs is specified"),
        Some(0..=255) => {}
        Some(_) => checking.wrong(&of.get("lun"), "must be between 0 and 255, inclusive"),
    }
}

fn flex(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    need(checking, of, &["driver"]);
    for (key, option) in of.entries("options") {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let normalized = format!(".{}", namespace.to_lowercase());
        if normalized.ends_with(".kubernetes.io") || normalized.ends_with(".k8s.io") {
            checking.invalid(option.path, key, "kubernetes.io and k8s.io namespaces are reserved");
        }
    }
}

fn azure_disk(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    need(checking, of, &["diskName", "diskURI"]);
    if let Some(mode) = of.part("cachingMode") {
        checking.one_of(&mode, &["None", "ReadOnly", "ReadWrite"]);
    }
    let Some(kind) = of.part("kind") else { return };
    checking.one_of(&kind, &["Dedicated", "Managed", "Shared"]);
    let uri = of.text("diskURI");
    let (prefix, form) = if kind.string() == "Managed" {
        (
            "/subscriptions/",
            "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}",
        )
    } else {
        ("https://", "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd")
    };
    if !uri.starts_with(prefix) {
        checking.unsupported(of.field("diskURI"), uri, &[form]);
    }
}

fn storage_os(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    need(checking, of, &["volumeName"]);
    for key in ["volumeName", "volumeNamespace"] {
        if !of.text(key).is_empty() {
            formats::label(checking, of.field(key), of.text(key));
        }
    }
    secret_reference(checking, of);
}

fn csi(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    driver(checking, of, "driver");
    if let Some(secret) = of.part("nodePublishSecretRef") {
        need(checking, &secret, &["name"]);
        if !secret.text("name").is_empty() {
            formats::subdomain(checking, of.field("name"), secret.text("name"));
        }
    }
}

/// The name of a CSI driver (`ValidateCSIDriverName`).
fn driver(checking: &mut Checking<'_>, of: &Node<'_>, key: &str) {
    let (name, field) = (of.text(key), of.field(key));
    if name.is_empty() {
        checking.required(&field, "");
        // Until 1.34 it goes on.
        if checking.minor >= Minor::V1_35 {
            return;
        }
    }
    if name.len() > 63 {
        checking.too_long(&field, 63);
    }
    checking.each(field, name, &names::subdomain(&name.to_lowercase()));
}

fn ephemeral(checking: &mut Checking<'_>, of: &Node<'_>, _: &Pod<'_>) {
    let Some(template) = of.part("volumeClaimTemplate") else {
        checking.required(of.field("volumeClaimTemplate"), "");
        return;
    };
    let metadata = template.get("metadata");
    meta::annotations(checking, metadata.value.get("annotations"), &metadata.field("annotations"));
    meta::labels(checking, metadata.value.get("labels"), &metadata.field("labels"));
    // In the order of the Go type.
    for (key, name) in [
        ("name", "name"),
        ("generateName", "generateName"),
        ("namespace", "namespace"),
        ("selfLink", "selfLink"),
        ("uid", "uID"),
        ("resourceVersion", "resourceVersion"),
        ("generation", "generation"),
        ("creationTimestamp", "creationTimestamp"),
        ("deletionTimestamp", "deletionTimestamp"),
        ("deletionGracePeriodSeconds", "deletionGracePeriodSeconds"),
        ("ownerReferences", "ownerReferences"),
        ("finalizers", "finalizers"),
        ("managedFields", "managedFields"),
    ] {
        if metadata.has(key) {
            checking.forbidden(metadata.field(name), "cannot be set");
        }
    }
    claims::spec(checking, &template.get("spec"));
}

fn image(checking: &mut Checking<'_>, of: &Node<'_>, pod: &Pod<'_>) {
    if pod.is_pod {
        need(checking, of, &["reference"]);
    }
    checking.required_one_of(&of.get("pullPolicy"), super::PULL_POLICIES);
}
