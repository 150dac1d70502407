//! The objects of `spec.generate` in the cluster: the part of the controller's copy that watches of their kinds keep up
//! to date. Only metadata is watched, and only of objects with the label of a template.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use kube::{core::ObjectMeta, runtime::watcher::Event};
use palisade_api::names;
use palisade_compiler::ObjectType;
use serde_json::Value as Json;
use tokio::time::Instant;

use crate::{
    object_kind::ObjectKind,
    object_name::NamespaceName,
    watch::{
        json_box::JsonBox,
        watch_cache::{Change, Table, feed, version},
    },
};

/// An object with the label of a template.
#[derive(Clone, Debug, PartialEq)]
pub struct ObservedObject {
    pub uid: String,
    /// The profile in its label.
    pub profile: String,
    /// The template in its label.
    pub template: String,
    pub digest: Option<String>,
    /// True if it remains when it is no longer generated.
    pub is_orphaned: bool,
    /// True if it is being deleted.
    pub terminating: bool,
    /// The fields that the controller has applied, as in `managedFields`; `None` if there are none.
    pub fields: Option<JsonBox<Json>>,
}

/// After this time, a kind that was not listed delays no other.
const MAX_WAIT: Duration = Duration::from_secs(30);

impl ObservedObject {
    /// True if the controller has applied it for a profile. Labels alone may be copied from another object.
    pub fn is_generated(&self) -> bool {
        self.fields.is_some() && !self.profile.is_empty()
    }
}

/// Namespace and name.
type Key = (String, String);

#[derive(Debug)]
struct Watched {
    kind: ObjectKind,
    table: Table<Key, Arc<ObservedObject>>,
    /// Why it cannot be listed.
    error: Option<String>,
}

/// An object in a namespace, and its kind and name.
#[derive(Clone, Debug)]
pub struct ObjectInNamespace {
    pub object_type: ObjectType,
    pub name: String,
    pub observed: Arc<ObservedObject>,
}

/// The generated objects in the cluster.
#[derive(Debug)]
pub struct ObjectStore {
    kinds: Mutex<BTreeMap<ObjectType, Watched>>,
    /// True if the controller may write some kinds.
    any: bool,
    since: Instant,
}

impl Default for ObjectStore {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl ObjectStore {
    pub fn new(kinds: &[ObjectKind]) -> Self {
        let watched = |kind: &ObjectKind| Watched { kind: kind.clone(), table: Table::default(), error: None };
        let all = kinds.iter().map(|kind| (kind.object_type.clone(), watched(kind))).collect();
        Self { kinds: Mutex::new(all), any: !kinds.is_empty(), since: Instant::now() }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<ObjectType, Watched>> {
        self.kinds.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True if the controller may write no kind.
    pub fn is_off(&self) -> bool {
        !self.any
    }

    /// The kinds that the controller may write.
    pub fn kinds(&self) -> Vec<ObjectKind> {
        self.lock().values().map(|watched| watched.kind.clone()).collect()
    }

    /// The kind, if it is watched.
    ///
    /// # Errors
    /// Why its objects are not known.
    pub fn kind(&self, object_type: &ObjectType) -> Result<ObjectKind, String> {
        match self.lock().get(object_type) {
            Some(watched) if watched.table.synced() => Ok(watched.kind.clone()),
            Some(Watched { error: Some(error), .. }) => Err(format!("{object_type} cannot be watched: {error}")),
            Some(_) => Err(format!("{object_type} has not been listed yet")),
            None => Err(format!("{object_type} is not in generate.kinds of the chart's values")),
        }
    }

    /// True if each kind was listed, or could not be listed: a kind that does not exist must not stop other work.
    pub fn settled(&self) -> bool {
        self.since.elapsed() > MAX_WAIT
            || self.lock().values().all(|watched| watched.table.synced() || watched.error.is_some())
    }

    /// The watch of a kind has failed.
    pub fn failed(&self, object_type: &ObjectType, error: String) {
        if let Some(watched) = self.lock().get_mut(object_type) {
            watched.error = Some(error);
        }
    }

    /// Handles an event of a watch. Returns the namespaces with changes.
    pub fn observe(&self, object_type: &ObjectType, event: Event<ObjectMeta>) -> BTreeSet<NamespaceName> {
        let mut kinds = self.lock();
        let Some(watched) = kinds.get_mut(object_type) else { return BTreeSet::new() };
        if matches!(event, Event::InitDone) {
            watched.error = None;
        }
        let changes = feed(&mut watched.table, event, |meta| row(&meta));
        changes.into_iter().map(|Change { key, .. }| NamespaceName::new(key.0)).collect()
    }

    /// An object was written. The response has its new state.
    pub fn wrote(&self, object_type: &ObjectType, meta: &ObjectMeta) -> Arc<ObservedObject> {
        let (key, version, value) = row(meta);
        if let Some(watched) = self.lock().get_mut(object_type) {
            watched.table.wrote(key, version, Arc::clone(&value));
        }
        value
    }

    /// The objects in a namespace.
    pub fn in_namespace(&self, namespace: &str) -> Vec<ObjectInNamespace> {
        let mut found = Vec::new();
        for (object_type, watched) in self.lock().iter() {
            let from = watched.table.range((namespace.to_owned(), String::new())..);
            found.extend(from.take_while(|((of, _), _)| of == namespace).map(|((_, name), observed)| {
                ObjectInNamespace {
                    object_type: object_type.clone(),
                    name: name.clone(),
                    observed: Arc::clone(observed),
                }
            }));
        }
        found
    }

    /// The namespaces with objects of a profile.
    pub fn namespaces_of(&self, profile: &str) -> BTreeSet<NamespaceName> {
        let kinds = self.lock();
        let all = kinds.values().flat_map(|watched| watched.table.iter());
        all.filter(|(_, object)| object.profile == profile && object.is_generated())
            .map(|((namespace, _), _)| NamespaceName::new(namespace))
            .collect()
    }
}

type Row = (Key, u64, Arc<ObservedObject>);

fn row(meta: &ObjectMeta) -> Row {
    let key = (meta.namespace.clone().unwrap_or_default(), meta.name.clone().unwrap_or_default());
    (key, version(meta), Arc::new(observed(meta)))
}

/// The parts of the metadata that decide whether an object is as its template requires.
pub fn observed(meta: &ObjectMeta) -> ObservedObject {
    let label = |key: &str| meta.labels.as_ref().and_then(|labels| labels.get(key)).cloned();
    let annotation = |key: &str| meta.annotations.as_ref().and_then(|annotations| annotations.get(key)).cloned();
    let own = meta.managed_fields.iter().flatten().find(|entry| {
        entry.manager.as_deref() == Some(names::field_manager::GENERATE)
            && entry.operation.as_deref() == Some("Apply")
            && entry.subresource.as_deref().unwrap_or_default().is_empty()
    });
    ObservedObject {
        uid: meta.uid.clone().unwrap_or_default(),
        profile: label(names::PROFILE_LABEL).unwrap_or_default(),
        template: label(names::TEMPLATE_LABEL).unwrap_or_default(),
        digest: annotation(names::DIGEST_ANNOTATION),
        is_orphaned: annotation(names::DELETION_POLICY_ANNOTATION).as_deref() == Some("Orphan"),
        terminating: meta.deletion_timestamp.is_some(),
        fields: own.and_then(|entry| entry.fields_v1.as_ref()).map(|fields| JsonBox::new(&fields.0)),
    }
}
