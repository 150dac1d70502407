//! The webhook's view of the cluster: the profiles in effect, and their parameters in each namespace. Watches keep it
//! up to date.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures::{Stream, StreamExt};
use k8s_openapi::api::apps::v1::ControllerRevision;
use kube::{
    Api, Client, Resource, ResourceExt,
    core::DeserializeGuard,
    runtime::{
        WatchStreamExt, reflector,
        reflector::{ObjectRef, Store},
        watcher,
        watcher::Config,
    },
};
use palisade_api::{ToolSecurityParams, names};
use palisade_runtime::{Supervisor, watch_backoff};
use serde::de::DeserializeOwned;
use tokio::{
    sync::Notify,
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use crate::{
    metrics::{Metrics, ReviewOutcome},
    mutator::Mutated,
    profiles::{Loaded, Profiles, newest},
    review::{Call, Reply},
};

/// How long until a check that panicked is repeated.
const RETRY_INTERVAL: Duration = Duration::from_secs(30);

/// The profiles in effect, and their parameters.
pub struct ClusterState {
    profiles: Profiles,
    params: Store<DeserializeGuard<ToolSecurityParams>>,
    profiles_known: AtomicBool,
    params_known: AtomicBool,
    /// Notifies when it becomes ready.
    pub changed: Notify,
}

impl ClusterState {
    /// Starts the watches.
    pub fn start(client: &Client, metrics: &Arc<Metrics>, tasks: &Supervisor, stop: &CancellationToken) -> Arc<Self> {
        let (params, fill_params) = reflector::store();
        let cluster = Arc::new(Self {
            profiles: Profiles::default(),
            params,
            profiles_known: AtomicBool::new(false),
            params_known: AtomicBool::new(false),
            changed: Notify::new(),
        });
        let (revisions, fill_revisions) = reflector::store();
        let managed = Config::default().labels(&format!("{}={}", names::MANAGED_BY_LABEL, names::MANAGED_BY));
        let api: Api<ControllerRevision> = Api::namespaced(client.clone(), names::OPERATOR_NAMESPACE);
        let events = watch(api, managed).reflect(fill_revisions);
        let arrived = Arc::new(Notify::new());
        let seen = Arc::clone(&arrived);
        follow(events, tasks, stop, move || seen.notify_one());
        let (loading, metrics, stopped) = (Arc::clone(&cluster), Arc::clone(metrics), stop.clone());
        tasks.spawn("loader of revisions", async move {
            let _: Option<()> =
                stopped.run_until_cancelled(loading.load_revisions(&revisions, &arrived, &metrics)).await;
        });
        // One malformed object must not stop the watch of all the others.
        let events = watch::<DeserializeGuard<ToolSecurityParams>>(Api::all(client.clone()), Config::default())
            .modify(|params| {
                // Managed fields of thousands of objects take memory.
                let meta = params.meta_mut();
                (meta.managed_fields, meta.annotations, meta.labels) = (None, None, None);
            })
            .reflect(fill_params);
        let seen = Arc::clone(&cluster);
        follow(events, tasks, stop, move || {
            if !seen.params_known.load(Ordering::Relaxed) && is_complete(&seen.params) {
                seen.params_known.store(true, Ordering::Relaxed);
                seen.changed.notify_one();
            }
        });
        cluster
    }

    /// True if every watch has read its list once, and all profiles are loaded.
    pub fn synced(&self) -> bool {
        self.profiles_known.load(Ordering::Relaxed) && self.params_known.load(Ordering::Relaxed)
    }

    pub fn reply(&self, profile: &str, call: &Call) -> (ReviewOutcome, Reply) {
        let Some(mutator) = self.profiles.mutator(profile) else {
            return (ReviewOutcome::NoProfile, Reply::default());
        };
        let params = self.params.get(&ObjectRef::new(&names::params(profile)).within(&call.namespace));
        // Unreadable parameters count as none: the policy denies all pods of the namespace anyway.
        let params = params.as_ref().and_then(|params| params.0.as_ref().ok());
        let mutated = mutator.mutate(call, params.map(|params| &params.spec));
        let outcome = match mutated {
            Mutated::Complete { .. } => ReviewOutcome::Complete,
            Mutated::NoParameters => ReviewOutcome::NoParameters,
            Mutated::Patch { .. } => ReviewOutcome::Mutated,
        };
        (outcome, mutated.into())
    }

    /// Loads the newest revision of each profile, and again when one changes.
    async fn load_revisions(&self, revisions: &Store<ControllerRevision>, arrived: &Notify, metrics: &Metrics) {
        // By profile, the revision that the gate has rejected: it is not checked again.
        let mut rejected = BTreeMap::<String, Option<String>>::new();
        loop {
            // Asked before the revisions are read, which could otherwise be older than the complete list.
            let complete = is_complete(revisions);
            let newest = newest(revisions.state());
            let (mut panicked, mut now) = (BTreeSet::new(), BTreeMap::new());
            for (profile, revision) in &newest {
                let uid = revision.uid();
                if rejected.get(profile) == Some(&uid) {
                    now.insert(profile.clone(), uid);
                    continue;
                }
                match self.profiles.load(profile, revision).await {
                    Loaded::Yes => {}
                    Loaded::Rejected(why) => {
                        let revision = revision.name_any();
                        tracing::warn!(
                            profile,
                            revision,
                            error = why,
                            "the gate rejects the current revision; the earlier one stays in use"
                        );
                        now.insert(profile.clone(), uid);
                    }
                    Loaded::Panicked => {
                        tracing::error!(profile, "the check of a revision panicked; the earlier one stays in use");
                        panicked.insert(profile);
                    }
                }
            }
            self.profiles.retain(&newest);
            metrics.rejected.set(i64::try_from(now.len() + panicked.len()).unwrap_or(i64::MAX));
            rejected = now;
            if complete && !self.profiles_known.swap(true, Ordering::Relaxed) {
                self.changed.notify_one();
            }
            if panicked.is_empty() {
                arrived.notified().await;
            } else {
                let _ = timeout(RETRY_INTERVAL, arrived.notified()).await;
            }
            // One write of the controller causes several events.
            sleep(Duration::from_millis(10)).await;
        }
    }
}

fn is_complete<K>(store: &Store<K>) -> bool
where
    K: reflector::Lookup + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    futures::FutureExt::now_or_never(store.wait_until_ready()).is_some_and(|ready| ready.is_ok())
}

fn watch<K>(api: Api<K>, config: Config) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(api, config).backoff(watch_backoff())
}

/// Reads a watch until it ends. An error does not end it.
fn follow<K: Resource<DynamicType = ()> + Send + 'static>(
    events: impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + 'static,
    tasks: &Supervisor,
    stop: &CancellationToken,
    seen: impl Fn() + Send + 'static,
) {
    let stop = stop.clone();
    tasks.spawn(format!("watch of {}", K::kind(&())), async move {
        let mut events = std::pin::pin!(events);
        while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
            match event {
                // Until the new list is complete, the old one stays.
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(_) => seen(),
                Err(error) => tracing::warn!(%error, "watch failed; will retry"),
            }
        }
    });
}
