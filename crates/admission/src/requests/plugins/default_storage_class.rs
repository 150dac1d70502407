//! `DefaultStorageClass`: a new claim that names no class gets the default one
//! (`plugin/pkg/admission/storage/storageclass/setdefault`).

use serde_json::{Value as Json, json};

use super::{Attributes, default_class::default_class};
use crate::objects::Refused;

const DEFAULT: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];

/// The former way of naming a class.
const BETA: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn mutate(attributes: &Attributes<'_>, claim: &mut Json) -> Result<(), Refused> {
    if !attributes.creates() || !attributes.is("", "persistentvolumeclaims", "") {
        return Ok(());
    }
    let annotated = !claim["metadata"]["annotations"][BETA].is_null();
    if annotated || !claim["spec"]["storageClassName"].is_null() {
        return Ok(());
    }
    let class = default_class(attributes, "storage.k8s.io", "StorageClass", &DEFAULT);
    if let (Some(class), Some(spec)) = (class, claim.get_mut("spec").and_then(Json::as_object_mut)) {
        spec.insert("storageClassName".to_owned(), json!(class));
    }
    Ok(())
}
