//! Claims of storage (`ValidatePersistentVolumeClaimSpec` in `pkg/apis/core/validation/validation.go`).

use palisade_cel::Minor;

use super::{
    super::gates::Gate,
    formats,
    node::Node,
    quantities::{amount, quantity},
};
use crate::validation::Checking;

const ACCESS_MODES: &[&str] = &["ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod"];

pub(super) fn spec(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let modes: Vec<_> = spec.list("accessModes").map(|mode| mode.string()).collect();
    if modes.is_empty() {
        checking.required(spec.field("accessModes"), "at least 1 access mode is required");
    }
    formats::selector(checking, &spec.get("selector"));
    for mode in modes.iter().filter(|mode| !ACCESS_MODES.contains(mode)) {
        checking.unsupported(spec.field("accessModes"), mode, ACCESS_MODES);
    }
    let other = modes.iter().any(|mode| *mode != "ReadWriteOncePod" && ACCESS_MODES.contains(mode));
    if modes.contains(&"ReadWriteOncePod") && other {
        checking.forbidden(spec.field("accessModes"), "may not use ReadWriteOncePod with other access modes");
    }
    let requests = spec.get("resources").get("requests");
    let storage = requests.get("storage").at(format!("{}[storage]", spec.field("resources")));
    match quantity(storage.value) {
        None => checking.required(&storage.path, ""),
        Some(size) if size.sign() <= 0 => {
            checking.invalid(&storage.path, &size.to_string(), "must be greater than zero");
        }
        Some(_) => amount(checking, "storage", &storage),
    }
    class(checking, spec, "storageClassName");
    if let Some(mode) = spec.part("volumeMode") {
        checking.one_of(&mode, &["Block", "Filesystem"]);
    }
    data_source(checking, spec);
    if Gate::VolumeAttributesClass.is_on(checking.minor) {
        class(checking, spec, "volumeAttributesClassName");
    }
}

fn class(checking: &mut Checking<'_>, spec: &Node<'_>, key: &str) {
    let name = spec.text(key);
    if !name.is_empty() {
        formats::subdomain(checking, spec.field(key), name);
    }
}

fn data_source(checking: &mut Checking<'_>, spec: &Node<'_>) {
    let (source, reference) = (spec.part("dataSource"), spec.part("dataSourceRef"));
    for of in [&source, &reference].into_iter().flatten() {
        for key in ["name", "kind"] {
            if of.text(key).is_empty() {
                checking.required(of.field(key), "");
            }
        }
        let (group, kind) = (of.text("apiGroup"), of.text("kind"));
        if group.is_empty() && kind != "PersistentVolumeClaim" {
            let text = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
            checking.invalid(&of.path, kind, text);
        }
        if !group.is_empty() {
            formats::subdomain(checking, of.field("apiGroup"), group);
        }
        if of.path.ends_with("Ref") && !of.text("namespace").is_empty() {
            formats::label(checking, of.field("namespace"), of.text("namespace"));
        }
    }
    let Some((source, reference)) = source.zip(reference) else { return };
    let same = ["apiGroup", "kind", "name"].iter().all(|key| source.get(key).value == reference.get(key).value);
    let text = match (reference.text("namespace").is_empty(), same) {
        (false, _) => "may not be specified when dataSourceRef.namespace is specified",
        (true, false) => "must match dataSourceRef",
        (true, true) => return,
    };
    // It is shown as the API server's own form of a path, which has no fields that JSON shows.
    let shown = if checking.minor >= Minor::V1_34 { "{}".to_owned() } else { source.path.clone() };
    checking.invalid_shown(&spec.path, &shown, text);
}
