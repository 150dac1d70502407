//! Keeps certificate and registration right, until the end.
//!
//! Each turn reads the registration, then the Secret, then writes what differs. The order matters: every replica that
//! writes the registration has read the Secret after it, so none can take back an authority that another one has added.
//! That makes it safe to rely on an authority that was seen in the registration for long enough.

use std::{
    collections::BTreeMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime},
};

use k8s_openapi::api::admissionregistration::v1::MutatingWebhookConfiguration;
use kube::{Api, Client, api::PostParams};
use palisade_process::Health;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    certificates::{
        self, Leaf, files,
        kept::{Kept, Wish},
        store::{self, Store},
    },
    options::{Certificates, Options},
    registration::{self, NAME, Terms},
    server::Context,
};

/// How long one turn may take.
const TURN: Duration = Duration::from_secs(30);
/// The shortest time between two turns.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a turn failed. It is tried again.
#[derive(Debug, thiserror::Error)]
enum Error {
    #[error(transparent)]
    Store(#[from] store::Error),
    #[error(transparent)]
    Certificate(#[from] certificates::Error),
    #[error("MutatingWebhookConfiguration {NAME}: {0}")]
    Registration(#[source] Box<kube::Error>),
    #[error("MutatingWebhookConfiguration {NAME} does not exist; install it again with the manifests")]
    NotInstalled,
    #[error("no answer within {} s", TURN.as_secs())]
    Timeout,
}

/// What is done again and again.
pub struct Upkeep {
    cx: Context,
    api: Api<MutatingWebhookConfiguration>,
    terms: Terms,
    source: Source,
    overlap: Duration,
    interval: Duration,
}

/// Where the certificate comes from.
enum Source {
    SelfSigned(Box<Shared>),
    Files(PathBuf),
}

/// What replicas share.
struct Shared {
    store: Store,
    /// What was read last.
    kept: Option<Kept>,
    /// Authorities in the registration, and since when this process has seen each of them there.
    believed: BTreeMap<String, Instant>,
}

impl Upkeep {
    /// As the options say.
    pub fn new(client: &Client, options: &Options, cx: Context) -> Self {
        let terms = Terms::of(options);
        let source = match &options.certificates {
            Certificates::SelfSigned => {
                let wish = Wish { names: terms.server_names(), life: options.certificate_life };
                let store = Store::new(client.clone(), wish);
                Source::SelfSigned(Box::new(Shared { store, kept: None, believed: BTreeMap::new() }))
            }
            Certificates::Files(directory) => Source::Files(directory.clone()),
        };
        let api = Api::all(client.clone());
        Self { cx, api, terms, source, overlap: options.certificate_overlap, interval: options.interval }
    }

    /// Until the end.
    pub async fn run(mut self, stop: CancellationToken) {
        let world = Arc::clone(&self.cx.world);
        let turns = async {
            loop {
                let turn = timeout(TURN, self.turn()).await;
                if let Err(error) = turn.unwrap_or(Err(Error::Timeout)) {
                    self.cx.metrics.upkeep_failed.inc();
                    tracing::warn!(%error, "certificate or registration could not be kept right; it is tried again");
                }
                sleep(PAUSE).await;
                let _ = timeout(self.interval, world.changed.notified()).await;
            }
        };
        let _: Option<()> = stop.run_until_cancelled(turns).await;
    }

    async fn turn(&mut self) -> Result<(), Error> {
        let mut found = self.api.get(NAME).await.map_err(of_registration)?;
        let (leaf, authorities) = self.certificate(&found).await?;
        let not_after = leaf.not_after;
        if self.cx.shown.show(leaf) {
            tracing::info!(not_after, "took a certificate into use");
            self.cx.metrics.certificates_loaded.inc();
            self.cx.metrics.certificate_expiry.set(not_after);
        }
        // Before everything is known, a profile that seems to be gone may only be unknown.
        if self.cx.ready().is_err() {
            return Ok(());
        }
        let known = found.webhooks.take().unwrap_or_default();
        let entries = registration::entries(&self.cx.world.profiles(), &self.terms, authorities.as_deref(), &known);
        self.cx.metrics.registered.set(i64::try_from(entries.len()).unwrap_or(i64::MAX));
        if entries == known {
            return Ok(());
        }
        found.webhooks = Some(entries);
        found.metadata.managed_fields = None;
        match self.api.replace(NAME, &PostParams::default(), &found).await {
            Ok(_) => tracing::info!("wrote the registration"),
            // Another replica was faster. The next turn sees what it wrote.
            Err(kube::Error::Api(status)) if status.is_conflict() => self.cx.world.changed.notify_one(),
            Err(error) => return Err(of_registration(error)),
        }
        Ok(())
    }

    /// The certificate to show, and the authorities to believe.
    async fn certificate(
        &mut self,
        registration: &MutatingWebhookConfiguration,
    ) -> Result<(Leaf, Option<String>), Error> {
        let Shared { store, kept, believed } = match &mut self.source {
            Source::Files(directory) => return Ok(files::read(directory)?),
            Source::SelfSigned(shared) => shared.as_mut(),
        };
        // What was in the registration before the Secret is read. An authority is surely known when it was there for long
        // enough.
        let now = Instant::now();
        believed.retain(|authority, _| registration::believes(registration, authority));
        for authority in kept.iter().flat_map(Kept::authorities) {
            if registration::believes(registration, authority) {
                believed.entry(authority.to_owned()).or_insert(now);
            }
        }
        let surely =
            |authority: &str| believed.get(authority).is_some_and(|since| now.duration_since(*since) >= self.overlap);
        let known = |kept: &Kept| kept.authorities().into_iter().all(surely);
        let read = store.step(kept.as_ref(), unix_now(), known).await?;
        let result = (read.current.leaf.clone(), Some(read.authorities().concat()));
        *kept = Some(read);
        Ok(result)
    }
}

fn of_registration(error: kube::Error) -> Error {
    match error {
        kube::Error::Api(status) if status.is_not_found() => Error::NotInstalled,
        error => Error::Registration(Box::new(error)),
    }
}

fn unix_now() -> i64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}
