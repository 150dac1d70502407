//! The policies that mutate pods, and whether the API server serves their kind.
//!
//! That can change while the controller runs, by an upgrade of the cluster, and a watch of a kind that is not served
//! fails forever. So the controller asks the API server periodically, and watches policies and bindings where it serves
//! the kind.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use futures::{StreamExt, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::{
    Api, Client,
    api::{ApiResource, DynamicObject},
    runtime::{
        WatchStreamExt,
        watcher::{Config, Event, watcher},
    },
};
use palisade_api::names;
use palisade_compiler::MutatingPair;
use palisade_runtime::{Supervisor, watch_backoff};
use serde::Serialize;
use serde_json::Value as Json;

use crate::{
    api_request::{ApiError, call},
    generated::compare::{same_meta, same_spec},
    object_name::ProfileName,
    queue::ProfileQueue,
    watch::{
        store::{ProfileNames, Store},
        watch_cache::{Table, feed, identity, slim},
    },
};

const GROUP: &str = "admissionregistration.k8s.io";
/// The versions that are known, the best first.
pub const VERSIONS: [&str; 2] = ["v1", "v1beta1"];
/// How often the API server is asked whether it serves the kind, while it does not.
const DISCOVERY_INTERVAL: Duration = Duration::from_secs(10);

/// The two kinds.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Policy,
    Binding,
}

impl Kind {
    const ALL: [Self; 2] = [Self::Policy, Self::Binding];

    pub fn name(self) -> &'static str {
        match self {
            Self::Policy => "MutatingAdmissionPolicy",
            Self::Binding => "MutatingAdmissionPolicyBinding",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            Self::Policy => "mutatingadmissionpolicies",
            Self::Binding => "mutatingadmissionpolicybindings",
        }
    }

    pub fn resource(self, version: &str) -> ApiResource {
        ApiResource {
            group: GROUP.to_owned(),
            version: version.to_owned(),
            api_version: format!("{GROUP}/{version}"),
            kind: self.name().to_owned(),
            plural: self.plural().to_owned(),
        }
    }
}

/// The version in which the API server serves the kinds, if it does.
///
/// # Errors
/// The API server gave no answer.
pub async fn served(client: &Client) -> Result<Option<&'static str>, ApiError> {
    for version in VERSIONS {
        match call(client.list_api_group_resources(&format!("{GROUP}/{version}"))).await {
            Ok(list) if list.resources.iter().any(|one| one.name == Kind::Policy.plural()) => {
                return Ok(Some(version));
            }
            Err(error) if !error.is_not_found() => return Err(error),
            _ => {}
        }
    }
    Ok(None)
}

/// The controller's copy of the policies that mutate pods.
#[derive(Debug, Default)]
pub struct NativePolicies {
    inner: Mutex<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    /// True if the API server was asked which version it serves, and its last answer.
    asked: bool,
    served: Option<&'static str>,
    policies: Table<String, Arc<Observed>>,
    bindings: Table<String, Arc<Observed>>,
}

/// A policy or binding in the cluster, the same in each version.
#[derive(Debug, PartialEq)]
struct Observed {
    meta: ObjectMeta,
    spec: Json,
}

impl NativePolicies {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers the version in which the API server serves the kinds, if it does. Returns whether that is new.
    pub fn set_served(&self, version: Option<&'static str>) -> bool {
        let mut inner = self.lock();
        let new = inner.asked && inner.served != version;
        (inner.asked, inner.served) = (true, version);
        if version.is_none() {
            (inner.policies, inner.bindings) = Default::default();
        }
        new
    }

    /// True if the state differs from when the API server served the kinds in this version: it serves another version
    /// now, or the cluster does not have the desired objects.
    pub fn differs(&self, served: Option<&'static str>, desired: Option<&MutatingPair>) -> bool {
        let inner = self.lock();
        if inner.asked && inner.served != served {
            return true;
        }
        let Some(pair) = desired.filter(|_| inner.policies.synced() && inner.bindings.synced()) else { return false };
        // Destructured, so that a new object cannot be forgotten.
        let MutatingPair { policy, binding } = pair;
        !is(&inner.policies, &policy.metadata, &policy.spec) || !is(&inner.bindings, &binding.metadata, &binding.spec)
    }

