//! `PersistentVolumeClaimResize`: a claim grows only if it is bound and its class allows it
//! (`plugin/pkg/admission/storage/persistentvolume/resize`).

use palisade_cel::Quantity;
use serde_json::Value as Json;

use super::{Attributes, Found, PluginRemarks};
use crate::objects::Refused;

/// The former way of naming a class.
const BETA: &str = "volume.beta.kubernetes.io/storage-class";

pub(super) fn validate(
    attributes: &Attributes<'_>,
    claim: Option<&Json>,
    _: &mut PluginRemarks,
) -> Result<(), Refused> {
    let concerned = attributes.updates() && attributes.is("", "persistentvolumeclaims", "");
    let (true, Some(claim), Some(old)) = (concerned, claim, attributes.old) else { return Ok(()) };
    let size = |claim: &Json| {
        let text = claim.pointer("/spec/resources/requests/storage").and_then(Json::as_str).unwrap_or("0");
        Quantity::parse(text).ok()
    };
    match (size(old), size(claim)) {
        (Some(before), Some(now)) if now.compare(&before).is_gt() => {}
        _ => return Ok(()),
    }
    if old["status"]["phase"] != "Bound" {
        return Err(attributes.forbidden("Only bound persistent volume claims can be expanded"));
    }
    let (class, before) = (class(claim), self::class(old));
    let refused = || {
        let why = "only dynamically provisioned pvc can be resized and the storageclass that provisions the pvc must \
                   support resize";
        Err(attributes.forbidden(why))
    };
    if class.is_empty() || class != before {
        return refused();
    }
    match attributes.find("storage.k8s.io", "StorageClass", "", class) {
        Found::Object(class) if class["allowVolumeExpansion"] == true => Ok(()),
        Found::Object(_) | Found::Missing => refused(),
        Found::Unknown => {
            let depends = ", or does not allow claims to grow";
            Err(Attributes::unknown("PersistentVolumeClaimResize", "StorageClass", class, depends))
        }
    }
}

/// The class of a claim (`GetPersistentVolumeClaimClass`): the annotation wins.
fn class(claim: &Json) -> &str {
    let annotation = claim["metadata"]["annotations"][BETA].as_str();
    annotation.or_else(|| claim["spec"]["storageClassName"].as_str()).unwrap_or_default()
}
