//! Volumes of pods, claims and persistent volumes (`pkg/api/pod/warnings.go`, `pkg/api/persistentvolume/util.go`,
//! `pkg/api/persistentvolumeclaim/util.go`).

use palisade_cel::Minor;
use serde_json::Value;

use super::{STORAGE_CLASS, STORAGE_CLASS_DEPRECATED, Warnings, annotation, fractional, nodes};
use crate::validation::{list, part, quote, text};

/// Kinds of volumes of pods that are no more.
fn plugin(minor: Minor, volume: &Value, path: &str, out: &mut Warnings) {
    let git = if minor >= Minor::V1_33 {
        "deprecated in v1.11, and disabled by default in v1.33+"
    } else {
        "deprecated in v1.11"
    };
    for (key, message) in [
        ("photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("gitRepo", git),
        ("scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("flocker", "deprecated in v1.22, non-functional in v1.25+"),
        ("storageos", "deprecated in v1.22, non-functional in v1.25+"),
        ("quobyte", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("ephemeral", ""),
        ("cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ] {
        let Some(source) = part(volume, key) else { continue };
        if key == "ephemeral" {
            claim(&format!("{path}.ephemeral.volumeClaimTemplate.spec"), &source["volumeClaimTemplate"]["spec"], out);
        } else {
            let shown = if key == "storageos" { "storageOS" } else { key };
            out.push(format!("{path}.{shown}: {message}"));
        }
    }
}

/// The volumes of a pod, whose spec is at `path`.
pub(super) fn pod(minor: Minor, path: &str, spec: &Value, out: &mut Warnings) {
    for (i, volume) in list(spec, "volumes").iter().enumerate() {
        plugin(minor, volume, &format!("{path}spec.volumes[{i}]"), out);
    }
    for volume in list(spec, "volumes") {
        let name = quote(text(volume, "name"));
        for (key, source, name_key) in
            [("configMap", "ConfigMap", "name"), ("secret", "Secret", "secretName"), ("downwardAPI", "DownwardAPI", "")]
        {
            let Some(of) = part(volume, key) else { continue };
            let shown =
                if name_key.is_empty() { source.to_owned() } else { format!("{source} {}", quote(text(of, name_key))) };
            let mut paths = Paths::default();
            for path in items(of, "") {
                paths.add(path, |text| out.push(format!("volume {name} ({shown}): overlapping paths: {text}")));
            }
        }
        let (mut paths, mut before) = (Paths::default(), vec![]);
        for source in volume["projected"]["sources"].as_array().into_iter().flatten() {
            if source.as_object().is_some_and(|source| source.values().all(Value::is_null)) {
                out.push(format!("volume {name} (Projected) has no sources provided"));
                continue;
            }
            // Until 1.33 a source without items counts as the one before it once more.
            match projected(minor, source) {
                Some(found) => before = found,
                None if minor < Minor::V1_34 => {}
                None => continue,
            }
            for path in before.clone() {
                paths.add(path, |text| out.push(format!("volume {name} (Projected): overlapping paths: {text}")));
            }
        }
    }
}

/// A path in a volume, and where it comes from.
#[derive(Clone, PartialEq)]
struct Path {
    path: String,
    source: String,
}

impl Path {
    fn shown(&self) -> String {
        if self.source.is_empty() { quote(&self.path) } else { format!("{} ({})", quote(&self.path), self.source) }
    }
}

#[derive(Default)]
struct Paths(Vec<Path>);

impl Paths {
    /// Adds one, and says which of the others is the same, above or below it.
    fn add(&mut self, mut path: Path, mut say: impl FnMut(String)) {
        path.path.truncate(path.path.trim_end_matches('/').len());
        let inside = |one: &str, other: &str| format!("{one}/").starts_with(&format!("{other}/"));
        for other in &self.0 {
            let (one, two) = (path.path.as_str(), other.path.as_str());
            if !one.is_empty() && !two.is_empty() && (inside(one, two) || inside(two, one)) {
                say(format!("{} with {}", path.shown(), other.shown()));
            }
        }
        self.0.push(path);
    }
}

fn items(of: &Value, source: &str) -> Vec<Path> {
    let path = |item: &Value| Path { path: text(item, "path").to_owned(), source: source.to_owned() };
    list(of, "items").iter().map(path).collect()
}

/// The paths of a source; none if it is of no kind that says paths.
fn projected(minor: Minor, source: &Value) -> Option<Vec<Path>> {
    let with_items = |key: &str| part(source, key).filter(|of| of["items"].is_array());
    if let Some(of) = with_items("configMap") {
        return Some(items(of, &format!("ConfigMap {}", quote(text(of, "name")))));
    }
    if let Some(of) = with_items("secret") {
        return Some(items(of, &format!("Secret {}", quote(text(of, "name")))));
    }
    if let Some(of) = with_items("downwardAPI") {
        return Some(items(of, "DownwardAPI"));
    }
    let path = |of: &Value, key: &str, source: &str| Path { path: text(of, key).to_owned(), source: source.to_owned() };
    if let Some(of) = part(source, "serviceAccountToken") {
        return Some(vec![path(of, "path", "ServiceAccountToken")]);
    }
    if let Some(of) = part(source, "clusterTrustBundle") {
        let name = if part(of, "name").is_some() { text(of, "name") } else { text(of, "signerName") };
        return Some(vec![path(of, "path", &format!("ClusterTrustBundle {}", quote(name)))]);
    }
    let of = part(source, "podCertificate").filter(|_| minor >= Minor::V1_34)?;
    let paths = [
        ("certificateChainPath", "PodCertificate chain"),
        ("keyPath", "PodCertificate key"),
        ("credentialBundlePath", "PodCertificate credential bundle"),
    ]
    .into_iter()
    .map(|(key, source)| path(of, key, source))
    .filter(|path| !path.path.is_empty());
    Some(paths.collect())
}

/// The spec of a claim.
pub(super) fn claim(path: &str, spec: &Value, out: &mut Warnings) {
    for which in ["requests", "limits"] {
        fractional(&format!("{path}.resources.{which}"), &spec["resources"][which], "storage", out);
    }
}

/// A persistent volume.
pub(super) fn persistent(volume: &Value, out: &mut Warnings) {
    let spec = &volume["spec"];
    for (key, message) in [
        (STORAGE_CLASS, STORAGE_CLASS_DEPRECATED),
        ("volume.beta.kubernetes.io/mount-options", r#"deprecated since v1.31; use "mountOptions" attribute instead"#),
    ] {
        if annotation(volume, key).is_some() {
            out.push(format!("metadata.annotations[{key}]: {message}"));
        }
    }
    if spec["persistentVolumeReclaimPolicy"] == "Recycle" {
        out.push(
            "spec.persistentVolumeReclaimPolicy: The Recycle reclaim policy is deprecated. Instead, the recommended \
             approach is to use dynamic provisioning."
                .to_owned(),
        );
    }
    for (i, term) in list(&spec["nodeAffinity"]["required"], "nodeSelectorTerms").iter().enumerate() {
        nodes::expressions(&format!("spec.nodeAffinity.required.nodeSelectorTerms[{i}]"), term, None, out);
    }
    for (key, shown, message) in [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ] {
        if part(spec, key).is_some() {
            out.push(format!("spec.{shown}: {message}"));
        }
    }
}
