//! `StorageObjectInUseProtection`: finalizers of new volumes, claims and classes of attributes
//! (`plugin/pkg/admission/storage/storageobjectinuseprotection`).

use serde_json::{Value as Json, json};

use super::Attributes;
use crate::objects::{Gate, Refused};

pub(super) fn mutate(attributes: &Attributes<'_>, object: &mut Json) -> Result<(), Refused> {
    let classes = Gate::VolumeAttributesClass.is_on(attributes.cluster.minor());
    let finalizer = match () {
        () if !attributes.creates() => return Ok(()),
        () if attributes.is("", "persistentvolumeclaims", "") => "kubernetes.io/pvc-protection",
        () if attributes.is("", "persistentvolumes", "") => "kubernetes.io/pv-protection",
        () if classes && attributes.is("storage.k8s.io", "volumeattributesclasses", "") => {
            "kubernetes.io/vac-protection"
        }
        () => return Ok(()),
    };
    let Some(object) = object.as_object_mut() else { return Ok(()) };
    let metadata = object.entry("metadata").or_insert_with(|| json!({}));
    let Some(metadata) = metadata.as_object_mut() else { return Ok(()) };
    let finalizers = metadata.entry("finalizers").or_insert_with(|| json!([]));
    if finalizers.is_null() {
        *finalizers = json!([]);
    }
    if let Some(finalizers) = finalizers.as_array_mut()
        && !finalizers.iter().any(|have| have == finalizer)
    {
        finalizers.push(json!(finalizer));
    }
    Ok(())
}
