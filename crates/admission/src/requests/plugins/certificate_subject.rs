//! `CertificateSubjectRestriction`: rejects requests for client certificates that the API server trusts, if they are
//! for the group `system:masters` (`plugin/pkg/admission/certificates/subjectrestriction`).
//!
//! This module does not parse the encoded request. If the name of the group is nowhere in it, the request is not for
//! that group; otherwise there is no verdict.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value as Json;

use super::{Attributes, PluginRemarks};
use crate::objects::Refused;

const SIGNER: &str = "kubernetes.io/kube-apiserver-client";
const GROUP: &str = "system:masters";

pub(super) fn validate(
    attributes: &Attributes<'_>,
    request: Option<&Json>,
    _: &mut PluginRemarks,
) -> Result<(), Refused> {
    let concerned = attributes.creates() && attributes.is("certificates.k8s.io", "certificatesigningrequests", "");
    let Some(request) = request.filter(|request| concerned && request["spec"]["signerName"] == SIGNER) else {
        return Ok(());
    };
    match request["spec"]["request"].as_str().and_then(der) {
        Some(der) if !names_group(&der) => Ok(()),
        _ => Err(Refused::NoVerdict(format!(
            "admission plugin CertificateSubjectRestriction: it is not known whether the subject in spec.request has the \
             organization {GROUP}, which is denied for the signer {SIGNER}"
        ))),
    }
}

/// The request in its binary form: base64 of PEM, which is base64 between two lines.
fn der(request: &str) -> Option<Vec<u8>> {
    let pem = String::from_utf8(STANDARD.decode(request).ok()?).ok()?;
    let (_, body) = pem.split_once("-----BEGIN CERTIFICATE REQUEST-----")?;
    let (body, _) = body.split_once("-----END CERTIFICATE REQUEST-----")?;
    STANDARD.decode(body.split_whitespace().collect::<String>()).ok()
}

/// Whether the name of the group occurs anywhere, with one or two bytes for each character.
fn names_group(der: &[u8]) -> bool {
    let wide: Vec<u8> = GROUP.bytes().flat_map(|byte| [0, byte]).collect();
    [GROUP.as_bytes(), &wide].iter().any(|name| der.windows(name.len()).any(|part| part == *name))
}
