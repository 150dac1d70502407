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
use palisade_process::{Supervisor, watch_backoff};
use serde::de::DeserializeOwned;

use crate::{
    call::ApiError,
    context::Queues,
    queue::Queue,
    world::{Concerned, World},
};

/// Starts the watches. Each wakes the lanes that look at its kind.
pub fn start(client: &Client, world: &Arc<World>, queues: &Queues, supervisor: &Supervisor) {
    // Pages of 500 (the default) bound what a list holds at a time. Streaming lists are not asked for: the
    // supported servers do not all serve them.
    let all = Config::default();
    let managed = all.clone().labels(&format!("{}={}", names::MANAGED_BY_LABEL, names::MANAGED_BY));
    let follow = Follow { world, queues, supervisor };
    let Queues { passes, repairs, tenants } = queues;
    // A profile is written by people: one that cannot be read must not hide the others.
    follow.kind::<DeserializeGuard<ToolSecurityProfile>>(
        Api::all(client.clone()),
        all.clone(),
        [passes].into(),
        World::see_profile,
    );
    // Metadata only.
    follow.kind::<PartialObjectMeta<Namespace>>(
        Api::all(client.clone()),
        all.clone(),
        [tenants].into(),
        World::see_namespace,
    );
    // All of this kind are ours, and have no labels.
    follow.kind::<DeserializeGuard<ToolSecurityParams>>(
        Api::all(client.clone()),
        all,
        [tenants].into(),
        World::see_params,
    );
    // Repaired, and told in the status.
    let both: Vec<_> = [repairs, passes].into();
    follow.kind::<ValidatingAdmissionPolicy>(
        Api::all(client.clone()),
        managed.clone(),
        both.clone(),
        World::see_policy,
    );
    follow.kind::<ValidatingAdmissionPolicyBinding>(Api::all(client.clone()), managed, both, World::see_binding);
}

struct Follow<'a> {
    world: &'a Arc<World>,
    queues: &'a Queues,
    supervisor: &'a Supervisor,
}

impl Follow<'_> {
    /// Watches one kind until the end. An error is never the end.
    fn kind<K>(
        &self,
        api: Api<K>,
        config: Config,
        wake: Vec<&Arc<Queue>>,
        see: impl Fn(&World, Event<K>) -> Concerned + Send + 'static,
    ) where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let (world, queues, stop) = (Arc::clone(self.world), self.queues.clone(), self.supervisor.stop().clone());
        let wake: Vec<_> = wake.into_iter().map(Arc::clone).collect();
        self.supervisor.spawn(format!("watch of {}", K::plural(&())), async move {
            let mut events = std::pin::pin!(watcher(api, config).backoff(watch_backoff()));
            let mut ready = false;
            while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
                match event {
                    Ok(event) => {
                        let concerned = see(&world, event);
                        for queue in &wake {
                            queue.trigger(concerned.clone());
                        }
                    }
                    Err(error) => {
                        let error = ApiError::from(error);
                        tracing::warn!(kind = %K::kind(&()), %error, "watch failed and is tried again");
                    }
                }
                if !ready && world.synced() {
                    ready = true;
                    queues.trigger_all(&world.profiles());
                }
            }
        });
    }
}
