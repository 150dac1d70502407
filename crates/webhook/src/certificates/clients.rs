//! Which clients may connect, if not every client that reaches the port: API servers, by their certificates.

use std::{fmt::Debug, path::Path, sync::Arc};

use palisade_runtime::tls::{UnusableFile, client_verifier};
use tokio_rustls::rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error as TlsError, SignatureScheme,
    client::danger::HandshakeSignatureValid,
    pki_types::{CertificateDer, UnixTime},
    server::danger::{ClientCertVerified, ClientCertVerifier},
};
use x509_parser::{extensions::GeneralName, parse_x509_certificate};

/// Why clients cannot be authenticated. The webhook does not start then: it would be open to everybody.
#[derive(Debug, thiserror::Error)]
#[error("--client-ca {0}")]
pub struct ClientCaError(UnusableFile);

/// Accepts certificates that an authority in `file` (PEM) has signed for clients, and of these, if `names` are given,
/// those whose common name or DNS name is one of them. The file is read once.
///
/// # Errors
/// The file cannot be read or has no certificate.
pub fn verifier(file: &Path, names: &[String]) -> Result<Arc<dyn ClientCertVerifier>, ClientCaError> {
    let inner = client_verifier(file).map_err(ClientCaError)?;
    if names.is_empty() {
        return Ok(inner);
    }
    Ok(Arc::new(Named { inner, names: names.to_vec() }))
}

/// Certificates that are valid and have one of these names.
#[derive(Debug)]
struct Named {
    inner: Arc<dyn ClientCertVerifier>,
    names: Vec<String>,
}

impl Named {
    fn has_name(&self, certificate: &[u8]) -> bool {
        let Ok((_, certificate)) = parse_x509_certificate(certificate) else { return false };
        let wanted = |name: &str| self.names.iter().any(|wanted| wanted == name);
        let common = certificate.subject().iter_common_name().any(|name| name.as_str().is_ok_and(wanted));
        let alternatives = certificate.subject_alternative_name().ok().flatten();
        common
            || alternatives.is_some_and(|names| {
                names.value.general_names.iter().any(|name| matches!(name, GeneralName::DNSName(name) if wanted(name)))
            })
    }
}

impl ClientCertVerifier for Named {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.inner.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, TlsError> {
        let verified = self.inner.verify_client_cert(certificate, intermediates, now)?;
        if self.has_name(certificate) {
            Ok(verified)
        } else {
            Err(TlsError::InvalidCertificate(CertificateError::ApplicationVerificationFailure))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.inner.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, TlsError> {
        self.inner.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
