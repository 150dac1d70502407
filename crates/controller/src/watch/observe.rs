//! Stage observe: watches keep the [`Store`] and trigger the profiles and namespaces that an event concerns: six, and one
//! for each kind that profiles may generate.

use std::{fmt::Debug, sync::Arc};

use futures::StreamExt;
use k8s_openapi::api::{
    admissionregistration::v1::{ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding},
    core::v1::Namespace,
};
use kube::{
    Api, Client, Resource,
    core::{DeserializeGuard, DynamicObject, ObjectMeta, PartialObjectMeta},
    runtime::{
        WatchStreamExt,
        watcher::{Config, Event, watcher},
    },
};
use palisade_api::{ToolSecurityException, ToolSecurityParams, ToolSecurityProfile, names};
use palisade_runtime::{Supervisor, watch_backoff};
use serde::de::DeserializeOwned;

use crate::{
    api_request::ApiError,
    object_kind::ObjectKind,
    object_name::NamespaceName,
    queue::{ProfileQueue, Queues},
    watch::{
        exception_store::AffectedProfiles,
        store::{ProfileNames, Store},
    },
};

/// Starts the watches. Each wakes the lanes that look at its kind.
pub fn start(client: &Client, store: &Arc<Store>, queues: &Queues, supervisor: &Supervisor) {
    // Pages of 500 (the default) bound the memory for a list. The controller does not use streaming lists, because not
    // all supported servers serve them.
    let all = Config::default();
    let managed = all.clone().labels(&format!("{}={}", names::MANAGED_BY_LABEL, names::MANAGED_BY));
    let follow = Follow { store, queues, supervisor };
    let Queues { reconcile, repairs, params, rollouts, exceptions, objects } = queues;
    // People write profiles: an unreadable one must not hide the others.
    follow.kind::<DeserializeGuard<ToolSecurityProfile>>(
        Api::all(client.clone()),
        all.clone(),
        [reconcile, rollouts].into(),
        Store::observe_profile,
    );
    // Metadata only.
    follow.kind::<PartialObjectMeta<Namespace>>(Api::all(client.clone()), all.clone(), [params, rollouts].into(), {
        let (exceptions, objects) = (Arc::clone(exceptions), Arc::clone(objects));
        move |store, event| {
            match &event {
                Event::Apply(namespace) | Event::InitApply(namespace) if !store.objects.is_off() => {
                    objects.trigger(namespace.metadata.name.clone().map(NamespaceName::new));
                }
                _ => {}
            }
            if let Event::Apply(namespace) | Event::Delete(namespace) = &event
                && let Some(name) = &namespace.metadata.name
                && !store.exceptions.in_namespace(name).is_empty()
            {
                exceptions.trigger([NamespaceName::new(name)]);
            }
            store.observe_namespace(event)
        }
    });
    // All of this kind are ours, and have no labels.
    follow.kind::<DeserializeGuard<ToolSecurityParams>>(
        Api::all(client.clone()),
        all.clone(),
        [params].into(),
        Store::observe_params,
    );
    // Tenants write them.
    follow.kind::<DeserializeGuard<ToolSecurityException>>(Api::all(client.clone()), all, [params].into(), {
        let exceptions = Arc::clone(exceptions);
        move |store, event| {
            let AffectedProfiles { profiles, namespaces } = store.exceptions.observe(event);
            exceptions.trigger(namespaces);
            for (profile, namespace) in
                profiles.iter().flat_map(|(profile, all)| all.iter().map(move |one| (profile, one)))
            {
                store.touch(profile, namespace);
            }
            profiles.into_keys().collect()
        }
    });
    // The lanes restore them, and report them in the status.
    let both: Vec<_> = [repairs, reconcile].into();
    follow.kind::<ValidatingAdmissionPolicy>(
        Api::all(client.clone()),
        managed.clone(),
        both.clone(),
        Store::observe_object,
    );
    follow.kind::<ValidatingAdmissionPolicyBinding>(Api::all(client.clone()), managed, both, Store::observe_object);
    for kind in store.objects.kinds() {
        follow.objects(client, kind);
    }
}

/// Triggers the namespaces that may have generated objects.
fn trigger_objects(store: &Store, queues: &Queues) {
    if !store.objects.is_off() {
        let all = store.namespaces();
        queues.objects.trigger(all.iter().map(|one| NamespaceName::new(one.namespace.get().name)));
    }
}

fn metadata(event: Event<PartialObjectMeta<DynamicObject>>) -> Event<ObjectMeta> {
    match event {
        Event::Init => Event::Init,
        Event::InitApply(object) => Event::InitApply(object.metadata),
        Event::InitDone => Event::InitDone,
        Event::Apply(object) => Event::Apply(object.metadata),
        Event::Delete(object) => Event::Delete(object.metadata),
    }
}

struct Follow<'a> {
    store: &'a Arc<Store>,
    queues: &'a Queues,
    supervisor: &'a Supervisor,
}

impl Follow<'_> {
    /// Watches one kind until the controller stops. An error does not end the watch.
    fn kind<K>(
        &self,
        api: Api<K>,
        config: Config,
        wake: Vec<&Arc<ProfileQueue>>,
        observe: impl Fn(&Store, Event<K>) -> ProfileNames + Send + 'static,
    ) where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + 'static,
    {
        let (store, queues, stop) = (Arc::clone(self.store), self.queues.clone(), self.supervisor.stop().clone());
        let wake: Vec<_> = wake.into_iter().map(Arc::clone).collect();
        self.supervisor.spawn(format!("watch of {}", K::plural(&())), async move {
            let mut events = std::pin::pin!(watcher(api, config).backoff(watch_backoff()));
            let mut ready = false;
            while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
                match event {
                    Ok(event) => {
                        let concerned = observe(&store, event);
                        for queue in &wake {
                            queue.trigger(concerned.clone());
                        }
                    }
                    Err(error) => {
                        let error = ApiError::from(error);
                        tracing::warn!(kind = %K::kind(&()), %error, "watch failed; will retry");
                    }
                }
                if !ready && store.synced() {
                    ready = true;
                    queues.trigger_all(&store.profiles());
                    queues.exceptions.trigger(store.exceptions.namespaces());
                    trigger_objects(&store, &queues);
                }
            }
        });
    }

    /// Watches the metadata of the generated objects of a kind until the controller stops. An error does not end the
    /// watch.
    fn objects(&self, client: &Client, kind: ObjectKind) {
        let (store, queues, stop) = (Arc::clone(self.store), self.queues.clone(), self.supervisor.stop().clone());
        let resource = kind.api_resource();
        let api: Api<PartialObjectMeta<DynamicObject>> = Api::all_with(client.clone(), &resource);
        let generated = Config::default().labels(names::TEMPLATE_LABEL);
        self.supervisor.spawn(format!("watch of generated {}", kind.resource), async move {
            let mut events = std::pin::pin!(watcher(api, generated).backoff(watch_backoff()));
            while let Some(Some(event)) = stop.run_until_cancelled(events.next()).await {
                match event {
                    Ok(event) => {
                        let is_list = matches!(event, Event::InitDone);
                        queues.objects.trigger(store.objects.observe(&kind.object_type, metadata(event)));
                        // Namespaces may have waited for the list.
                        if is_list {
                            trigger_objects(&store, &queues);
                        }
                    }
                    Err(error) => {
                        let error = ApiError::from(error);
                        tracing::warn!(kind = %kind.object_type, %error, "watch failed; will retry");
                        store.objects.failed(&kind.object_type, error.to_string());
                    }
                }
            }
        });
    }
}
