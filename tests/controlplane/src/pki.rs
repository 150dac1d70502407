//! The secrets of one control plane: its certificate authority, its serving certificate, its service account key and
//! its admin token. All are made afresh for every start, so none is worth keeping or stealing.

use std::{fmt::Write as _, fs, path::Path};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
};
use ring::rand::{SecureRandom, SystemRandom};
use tokio_rustls::rustls::pki_types::CertificateDer;

use crate::Error;

/// File names, relative to the directory of the control plane.
pub(crate) const CA: &str = "ca.crt";
pub(crate) const SERVING_CERT: &str = "serving.crt";
pub(crate) const SERVING_KEY: &str = "serving.key";
pub(crate) const SERVICE_ACCOUNT_KEY: &str = "service-account.key";
/// The API server takes a private key here too, but not in PKCS #8, the format the other one has.
pub(crate) const SERVICE_ACCOUNT_PUBLIC_KEY: &str = "service-account.pub";
pub(crate) const TOKENS: &str = "tokens.csv";

/// What the clients of the control plane need.
#[derive(Debug)]
pub(crate) struct Pki {
    pub(crate) ca: CertificateDer<'static>,
    pub(crate) ca_pem: String,
    pub(crate) admin_token: String,
}

impl Pki {
    /// Makes everything and writes the servers' part into `dir`.
    pub(crate) fn create(dir: &Path) -> Result<Self, Error> {
        let (ca, issuer) = authority()?;
        let serving_key = KeyPair::generate()?;
        let serving = serving_params()?.signed_by(&serving_key, &issuer)?;
        let service_account_key = KeyPair::generate()?;
        let admin_token = random_token()?;

        let files = [
            (CA, ca.pem()),
            (SERVING_CERT, serving.pem()),
            (SERVING_KEY, serving_key.serialize_pem()),
            (SERVICE_ACCOUNT_KEY, service_account_key.serialize_pem()),
            (SERVICE_ACCOUNT_PUBLIC_KEY, service_account_key.public_key_pem()),
            (TOKENS, format!("{admin_token},admin,admin,system:masters\n")),
        ];
        for (name, content) in files {
            let path = dir.join(name);
            fs::write(&path, content).map_err(Error::io(format!("cannot write {}", path.display())))?;
        }
        Ok(Self { ca: ca.der().clone(), ca_pem: ca.pem(), admin_token })
    }

    /// A kubeconfig for the admin, complete in itself.
    pub(crate) fn kubeconfig(&self, url: &str) -> String {
        let ca = STANDARD.encode(&self.ca_pem);
        let token = &self.admin_token;
        format!(
            "apiVersion: v1
kind: Config
clusters:
- name: palisade
  cluster:
    server: {url}
    certificate-authority-data: {ca}
users:
- name: admin
  user:
    token: {token}
contexts:
- name: palisade
  context:
    cluster: palisade
    user: admin
current-context: palisade
"
        )
    }
}

fn authority() -> Result<(rcgen::Certificate, Issuer<'static, KeyPair>), Error> {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "palisade-controlplane");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate()?;
    let certificate = params.self_signed(&key)?;
    Ok((certificate, Issuer::new(params, key)))
}

fn serving_params() -> Result<CertificateParams, Error> {
    let mut params = CertificateParams::new(["127.0.0.1".to_owned(), "localhost".to_owned()])?;
    params.distinguished_name.push(DnType::CommonName, "localhost");
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}

fn random_token() -> Result<String, Error> {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).map_err(|_| Error::Random)?;
    Ok(hex(&bytes))
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}
