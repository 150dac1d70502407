//! Kinds of volumes, paths of the node and drivers.

use palisade_api::settings::HostPath;
use palisade_checks::Text;

use super::{
    AllowedHostPath,
    findings::Findings,
    lists::{self, text},
};
use crate::note::Kind;

/// Whether a kind of volume was allowed.
fn allows(kinds: &[String], kind: &str) -> bool {
    kinds.iter().any(|allowed| allowed == kind || allowed == "*")
}

pub(super) fn volumes(kinds: &[String], found: &mut Findings) -> Option<Vec<Text>> {
    for (index, kind) in kinds.iter().enumerate().filter(|(_, kind)| !lists::VOLUMES.contains(&kind.as_str())) {
        found.mistake(
            format!("spec.volumes[{index}]"),
            format!("{kind:?} is not a kind of volume in PodSecurityPolicy"),
            &format!("must be * or one of {}", lists::VOLUMES[1..].join(", ")),
        );
    }
    if allows(kinds, "*") {
        return None;
    }
    // A pod spells it cephfs.
    let mut allowed: Vec<Text> =
        kinds.iter().map(|kind| if kind == "cephFS" { "cephfs".into() } else { text(kind) }).collect();
    if allows(kinds, "secret") && !allows(kinds, "projected") {
        // Each pod gets a volume with its service account's token before it is judged.
        allowed.push("projected".into());
        found.note(
            Kind::Looser,
            "spec.volumes",
            "projected is added: a policy with secret admitted only the projected volume with the token of the pod's \
             service account; now any projected volume is admitted. It can contain secrets, config maps and tokens \
             of its own namespace",
        );
    }
    Some(allowed)
}

pub(super) fn host_paths(paths: &[AllowedHostPath], kinds: &[String], found: &mut Findings) -> Option<Vec<HostPath>> {
    if paths.is_empty() {
        return None;
    }
    if !allows(kinds, "hostPath") {
        let message = "had no effect, because volumes does not allow hostPath, and is omitted";
        found.note(Kind::Note, "spec.allowedHostPaths", message);
        return None;
    }
    for (index, path) in paths.iter().enumerate() {
        let prefix = &path.path_prefix;
        if !prefix.starts_with('/') || prefix.split('/').any(|segment| segment == "..") {
            found.mistake(
                format!("spec.allowedHostPaths[{index}].pathPrefix"),
                format!("{prefix:?} is not a valid path of a node"),
                "must be an absolute path without ..",
            );
        }
    }
    if paths.iter().any(|path| path.read_only) {
        found.note(
            Kind::Stricter,
            "spec.allowedHostPaths",
            "a volume of a read-only path must not have a type that creates files on the node (DirectoryOrCreate, \
             FileOrCreate); the policy admitted it",
        );
    }
    let converted =
        paths.iter().map(|path| HostPath { path_prefix: text(&path.path_prefix), read_only: path.read_only.into() });
    Some(converted.collect())
}

/// Drivers of a kind of volume. No list means any driver, so a list that loses its last element stays a list.
pub(super) fn drivers(
    names: &[&str],
    path: &str,
    field: &str,
    kind: &str,
    kinds: &[String],
    found: &mut Findings,
) -> Option<Vec<Text>> {
    if names.is_empty() {
        return None;
    }
    if !allows(kinds, kind) {
        found.note(Kind::Note, path, format!("had no effect, because volumes does not allow {kind}, and is omitted"));
        return None;
    }
    let mut kept = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let at = format!("{path}[{index}].{field}");
        match *name {
            "" => found.mistake(at, "must not be empty", "add the name of a driver"),
            "*" => found.note(
                Kind::Note,
                at,
                "* is omitted: it is not a valid name of a driver here. To allow all drivers, omit the whole list",
            ),
            name => kept.push(text(name)),
        }
    }
    Some(kept)
}
