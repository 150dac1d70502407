//! The kinds that an API server serves, their resources, and the versions in which it serves the same kind.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{
    custom::Custom,
    table::{BuiltinResource, Table},
};

/// The kinds and resources of an API server: those built into a minor, and those of CustomResourceDefinitions.
#[derive(Clone, Debug)]
pub struct Kinds {
    pub(super) table: Arc<Table>,
    pub(super) minor: u8,
    resources: Vec<Resource>,
    /// By group and plural.
    custom: BTreeMap<(String, String), Arc<Custom>>,
}

/// A resource in one version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// Its API group; empty for the core group.
    pub group: String,
    /// The version.
    pub version: String,
    /// The kind of its objects.
    pub kind: String,
    /// Its name in paths and rules: `pods`.
    pub plural: String,
    /// Are its objects in namespaces?
    pub namespaced: bool,
    /// What can be done with it: `create`, `update`, `delete` ...
    pub verbs: Vec<String>,
    /// Whether it is served by default, without `--runtime-config`. Built-in versions that are not stable are not.
    pub by_default: bool,
    /// The warning for its users; empty if this minor does not deprecate it.
    pub deprecated: String,
    /// Its subresources.
    pub subresources: Vec<Subresource>,
    pub(super) source: Source,
}

/// A subresource, and what is sent to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subresource {
    /// Its name: `eviction`.
    pub name: String,
    /// The API group of the kind that is sent to it: `policy`.
    pub group: String,
    /// The version of that kind.
    pub version: String,
    /// The kind: `Eviction`. For connections (`exec`) the kind of their options.
    pub kind: String,
    /// What can be done with it.
    pub verbs: Vec<String>,
    pub(super) source: Source,
}

/// What a kind's objects are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// A struct of Go.
    Struct(String),
    /// The schema of a CustomResourceDefinition.
    Custom,
    /// Nothing that is known here: `APIService`.
    Unknown,
}

impl Source {
    fn of(go_type: &str) -> Self {
        if go_type.is_empty() { Self::Unknown } else { Self::Struct(go_type.to_owned()) }
    }
}

impl Resource {
    fn builtin(r: &BuiltinResource) -> Self {
        let subresources = r.subresources.iter().map(|s| Subresource {
            name: s.name.clone(),
            group: s.group.clone(),
            version: s.version.clone(),
            kind: s.kind.clone(),
            verbs: s.verbs.clone(),
            source: Source::of(&s.go_type),
        });
        Self {
            group: r.group.clone(),
            version: r.version.clone(),
            kind: r.kind.clone(),
            plural: r.plural.clone(),
            namespaced: r.namespaced,
            verbs: r.verbs.clone(),
            by_default: !r.version.contains("alpha") && !r.version.contains("beta"),
            deprecated: r.deprecated.clone(),
            subresources: subresources.collect(),
            source: Source::of(&r.go_type),
        }
    }

    /// `v1`, `apps/v1`.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }

    /// The subresource of this name.
    pub fn subresource(&self, name: &str) -> Option<&Subresource> {
        self.subresources.iter().find(|subresource| subresource.name == name)
    }
}

impl Subresource {
    /// The API version of the kind that is sent to it.
    pub fn api_version(&self) -> String {
        api_version(&self.group, &self.version)
    }
}

pub(super) fn api_version(group: &str, version: &str) -> String {
    if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") }
}

/// Why a CustomResourceDefinition cannot be served.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("CustomResourceDefinition {name}: {problem}; the API server would serve no such kind")]
pub struct Unserved {
    /// The name of the definition.
    pub name: String,
    /// The mistake, with its place.
    pub problem: String,
}

impl Kinds {
    /// Those built into Kubernetes 1.`minor`; of a minor before 1.33 or after 1.37 those of the nearest.
    pub fn builtin(minor: u8) -> Self {
        let table = Table::of(minor);
        let resources = table.resources.iter().map(Resource::builtin).collect();
        Self { table, minor, resources, custom: BTreeMap::new() }
    }

    /// No built-in kinds, only custom ones that are added.
    pub fn without_builtin(minor: u8) -> Self {
        // Of built-in types custom resources have none but metadata, and they are the same in each minor.
        Self { table: Table::of(36), minor, resources: vec![], custom: BTreeMap::new() }
    }

    /// The minor, as given.
    pub fn minor(&self) -> u8 {
        self.minor
    }

    /// Adds the kinds of a CustomResourceDefinition (`apiextensions.k8s.io/v1`), in place of an earlier one for the
    /// same resource.
    ///
    /// # Errors
    /// It lacks something that serving needs. This does not check whether the API server would accept it otherwise.
    pub fn add_crd(&mut self, crd: &Value) -> Result<(), Unserved> {
        let (custom, resources) = Custom::new(crd)?;
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
