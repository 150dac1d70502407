//! API servers with active profiles, which learn the kinds of objects that the profiles evaluate.

use std::sync::{PoisonError, RwLock, RwLockReadGuard};

use palisade_admission::requests::Cluster;
use palisade_kube_json::workload::WORKLOADS;
use serde_json::Value as Json;

use crate::{object_kinds::ObjectKinds, offline};

/// The API servers.
pub struct Clusters {
    both: RwLock<Both>,
    kinds: ObjectKinds,
}

/// An API server with all admission plugins, and one without.
pub struct Both {
    /// With all plugins.
    pub all: Cluster,
    /// The same without admission plugins, which may need objects that are not in the files.
    pub alone: Cluster,
}

impl Clusters {
    /// API servers with profiles that evaluate these kinds.
    pub fn new(all: Cluster, alone: Cluster, kinds: ObjectKinds) -> Self {
        Self { both: RwLock::new(Both { all, alone }), kinds }
    }

    /// Whether the profiles evaluate objects of a kind other than pods and workloads.
    pub fn evaluate(&self, api_version: &str, kind: &str) -> bool {
        self.kinds.find(self.read().all.kinds(), api_version, kind).is_some()
    }

    /// The kind of a resource, if profiles evaluate it; `own` is the kind that an object has.
    pub fn kind_of(&self, [group, version, resource]: [&str; 3], own: &str) -> Option<String> {
        let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
        if (api_version.as_str(), resource) == ("v1", "pods") {
            return Some("Pod".to_owned());
        }
        if let Some(found) = WORKLOADS.iter().find(|one| (one.api_version, one.resource) == (&api_version, resource)) {
            return Some(found.kind.to_owned());
        }
        self.kinds.all().iter().find(|one| (one.group.as_str(), one.resource.as_str()) == (group, resource))?;
        let known = self.read().all.kinds().by_plural(group, version, resource).map(|one| one.kind.clone());
        known.or_else(|| (!own.is_empty()).then(|| own.to_owned()))
    }

    /// Adds the definition of a kind.
    ///
    /// # Errors
    /// The API server would reject it.
    pub fn define(&self, definition: &Json) -> Result<(), String> {
        let mut both = self.both.write().unwrap_or_else(PoisonError::into_inner);
        let Both { all, alone } = &mut *both;
        [all, alone].into_iter().try_for_each(|cluster| {
            cluster.apply(definition.clone()).map(drop).map_err(|refused| offline::text(&refused))
        })
    }

    fn read(&self) -> RwLockReadGuard<'_, Both> {
        self.both.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The API servers, which have the kind of an object if profiles evaluate it.
    ///
    /// # Errors
    /// The kind cannot be defined.
    pub fn with_kind_of(&self, object: &Json) -> Result<RwLockReadGuard<'_, Both>, String> {
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let both = self.read();
        if both.all.kinds().by_kind(api_version, kind).is_some() {
            return Ok(both);
        }
        drop(both);
        let mut both = self.both.write().unwrap_or_else(PoisonError::into_inner);
        let Both { all, alone } = &mut *both;
        for cluster in [all, alone] {
            self.kinds.define(cluster, api_version, kind)?;
        }
        drop(both);
        Ok(self.read())
    }
}
