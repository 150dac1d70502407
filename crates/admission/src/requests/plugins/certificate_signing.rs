//! `CertificateSigning`: a user who sets a certificate, or a condition of a request for one, must be authorized to sign
//! for its signer (`plugin/pkg/admission/certificates/signing`).

use serde_json::Value as Json;

use super::{Attributes, PluginRemarks, signers::authorized};
use crate::{objects::Refused, validation::quote};

pub(super) fn validate(
    attributes: &Attributes<'_>,
    request: Option<&Json>,
    _: &mut PluginRemarks,
) -> Result<(), Refused> {
    let concerned =
        attributes.updates() && attributes.is("certificates.k8s.io", "certificatesigningrequests", "status");
    let (true, Some(request), Some(old)) = (concerned, request, attributes.old) else { return Ok(()) };
    let same = |key: &str| request["status"][key] == old["status"][key];
    if same("certificate") && same("conditions") {
        return Ok(());
    }
    let signer = old["spec"]["signerName"].as_str().unwrap_or_default();
    let why = format!("user not permitted to sign requests with signerName {}", quote(signer));
    authorized(attributes, "CertificateSigning", "sign", signer, &why)
}
