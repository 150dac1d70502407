//! `ClusterTrustBundleAttest`: a user who writes a bundle of a signer must be authorized to attest for it
//! (`plugin/pkg/admission/certificates/ctbattest`).

use serde_json::Value as Json;

use super::{Attributes, PluginRemarks, signers::authorized};
use crate::{objects::Refused, validation::quote};

pub(super) fn validate(
    attributes: &Attributes<'_>,
    bundle: Option<&Json>,
    _: &mut PluginRemarks,
) -> Result<(), Refused> {
    let concerned = attributes.request.resource.group == "certificates.k8s.io"
        && attributes.request.resource.resource == "clustertrustbundles"
        && (attributes.creates() || attributes.updates());
    let Some(bundle) = bundle.filter(|_| concerned) else { return Ok(()) };
    let signer = bundle["spec"]["signerName"].as_str().unwrap_or_default();
    if signer.is_empty() || attributes.old.is_some_and(|old| attributes.updates() && same(bundle, old)) {
        return Ok(());
    }
    let why = format!("user not permitted to attest for signerName {}", quote(signer));
    authorized(attributes, "ClusterTrustBundleAttest", "attest", signer, &why)
}

/// Whether nothing but what the garbage collector writes is different (`IsOnlyMutatingGCFields`).
fn same(new: &Json, old: &Json) -> bool {
    let without = |bundle: &Json| {
        let mut bundle = bundle.clone();
        if let Some(metadata) = bundle.get_mut("metadata").and_then(Json::as_object_mut) {
            for key in ["ownerReferences", "finalizers", "managedFields", "resourceVersion"] {
                metadata.remove(key);
            }
        }
        bundle
    };
    without(new) == without(old)
}
