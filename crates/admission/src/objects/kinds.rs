//! The kinds that an API server serves, their resources, and the versions in which it serves the same kind.

use std::{collections::BTreeMap, sync::Arc};

use palisade_cel::Minor;
use serde_json::Value;

use super::{
    custom::{Custom, InspectedRule},
    resource::{Resource, Unserved},
    table::Table,
};

/// The kinds and resources of an API server: those built into a minor, and those of CustomResourceDefinitions.
#[derive(Clone, Debug)]
pub struct Kinds {
    pub(super) table: Arc<Table>,
    pub(super) minor: Minor,
    resources: Vec<Resource>,
    /// By group and plural.
    custom: BTreeMap<(String, String), Arc<Custom>>,
    /// Whether rules of definitions remember what their parts came to.
    watches: bool,
}

impl Kinds {
    /// Those built into a minor of Kubernetes.
    pub fn builtin(minor: Minor) -> Self {
        let table = Table::of(minor);
        let resources = table.resources.iter().map(Resource::builtin).collect();
        Self { table, minor, resources, custom: BTreeMap::new(), watches: false }
    }

    /// No built-in kinds, only custom ones that are added.
    pub fn without_builtin(minor: Minor) -> Self {
        // Of built-in types custom resources have none but metadata, and they are the same in each minor.
        let table = Table::of(Minor::DEFAULT);
        Self { table, minor, resources: vec![], custom: BTreeMap::new(), watches: false }
    }

    /// Has the rules of definitions that are added from now on remember what their parts came to.
    pub(crate) fn watch(&mut self) {
        self.watches = true;
    }

    /// The rules of all definitions that compile.
    pub fn rules(&self) -> Vec<InspectedRule<'_>> {
        self.custom.values().flat_map(|custom| custom.inspected(self.minor)).collect()
    }

    /// The minor.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// Adds the kinds of a CustomResourceDefinition (`apiextensions.k8s.io/v1`), in place of an earlier one for the
    /// same resource.
    ///
    /// # Errors
    /// It lacks something that serving needs. This does not check whether the API server would accept it otherwise.
    pub fn add_crd(&mut self, crd: &Value) -> Result<(), Unserved> {
        let (custom, resources) = Custom::new(crd, self.watches)?;
        let key = (custom.group.clone(), custom.plural.clone());
        self.resources.retain(|r| (&r.group, &r.plural) != (&key.0, &key.1));
        self.resources.extend(resources);
        self.custom.insert(key, Arc::new(custom));
        Ok(())
    }

    /// All resources, each version of them.
    pub fn resources(&self) -> &[Resource] {
        &self.resources
    }

    /// The resource that objects of a kind are created at. Kinds that only subresources take are not among them.
    pub fn by_kind(&self, api_version: &str, kind: &str) -> Option<&Resource> {
        self.resources.iter().find(|r| r.kind == kind && r.api_version() == api_version)
    }

    /// The resource of a path: group, version and plural.
    pub fn by_plural(&self, group: &str, version: &str, plural: &str) -> Option<&Resource> {
        self.resources.iter().find(|r| r.group == group && r.version == version && r.plural == plural)
    }

    /// The versions and groups in which the same objects are served, itself first, as `matchPolicy: Equivalent` takes
    /// them (`runtime.EquivalentResourceRegistry`): with this subresource, if that is not empty, and by default.
    pub fn equivalents<'k>(&'k self, resource: &'k Resource, subresource: &str) -> Vec<&'k Resource> {
        let others = self.resources.iter().filter(|r| {
            *r != resource
                && r.by_default
                && stored_as(r) == stored_as(resource)
                && (subresource.is_empty() || r.subresource(subresource).is_some())
        });
        std::iter::once(resource).chain(others).collect()
    }

    pub(super) fn custom(&self, resource: &Resource) -> Option<&Custom> {
        self.custom.get(&(resource.group.clone(), resource.plural.clone())).map(AsRef::as_ref)
    }
}

/// Where its objects are stored; only events have two groups.
fn stored_as(r: &Resource) -> (&str, &str) {
    match (r.group.as_str(), r.plural.as_str()) {
        ("events.k8s.io", "events") => ("", "events"),
        other => other,
    }
}
