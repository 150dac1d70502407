//! # storageClaims
//!
//! The storage class of a claim decides which storage it gets, at which price and with which isolation. Some classes give a
//! directory of the node. A claim of the mode `Block` gives a device without a file system, and a claim of the mode
//! `ReadWriteMany` can be mounted on several nodes. The size of a claim is not limited unless the namespace has a quota.
//!
//! Claims that controllers create from `volumeClaimTemplates` of a StatefulSet and from `ephemeral` volumes of a pod are
//! evaluated when they are created. If one is denied, the pod waits, and an event has the message: `FailedCreate` of the
//! StatefulSet, or `FailedBinding` of the pod. The API server sets the default class of the cluster, if there is one, before policies run.
//!
//! ## If your object was denied
//!
//! Set `spec.storageClassName`, `spec.accessModes` and `spec.volumeMode` to values that the message lists, remove the
//! annotation `volume.beta.kubernetes.io/storage-class`, and request less storage. Set `spec.dataSourceRef.namespace` to a
//! namespace that the message lists, or omit it.

use super::{classes, kinds::PERSISTENT_VOLUME_CLAIM};
use crate::{
    Diagnostic, Lowering, Meaning, ObjectCheck, ObjectResource, ObjectRule, Text, cel, settings::any, texts::Wildcard,
};

const CLAIMS: &[ObjectResource] = &[PERSISTENT_VOLUME_CLAIM];
/// The annotation that had the class before the field existed. It takes precedence.
const ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";
/// The most access modes that are evaluated. There are four.
const MOST: usize = 16;

/// The check.
pub static CHECK: ObjectCheck = ObjectCheck {
    id: "storageClaims",
    title: "Classes, modes and sizes of PersistentVolumeClaims",
    settings: &[
        "storage.allowedStorageClasses",
        "storage.allowedAccessModes",
        "storage.allowedVolumeModes",
        "storage.maxRequest",
        "storage.allowedDataSourceNamespaces",
    ],
    kinds: CLAIMS,
    fields: &[
        "spec.storageClassName",
        "metadata.annotations['volume.beta.kubernetes.io/storage-class']",
        "spec.accessModes",
        "spec.volumeMode",
        "spec.resources.requests.storage",
        "spec.dataSourceRef.namespace",
    ],
    exempt: None,
    fixtures: include_str!("storage_claims.yaml"),
    compile: |settings, cx| {
        let storage = &settings.storage;
        let mut rule = ObjectRule::default();
        if let Some(allowed) = &storage.allowed_storage_classes {
            let found = classes::by_annotation_or_field(ANNOTATION, "storageClassName");
            let at = ("spec.storage.allowedStorageClasses", "spec.storageClassName");
            classes::only(CLAIMS, at, &found, allowed, cx, &mut rule);
        }
        if let Some(modes) = storage.allowed_access_modes.as_ref().filter(|modes| !any(modes)) {
            let allowed = cx.texts("spec.storage.allowedAccessModes", modes, Meaning::Word);
            let found = "variables.object.?spec.?accessModes.orValue([])";
            rule.limit(CLAIMS, "spec.accessModes", found, MOST);
            let bad = format!("{found}.map(m, string(m)).filter(m, !(m in {}))", allowed.cel());
            rule.forbid(CLAIMS, ("spec.accessModes", "modes"), &bad, &allowed.says());
        }
        if let Some(modes) = storage.allowed_volume_modes.as_ref().filter(|modes| !any(modes)) {
            let allowed = cx.texts("spec.storage.allowedVolumeModes", modes, Meaning::Word);
            let found = "variables.object.?spec.?volumeMode.orValue('Filesystem')";
            rule.finding(
                CLAIMS,
                format!("!({found} in {})", allowed.cel()),
                format!("'spec.volumeMode is ' + {found} + ', allowed: ' + {}", allowed.says()),
            );
        }
        if let Some(most) = &storage.max_request {
            size(most, cx, &mut rule);
        }
        if let Some(names) = storage.allowed_data_source_namespaces.as_ref().filter(|names| !any(names)) {
            let path = "spec.storage.allowedDataSourceNamespaces";
            let allowed = cx.patterns(path, names, Meaning::Pattern, Wildcard::End);
            let bad = format!(
                "[string(variables.object.?spec.?dataSourceRef.?namespace.orValue(''))] \
                 .filter(n, n != '' && n != request.namespace && !({}))",
                allowed.matches("n")
            );
            rule.forbid(CLAIMS, ("spec.dataSourceRef.namespace", "namespaces"), &bad, &allowed.says());
        }
        rule.unless_empty()
    },
};

fn size(most: &Text, cx: &mut Lowering<'_>, rule: &mut ObjectRule) {
    let path = "spec.storage.maxRequest";
    let most = match cx.text(path, most, Meaning::Word) {
        Ok(constant) => {
            if !is_quantity(&constant) && !most.0.contains('$') {
                let message = format!("{constant:?} is not a quantity");
                cx.report(Diagnostic::new(path, message).help("write a quantity of bytes such as 10Gi"));
            }
            cel::quote(&constant)
        }
        Err(template) => template.cel,
    };
    let found = "string(variables.object.?spec.?resources.?requests.?storage.orValue('0'))";
    rule.finding(
        CLAIMS,
        format!("!isQuantity({most}) || quantity({found}).compareTo(quantity({most})) > 0"),
        format!("'spec.resources.requests.storage is ' + {found} + ', at most: ' + {most}"),
    );
}

/// Whether it is a quantity of bytes as Kubernetes writes it.
fn is_quantity(text: &str) -> bool {
    const SUFFIXES: [&str; 13] = ["", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    !whole.is_empty() && !fraction.is_empty() && !fraction.contains('.') && SUFFIXES.contains(&suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quantities_of_bytes_are_accepted() {
        for text in ["0", "1", "10Gi", "1.5Ti", "500M"] {
            assert!(is_quantity(text), "{text}");
        }
        for text in ["", "Gi", "-1Gi", "1 Gi", "1.", ".5Gi", "1.2.3", "1GB", "1m", "ten"] {
            assert!(!is_quantity(text), "{text}");
        }
    }
}
