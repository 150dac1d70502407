//! Maintains the certificate, and publishes the data for the registration.
//!
//! Each turn reads the registration and the `ConfigMap`, then the Secret, then updates the `ConfigMap`. The order is
//! important: every replica that writes the `ConfigMap` has read the Secret after it, so none can remove an authority
//! that another replica has added. The controller reads the `ConfigMap` after the registration that it writes.
//! Therefore it is safe to rely on an authority that was in the registration for long enough. While no controller is
//! running, certificates are not exchanged; they are renewed long before they expire.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use k8s_openapi::api::{admissionregistration::v1::MutatingWebhookConfiguration, core::v1::ConfigMap};
use kube::{Api, Client, api::PostParams};
use palisade_api::names::{OPERATOR_NAMESPACE, WEBHOOK, WEBHOOK_CA};
use palisade_runtime::Health;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    certificates::{
        Leaf, UnusableCertificate, files,
        secret::{SecretError, SecretStore},
        stored::{CertificateSpec, StoredCertificates},
    },
    options::{Certificates, Options},
    registration::{self, Endpoint},
    server::Context,
};

/// How long one turn may take.
const TURN: Duration = Duration::from_secs(30);
/// The shortest time between two turns.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

const REGISTRATION: &str = "MutatingWebhookConfiguration palisade-webhook";
const PUBLISHED: &str = "ConfigMap palisade-webhook-ca";

/// Why a turn failed. The next turn tries again.
#[derive(Debug, thiserror::Error)]
enum UpkeepError {
    #[error(transparent)]
    Secret(#[from] SecretError),
    #[error(transparent)]
    Certificate(#[from] UnusableCertificate),
    #[error("{0}: {1}")]
    Api(&'static str, #[source] Box<kube::Error>),
    #[error("{0} does not exist; recreate it from the manifests or the chart")]
    NotInstalled(&'static str),
    #[error("no answer within {} s", TURN.as_secs())]
    Timeout,
}

/// Maintains and publishes the certificate.
pub struct Upkeep {
    cx: Context,
    registration: Api<MutatingWebhookConfiguration>,
    published: Api<ConfigMap>,
    endpoint: Endpoint,
    source: Source,
    overlap: Duration,
    interval: Duration,
}

/// Source of the certificate.
enum Source {
    SelfSigned(Box<Shared>),
    Files(PathBuf),
}

/// The certificate that replicas share in a Secret.
struct Shared {
    store: SecretStore,
    /// The last state of the Secret.
    stored: Option<StoredCertificates>,
    /// Authorities in the registration, and since when this process has seen each of them there.
    trusted: BTreeMap<String, Instant>,
}

impl Upkeep {
    pub fn new(client: &Client, options: &Options, cx: Context) -> Self {
        let endpoint = Endpoint::of(options);
        let source = match &options.certificates {
            Certificates::SelfSigned => {
                let spec = CertificateSpec { names: endpoint.server_names(), life: options.certificate_life };
                let store = SecretStore::new(client.clone(), spec);
                Source::SelfSigned(Box::new(Shared { store, stored: None, trusted: BTreeMap::new() }))
            }
            Certificates::Files(directory) => Source::Files(directory.clone()),
        };
        let (registration, published) = (Api::all(client.clone()), Api::namespaced(client.clone(), OPERATOR_NAMESPACE));
        let (overlap, interval) = (options.certificate_overlap, options.interval);
        Self { cx, registration, published, endpoint, source, overlap, interval }
    }

    /// Until the end.
    pub async fn run(mut self, stop: CancellationToken) {
        let cluster = Arc::clone(&self.cx.cluster);
        let turns = async {
            loop {
                let turn = timeout(TURN, self.turn()).await;
                if let Err(error) = turn.unwrap_or(Err(UpkeepError::Timeout)) {
                    self.cx.metrics.upkeep_failed.inc();
                    tracing::warn!(%error, "could not maintain or publish the certificate; will retry");
                }
                sleep(MIN_INTERVAL).await;
                let _ = timeout(self.interval, cluster.changed.notified()).await;
            }
        };
        let _: Option<()> = stop.run_until_cancelled(turns).await;
    }

    async fn turn(&mut self) -> Result<(), UpkeepError> {
        let registered = self.registration.get(WEBHOOK).await.map_err(|error| of_api(REGISTRATION, error))?;
        let entries = registered.webhooks.iter().flatten().count();
        self.cx.metrics.registered.set(i64::try_from(entries).unwrap_or(i64::MAX));
        let mut config = self.published.get(WEBHOOK_CA).await.map_err(|error| of_api(PUBLISHED, error))?;
        let (leaf, authorities) = self.certificate(&registered).await?;
        let not_after = leaf.not_after;
        if self.cx.certificate.set(leaf) {
            tracing::info!(not_after, "took a new certificate into use");
            self.cx.metrics.certificates_loaded.inc();
            self.cx.metrics.certificate_expiry.set(not_after);
        }
        // A replica that is not ready must not be registered.
        let data = self.endpoint.published(authorities).data();
        if self.cx.ready().is_err() || config.data.as_ref() == Some(&data) {
            return Ok(());
        }
        config.data = Some(data);
        config.metadata.managed_fields = None;
        match self.published.replace(WEBHOOK_CA, &PostParams::default(), &config).await {
            Ok(_) => tracing::info!("published the address and the certificate authorities of this webhook"),
            // Another replica was faster. The next turn reads what it wrote.
            Err(kube::Error::Api(status)) if status.is_conflict() => self.cx.cluster.changed.notify_one(),
            Err(error) => return Err(of_api(PUBLISHED, error)),
        }
        Ok(())
    }

    /// The certificate to serve, and the authorities to trust.
    async fn certificate(
        &mut self,
        registration: &MutatingWebhookConfiguration,
    ) -> Result<(Leaf, Option<String>), UpkeepError> {
        let Shared { store, stored, trusted } = match &mut self.source {
            Source::Files(directory) => return Ok(files::read(directory)?),
            Source::SelfSigned(shared) => shared.as_mut(),
        };
        // The authorities in the registration, read before the Secret. API servers surely know one that was there for
        // long enough.
        let now = Instant::now();
        trusted.retain(|authority, _| registration::trusts(registration, authority));
        for authority in stored.iter().flat_map(StoredCertificates::authorities) {
            if registration::trusts(registration, authority) {
                trusted.entry(authority.to_owned()).or_insert(now);
            }
        }
        let surely =
            |authority: &str| trusted.get(authority).is_some_and(|since| now.duration_since(*since) >= self.overlap);
        let known = |stored: &StoredCertificates| stored.authorities().into_iter().all(surely);
        let read = store.step(stored.as_ref(), unix_now(), known).await?;
        let result = (read.current.leaf.clone(), Some(read.authorities().concat()));
        *stored = Some(read);
        Ok(result)
    }
}

fn of_api(what: &'static str, error: kube::Error) -> UpkeepError {
    match error {
        kube::Error::Api(status) if status.is_not_found() => UpkeepError::NotInstalled(what),
        error => UpkeepError::Api(what, Box::new(error)),
    }
}

fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
