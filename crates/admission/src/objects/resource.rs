//! The resources of an API server, and what their objects are made of.

use super::table::BuiltinResource;

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
    /// Its verbs: `create`, `update`, `delete` ...
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
    /// Its verbs.
    pub verbs: Vec<String>,
    pub(super) source: Source,
}

/// The source of the fields of a kind.
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
    pub(super) fn builtin(r: &BuiltinResource) -> Self {
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
    /// The error, with its place.
    pub problem: String,
}
