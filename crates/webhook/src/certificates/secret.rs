//! The Secret through which replicas share a certificate.

use k8s_openapi::api::core::v1::Secret;
use kube::{Api, Client, api::PostParams};
use palisade_api::names;

use super::{
    UnusableCertificate,
    stored::{CertificateSpec, Step, StoredCertificates},
};

/// The Secret's name.
pub const SECRET: &str = "palisade-webhook-cert";

/// Why the Secret could not be maintained.
#[derive(Debug, thiserror::Error)]
pub enum SecretError {
    #[error("Secret {SECRET}: {0}")]
    Api(#[source] Box<kube::Error>),
    /// It is not there, and this process may not create it: a permission to create cannot be limited to a name.
    #[error("Secret {SECRET} does not exist in palisade-system; recreate it from the manifests or the chart")]
    Missing,
    #[error(transparent)]
    Unusable(#[from] UnusableCertificate),
}

impl From<kube::Error> for SecretError {
    fn from(error: kube::Error) -> Self {
        match error {
            kube::Error::Api(status) if status.is_not_found() => Self::Missing,
            error => Self::Api(Box::new(error)),
        }
    }
}

/// Reads and writes the Secret.
#[derive(Clone)]
pub struct SecretStore {
    api: Api<Secret>,
    spec: CertificateSpec,
}

impl SecretStore {
    /// For certificates like `spec`.
    pub fn new(client: Client, spec: CertificateSpec) -> Self {
        Self { api: Api::namespaced(client, names::OPERATOR_NAMESPACE), spec }
    }

    /// Takes the next step, and returns the stored state. If several replicas try at the same time, one succeeds, and
    /// the others read its result.
    ///
    /// `mine` is the last state that this process read: it is restored if the Secret was emptied or damaged.
    ///
    /// # Errors
    ///
    /// If the API server rejects a request, or no certificate can be created.
    pub async fn step(
        &self,
        mine: Option<&StoredCertificates>,
        now: i64,
        known: impl Fn(&StoredCertificates) -> bool,
    ) -> Result<StoredCertificates, SecretError> {
        loop {
            let mut secret = self.api.get(SECRET).await?;
            let found = StoredCertificates::read(&secret.data.clone().unwrap_or_default()).unwrap_or_else(|error| {
                tracing::warn!(%error, "the Secret {SECRET} is damaged and will be rewritten");
                None
            });
            let restored = found.is_none() && mine.is_some();
            let stored = found.or_else(|| mine.cloned());
            let next = match StoredCertificates::step(
                stored.as_ref(),
                &self.spec,
                now,
                stored.as_ref().is_some_and(&known),
            )? {
                Step::Write(next, what) => {
                    tracing::info!("{what}");
                    *next
                }
                Step::Stay => match stored {
                    Some(stored) if restored => stored,
                    Some(stored) => return Ok(stored),
                    None => continue,
                },
            };
            secret.data = Some(next.data());
            secret.metadata.managed_fields = None;
            // With the resource version that was read.
            match self.api.replace(SECRET, &PostParams::default(), &secret).await {
                Ok(_) => return Ok(next),
                Err(kube::Error::Api(status)) if status.is_conflict() => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}
