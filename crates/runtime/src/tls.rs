//! TLS of a server: a certificate, its key, and the certificate authorities of clients.

use std::{fs, path::Path, sync::Arc};

use tokio_rustls::rustls::{
    Error as TlsError, RootCertStore, ServerConfig,
    crypto::ring,
    pki_types::{CertificateDer, PrivateKeyDer, pem::PemObject},
    server::{
        NoClientAuth, NoServerSessionStorage, ResolvesServerCert, VerifierBuilderError, WebPkiClientVerifier,
        danger::ClientCertVerifier,
    },
    sign::{CertifiedKey, SingleCertAndKey},
};

/// A file that TLS needs cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{path} {reason}")]
pub struct UnusableFile {
    path: String,
    reason: String,
}

impl UnusableFile {
    fn new(path: &Path, reason: impl Into<String>) -> Self {
        Self { path: path.display().to_string(), reason: reason.into() }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, UnusableFile> {
    fs::read(path).map_err(|error| UnusableFile::new(path, format!("cannot be read: {error}")))
}

/// How connections are encrypted: TLS 1.2 and 1.3, HTTP/2 and HTTP/1.1, which API servers use. With `clients`, only
/// a client with a certificate that it accepts gets a connection.
///
/// # Errors
/// Never with the provider that is built in.
pub fn server_config(
    certificate: Arc<dyn ResolvesServerCert>,
    clients: Option<Arc<dyn ClientCertVerifier>>,
) -> Result<ServerConfig, TlsError> {
    let mut config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()?
        .with_client_cert_verifier(clients.unwrap_or_else(|| Arc::new(NoClientAuth)))
        .with_cert_resolver(certificate);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    // A resumed session would outlive its certificate, and API servers do not resume sessions.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// Accepts certificates that an authority in `file` (PEM) has signed for clients. The file is read once.
///
/// # Errors
/// The file cannot be read or has no certificate.
pub fn client_verifier(file: &Path) -> Result<Arc<dyn ClientCertVerifier>, UnusableFile> {
    let of = |reason: String| UnusableFile::new(file, reason);
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(&read(file)?) {
        let certificate = certificate.map_err(|error| of(format!("is not PEM: {error}")))?;
        roots.add(certificate).map_err(|error| of(format!("has a certificate that cannot be used: {error}")))?;
    }
    let built =
        WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider())).build();
    built.map_err(|error| match error {
        VerifierBuilderError::NoRootAnchors => of("has no certificate of an authority".to_owned()),
        error => of(format!("cannot be used: {error}")),
    })
}

/// A certificate with its chain, and its key, from PEM files, which are read once.
///
/// # Errors
/// A file cannot be read, or the key is not that of the certificate.
pub fn certificate(certificate: &Path, key: &Path) -> Result<Arc<dyn ResolvesServerCert>, UnusableFile> {
    let chain = CertificateDer::pem_slice_iter(&read(certificate)?).collect::<Result<Vec<_>, _>>();
    let chain = chain.map_err(|error| UnusableFile::new(certificate, format!("is not PEM: {error}")))?;
    if chain.is_empty() {
        return Err(UnusableFile::new(certificate, "has no certificate"));
    }
    let private = PrivateKeyDer::from_pem_slice(&read(key)?);
    let private = private.map_err(|error| UnusableFile::new(key, format!("has no private key: {error}")))?;
    let certified = CertifiedKey::from_der(chain, private, &ring::default_provider());
    let certified = certified.map_err(|error| {
        UnusableFile::new(key, format!("is not the key of the certificate in {}: {error}", certificate.display()))
    })?;
    Ok(Arc::new(SingleCertAndKey::from(certified)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unusable_files_are_named() {
        let missing = Path::new("/nonexistent/tls.crt");
        let error = certificate(missing, missing).unwrap_err().to_string();
        assert!(error.starts_with("/nonexistent/tls.crt cannot be read: "), "{error}");
        let manifest = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml"));
        let error = certificate(manifest, manifest).unwrap_err().to_string();
        assert!(error.ends_with("Cargo.toml has no certificate"), "{error}");
        let error = client_verifier(manifest).unwrap_err().to_string();
        assert!(error.ends_with("Cargo.toml has no certificate of an authority"), "{error}");
    }
}
