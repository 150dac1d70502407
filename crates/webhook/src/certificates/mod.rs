//! The certificate that the webhook serves, and its trusted authorities.
//!
//! Without cert-manager, each certificate has a separate authority, whose key is discarded after signing. Therefore no
//! key can sign another certificate, and both are renewed in the same way. Replicas share the certificate in a Secret;
//! [`stored`] decides the next step of its renewal.

pub mod clients;
pub mod files;
pub mod generation;
pub mod secret;
pub mod stored;

use std::sync::{Arc, PoisonError, RwLock};

use tokio_rustls::rustls::{
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{ClientHello, ResolvesServerCert},
    sign::CertifiedKey,
};

/// Why a certificate cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum UnusableCertificate {
    #[error("the certificate cannot be read: {0}")]
    Certificate(String),
    #[error("the private key cannot be read: {0}")]
    Key(String),
    #[error("a new certificate could not be created: {0}")]
    Make(#[from] rcgen::Error),
    #[error("{path} cannot be read: {source}")]
    File {
        path: String,
        #[source]
        source: std::io::Error,
    },
}

/// A certificate, its key, and when it expires.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// As rustls wants it.
    pub key: Arc<CertifiedKey>,
    /// Unix time.
    pub not_after: i64,
}

impl Leaf {
    /// Reads PEM.
    ///
    /// # Errors
    /// Also if the key is not that of the certificate.
    pub fn read(certificate: &[u8], key: &[u8]) -> Result<Self, UnusableCertificate> {
        let chain: Vec<_> = CertificateDer::pem_slice_iter(certificate)
            .collect::<Result<_, _>>()
            .map_err(|error| UnusableCertificate::Certificate(error.to_string()))?;
        let not_after = match chain.first() {
            Some(first) => validity(first)?.1,
            None => return Err(UnusableCertificate::Certificate("it contains no certificate".to_owned())),
        };
        let key = PrivateKeyDer::from_pem_slice(key).map_err(|error| UnusableCertificate::Key(error.to_string()))?;
        let key = CertifiedKey::from_der(chain, key, &ring::default_provider())
            .map_err(|error| UnusableCertificate::Key(error.to_string()))?;
        Ok(Self { key: Arc::new(key), not_after })
    }
}

/// From when to when a certificate is valid, as Unix time.
fn validity(certificate: &[u8]) -> Result<(i64, i64), UnusableCertificate> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate)
        .map_err(|error| UnusableCertificate::Certificate(error.to_string()))?;
    let validity = parsed.validity();
    Ok((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// The certificate in use. It can be replaced while connections are made.
#[derive(Debug, Default)]
pub struct CurrentCertificate {
    leaf: RwLock<Option<Leaf>>,
}

impl CurrentCertificate {
    /// Serves this certificate from now on. Returns whether it is a new one.
    pub fn set(&self, leaf: Leaf) -> bool {
        let mut current = self.leaf.write().unwrap_or_else(PoisonError::into_inner);
        let same = current.as_ref().is_some_and(|current| current.key.cert == leaf.key.cert);
        *current = Some(leaf);
        !same
    }

    /// True if there is a certificate to serve.
    pub fn is_there(&self) -> bool {
        self.leaf.read().unwrap_or_else(PoisonError::into_inner).is_some()
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.leaf.read().unwrap_or_else(PoisonError::into_inner).as_ref().map(|leaf| Arc::clone(&leaf.key))
    }
}