    /// Identifies the policy and the binding of this name, because others of that name may have existed before.
    pub fn identity(&self, name: &str) -> String {
        let inner = self.lock();
        let found = [inner.policies.get(name), inner.bindings.get(name)];
        let one = |found: &Arc<Observed>| {
            let uid = found.meta.uid.as_deref().unwrap_or_default();
            format!("{uid}.{}", found.meta.generation.unwrap_or_default())
        };
        found.map(|found| found.map_or_else(|| "-".to_owned(), one)).join("/")
    }

    /// Remembers an object as it was read or written.
    pub fn wrote(&self, kind: Kind, meta: &ObjectMeta, spec: Json) {
        let (name, version, row) = row(meta.clone(), spec);
        self.lock().table(kind).wrote(name, version, row);
    }

    /// Handles an event of a watch. Returns the names of changed objects.
    fn observe(&self, kind: Kind, event: Event<DynamicObject>) -> Vec<String> {
        let changes = feed(self.lock().table(kind), event, |mut object| {
            let spec = object.data.get_mut("spec").map(Json::take).unwrap_or_default();
            row(object.metadata, spec)
        });
        changes.into_iter().map(|change| change.key).collect()
    }
}

impl Inner {
    fn table(&mut self, kind: Kind) -> &mut Table<String, Arc<Observed>> {
        match kind {
            Kind::Policy => &mut self.policies,
            Kind::Binding => &mut self.bindings,
        }
    }
}

fn row(meta: ObjectMeta, spec: Json) -> (String, u64, Arc<Observed>) {
    let (name, version) = identity(&meta);
    (name, version, Arc::new(Observed { meta: slim(meta), spec }))
}

/// True if an object is in the cluster as it is desired.
fn is(table: &Table<String, Arc<Observed>>, meta: &ObjectMeta, spec: &impl Serialize) -> bool {
    let found = meta.name.as_ref().and_then(|name| table.get(name));
    let spec = serde_json::to_value(spec).unwrap_or_default();
    found.is_some_and(|found| same_meta(meta, &found.meta) && same_spec(&spec, &found.spec))
}

/// Watches the kinds, where and as long as the API server serves them, until the end.
pub fn start(
    client: &Client,
    native: &Arc<NativePolicies>,
    store: &Arc<Store>,
    queue: &Arc<ProfileQueue>,
    supervisor: &Supervisor,
) {
    let (client, native, store, queue) = (client.clone(), Arc::clone(native), Arc::clone(store), Arc::clone(queue));
    let stop = supervisor.stop().clone();
    supervisor.spawn("watch of mutating policies", async move {
        let turns = async {
            loop {
                match served(&client).await {
                    Ok(version) => {
                        if native.set_served(version) {
                            tracing::info!(
                                api_version = ?version,
                                "the API server now serves MutatingAdmissionPolicy in another version"
                            );
                            queue.trigger(store.profiles());
                        }
                        if let Some(version) = version {
                            follow(&client, version, &native, &store, &queue).await;
                        }
                    }
                    Err(error) => tracing::debug!(%error, "could not discover the kinds of the API server"),
                }
                tokio::time::sleep(DISCOVERY_INTERVAL).await;
            }
        };
        let _: Option<()> = stop.run_until_cancelled(turns).await;
    });
}

/// Watches the kinds in a version until it is served no more.
async fn follow(client: &Client, version: &str, native: &NativePolicies, store: &Store, queue: &ProfileQueue) {
    let managed = Config::default().labels(&format!("{}={}", names::MANAGED_BY_LABEL, names::MANAGED_BY));
    let watches = Kind::ALL.map(|kind| {
        let api: Api<DynamicObject> = Api::all_with(client.clone(), &kind.resource(version));
        watcher(api, managed.clone()).backoff(watch_backoff()).map(move |event| (kind, event)).boxed()
    });
    let mut events = stream::select_all(watches);
    while let Some((kind, event)) = events.next().await {
        match event {
            Ok(event) => {
                let names = native.observe(kind, event);
                let of = |profile: &ProfileName| names.contains(&names::mutation(profile));
                let concerned: ProfileNames = store.profiles().into_iter().filter(of).collect();
                queue.trigger(concerned);
            }
            Err(error) => {
                let error = ApiError::from(error);
                tracing::warn!(kind = kind.name(), api_version = version, %error, "watch failed; will retry");
                if error.is_not_found() {
                    return;
                }
            }
        }
    }
}
