//! `CertificateApproval`: a user who approves a request for a certificate must be authorized to, for its signer
//! (`plugin/pkg/admission/certificates/approval`).

use serde_json::Value as Json;

use super::{Attributes, PluginRemarks, signers::authorized};
use crate::{objects::Refused, validation::quote};

pub(super) fn validate(attributes: &Attributes<'_>, _: Option<&Json>, _: &mut PluginRemarks) -> Result<(), Refused> {
    if !attributes.updates() || !attributes.is("certificates.k8s.io", "certificatesigningrequests", "approval") {
        return Ok(());
    }
    // The stored one: the signer may not be changed with the approval.
    let signer = attributes.old.and_then(|old| old["spec"]["signerName"].as_str()).unwrap_or_default();
    let why = format!("user not permitted to approve requests with signerName {}", quote(signer));
    authorized(attributes, "CertificateApproval", "approve", signer, &why)
}
