//! What is known of the cluster: the profiles, and their parameters in each namespace. Watches fill it.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{
        Arc, PoisonError, RwLock,
        atomic::{AtomicBool, Ordering},
    },
};

use futures::{Stream, StreamExt};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kube::{
    Api, Client, Resource,
    core::DeserializeGuard,
    runtime::{
        WatchStreamExt, reflector,
        reflector::{ObjectRef, Store},
        watcher,
        watcher::Config,
    },
};
use palisade_api::{ToolSecurityParams, ToolSecurityProfile, names};
use palisade_process::{Supervisor, watch_backoff};
use serde::de::DeserializeOwned;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    filler::{Filled, Filler},
    metrics::Outcome,
    registration::Wanted,
    review::{Call, Reply},
};

/// A profile.
#[derive(Debug)]
pub struct Profile {
    /// Its uid and generation: what `filler` was made of.
    of: (Option<String>, Option<i64>),
    /// What it fills in, if anything.
    pub filler: Option<Arc<Filler>>,
    /// Which namespaces it selects.
    pub selector: LabelSelector,
    /// Whether the API server is to ask this webhook about its pods.
    pub wanted: Wanted,
}

/// What is known.
pub struct World {
    profiles: RwLock<BTreeMap<String, Arc<Profile>>>,
    params: Store<DeserializeGuard<ToolSecurityParams>>,
    profiles_known: AtomicBool,
    params_known: AtomicBool,
    /// Something that concerns the registration has changed.
    pub changed: Notify,
}

impl World {
    /// Starts the watches.
    pub fn start(client: &Client, tasks: &Supervisor, stop: &CancellationToken) -> Arc<Self> {
        let (params, fill_params) = reflector::store();
        let world = Arc::new(Self {
            profiles: RwLock::default(),
            params,
            profiles_known: AtomicBool::new(false),
            params_known: AtomicBool::new(false),
            changed: Notify::new(),
        });
        let (profiles, fill_profiles) = reflector::store();
        // A profile is written by people: one that cannot be read must not hide the others.
        let events = watch::<DeserializeGuard<ToolSecurityProfile>>(client).reflect(fill_profiles);
        let seen = Arc::clone(&world);
        follow(events, tasks, stop, move || seen.see_profiles(&profiles));
        // As above: one malformed object must not stop the watch of all the others.
        let events = watch::<DeserializeGuard<ToolSecurityParams>>(client)
            .modify(|params| {
                // In thousands of objects it adds up.
                let meta = params.meta_mut();
                (meta.managed_fields, meta.annotations, meta.labels) = (None, None, None);
            })
            .reflect(fill_params);
        let seen = Arc::clone(&world);
        follow(events, tasks, stop, move || {
            if !seen.params_known.load(Ordering::Relaxed) && is_filled(&seen.params) {
                seen.params_known.store(true, Ordering::Relaxed);
                seen.changed.notify_one();
            }
        });
        world
    }

    /// Whether every watch has read its list once.
    pub fn synced(&self) -> bool {
        self.profiles_known.load(Ordering::Relaxed) && self.params_known.load(Ordering::Relaxed)
    }

    /// The profiles by name.
    pub fn profiles(&self) -> BTreeMap<String, Arc<Profile>> {
        self.profiles.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What a profile says to a call.
    pub fn reply(&self, profile: &str, call: &Call) -> (Outcome, Reply) {
        let found = self.profiles.read().unwrap_or_else(PoisonError::into_inner).get(profile).map(Arc::clone);
        let Some(filler) = found.as_ref().and_then(|found| found.filler.as_ref()) else {
            return (Outcome::NoProfile, Reply::default());
        };
        let params = self.params.get(&ObjectRef::new(&names::params(profile)).within(&call.namespace));
        // Parameters that cannot be read are none: the validation denies the namespace and says so.
        let params = params.as_ref().and_then(|params| params.0.as_ref().ok());
        let filled = filler.fill(call, params.map(|params| &params.spec));
        let outcome = match filled {
            Filled::Complete { .. } => Outcome::Complete,
            Filled::NoParameters => Outcome::NoParameters,
            Filled::Patch { .. } => Outcome::Filled,
        };
        (outcome, filled.into())
    }

    fn see_profiles(&self, store: &Store<DeserializeGuard<ToolSecurityProfile>>) {
        let before = self.profiles();
        let mut now = BTreeMap::new();
        for guard in store.state() {
            let name = guard.meta().name.clone().unwrap_or_default();
            let known = before.get(&name);
            match &guard.0 {
                Ok(profile) => drop(now.insert(name, of_profile(profile, known))),
                Err(error) => {
                    tracing::warn!(
                        profile = name,
                        error = error.error,
                        "a profile cannot be read; what it was is kept"
                    );
                    now.extend(known.map(|known| (name, Arc::clone(known))));
                }
            }
        }
        *self.profiles.write().unwrap_or_else(PoisonError::into_inner) = now;
        if is_filled(store) {
            self.profiles_known.store(true, Ordering::Relaxed);
        }
        self.changed.notify_one();
    }
}

/// What a profile is, unless it is what it was. One with a mistake keeps what it filled in before, as it keeps what
/// it enforced before.
fn of_profile(profile: &ToolSecurityProfile, known: Option<&Arc<Profile>>) -> Arc<Profile> {
    let of = (profile.metadata.uid.clone(), profile.metadata.generation);
    let wanted = Wanted::of(profile);
    let (filler, selector) = match known {
        Some(known) if known.of == of => (known.filler.clone(), known.selector.clone()),
        _ => match Filler::new(profile) {
            Ok(filler) => (filler.map(Arc::new), palisade_compiler::namespace_selector(&profile.spec)),
            Err(error) => {
                tracing::warn!(profile = profile.metadata.name, error, "a profile has a mistake; what it was is kept");
                match known.filter(|known| known.of.0 == of.0) {
                    Some(known) => (known.filler.clone(), known.selector.clone()),
                    None => (None, LabelSelector::default()),
                }
            }
        },
    };
    let wanted = if filler.is_some() { wanted } else { Wanted::No };
    Arc::new(Profile { of, filler, selector, wanted })
}

fn is_filled<K>(store: &Store<K>) -> bool
where
    K: reflector::Lookup + Clone + 'static,
    K::DynamicType: Eq + std::hash::Hash + Clone,
{
    futures::FutureExt::now_or_never(store.wait_until_ready()).is_some_and(|ready| ready.is_ok())
}

fn watch<K>(client: &Client) -> impl Stream<Item = watcher::Result<watcher::Event<K>>> + Send + use<K>
where
    K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
{
    watcher(Api::all(client.clone()), Config::default()).backoff(watch_backoff())
}

/// Reads a watch until the end. An error is never the end.
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
                // While a list is read, what was known stays.
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Ok(_) => seen(),
                Err(error) => tracing::warn!(%error, "a watch failed and is tried again"),
            }
        }
    });
}
