//! Stage observe: five watches fill the [`World`] and trigger the profiles that an event concerns.

use std::{fmt::Debug, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::Namespace,
};
use kube::{
    Api, Client, Resource,
    core::{DeserializeGuard, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{Config, Event, watcher},
    },
};
use palisade_api::{ToolSecurityParams, ToolSecurityProfile, names};
use palisade_process::watch_backoff;
use serde::de::DeserializeOwned;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    call::ApiError,
    queue::Queue,
    world::{Concerned, World},
};

/// Starts the watches.
pub fn start(client: &Client, world: &Arc<World>, queue: &Arc<Queue>, tasks: &TaskTracker, stop: &CancellationToken) {
    // Pages of 500 (the default) bound what a list holds at a time. Streaming lists are not asked for: the
    // supported servers do not all serve them.
    let all = Config::default();
    let managed = all.clone().labels(&format!("{}={}", names::MANAGED_BY_LABEL, names::MANAGED_BY));
    let follow = Follow { world, queue, tasks, stop };
    // A profile is written by people: one that cannot be read must not hide the others.
    follow.kind::<DeserializeGuard<ToolSecurityProfile>>(Api::all(client.clone()), all.clone(), World::see_profile);
    // Metadata only.
    follow.kind::<PartialObjectMeta<Namespace>>(Api::all(client.clone()), all.clone(), World::see_namespace);
    // All of this kind are ours, and have no labels.
    follow.kind::<DeserializeGuard<ToolSecurityParams>>(Api::all(client.clone()), all, World::see_params);
    follow.kind::<ValidatingAdmissionPolicy>(Api::all(client.clone()), managed.clone(), World::see_policy);
    follow.kind::<ValidatingAdmissionPolicyBinding>(Api::all(client.clone()), managed, World::see_binding);
}

struct Follow<'a> {
    world: &'a Arc<World>,
    queue: &'a Arc<Queue>,
    tasks: &'a TaskTracker,
    stop: &'a CancellationToken,
}

impl Follow<'_> {
    /// Watches one kind until the end. An error is never the end.
    fn kind<K>(&self, api: Api<K>, config: Config, see: impl Fn(&World, Event<K>) -> Concerned + Send + 'static)
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let (world, queue, stop) = (Arc::clone(self.world), Arc::clone(self.queue), self.stop.clone());
        self.tasks.spawn(async move {
            let mut events = std::pin::pin!(watcher(api, config).backoff(watch_backoff()));
            let mut ready = false;
            while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
                match event {
                    Ok(event) => queue.trigger(see(&world, event)),
                    Err(error) => {
                        let error = ApiError::from(error);
                        tracing::warn!(kind = %K::kind(&()), %error, "watch failed and is tried again");
                    }
                }
                if !ready && world.synced() {
                    ready = true;
                    queue.trigger(world.profiles());
                }
            }
        });
    }
}
