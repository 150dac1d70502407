//! Additions to new pods, as data of `spec.mutation.inject`. The same data is lowered to the operations of a webhook's
//! patch ([`Injections::changes`]) and to the CEL of a MutatingAdmissionPolicy ([`Injections::lower`]).
//!
//! Containers are added first, so that they get the other additions and the defaults like the containers of the pod.
//!
//! An element is added to a list only if the list has no element with its key. All other conditions look at the pod with the
//! added containers.
//! No condition reads what an entry adds, and keys are constants wherever the API server rejects duplicates. So a
//! second application changes nothing.

mod apply;
mod entries;
mod lower;
mod mistakes;

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use palisade_kube_json::{json, selector};
use serde_json::{Map, Value as Json};

use crate::{
    Resolve, Text, Values, defaults,
    settings::inject::{Selector, When},
};

pub use apply::{InjectedChange, Injecting};
pub use lower::LoweredInjections;

/// The largest number of containers of a pod with which a profile injects into containers.
pub const MAX_CONTAINERS: usize = 32;
/// The largest number of environment variables, mounts and block devices, in all containers of a pod together, with
/// which a profile injects into containers. It keeps the cost of the policy below the API server's limit.
pub const MAX_IN_CONTAINERS: usize = 2048;
/// The largest number of environment variables, and of mounts, that all entries of a profile inject together.
pub const MAX_PER_CONTAINER: usize = 24;

/// The largest number of containers that all entries of a profile inject together.
pub const MAX_ADDED: usize = 8;

/// The additions of a profile.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Injections {
    /// The conditions of the entries.
    pub entries: Vec<Selected>,
    /// The injected volumes, each name once.
    volumes: Vec<(String, Template)>,
    /// The lists and maps that get additions, and the additions.
    groups: Vec<Group>,
    /// The removals of `workingDir`: the entry, whether also in init containers, and the variables.
    removals: Vec<(usize, bool, Vec<String>)>,
}

/// The pods that an entry matches.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Selected {
    /// Selector of the labels.
    pub labels: LabelSelector,
    /// Selector of the annotations.
    pub annotations: LabelSelector,
}

/// A label of nodes that an entry adds to `nodeSelector`.
#[derive(Clone, Debug, PartialEq)]
pub struct InjectedNodeLabel<'a> {
    /// The key.
    pub key: &'a str,
    /// The value.
    pub value: Text,
    /// The index of the entry.
    pub entry: usize,
    /// The earlier entries that add the key.
    pub earlier: Vec<usize>,
}

/// The options of a pod or container with which a pod gets no containers: a pod with containers of the kind HostProcess must
/// have no others, and need not set its operating system.
const WINDOWS: [&str; 2] = ["securityContext", "windowsOptions"];

/// The annotation of mirror pods.
const MIRROR: &str = "kubernetes.io/config.mirror";

/// The object that has the list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Owner {
    /// The pod.
    Pod,
    /// Each container.
    Container,
    /// The pod, before all other additions and the defaults, which its new containers get, too.
    Before,
}

/// A list or map, and its additions.
#[derive(Clone, Debug, PartialEq)]
struct Group {
    of: Owner,
    /// The path below the pod or the container.
    path: &'static [&'static str],
    key: Key,
    additions: Vec<Addition>,
}

/// How an addition is found in a list or map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Key {
    /// It is a map, and each addition has a key.
    Map,
    /// All of these fields are equal; an unset one is empty.
    Fields(&'static [&'static str]),
    /// The whole element is equal.
    Whole,
    /// A mount or a block device of the container has the path.
    Mount,
    /// A variable of the container has the name.
    Variable,
}

/// One addition.
#[derive(Clone, Debug, PartialEq)]
struct Addition {
    /// The index of the entry.
    entry: usize,
    /// Whether init containers get it, too.
    init: bool,
    /// The earlier entries that add an element with the same key, and whether to init containers, too.
    earlier: Vec<(usize, bool)>,
    /// The key in the map or list, where it is constant.
    key: String,
    value: Template,
    /// The variables of a container with which it is not added.
    unless_set: Vec<String>,
    /// Whether it replaces an element with its key.
    replaces: bool,
    /// The injected volumes that it needs.
    volumes: Vec<String>,
}

/// A value in which each string is a [`Text`].
#[derive(Clone, Debug, PartialEq)]
struct Template {
    /// The place in the profile.
    path: String,
    value: Json,
}

impl Template {
    /// The value in the namespace that has these parameters.
    fn resolve(&self, values: &Values) -> Json {
        fn of(value: &Json, values: &Values) -> Json {
            match value {
                Json::String(text) => Text(text.clone()).resolve(values).into(),
                Json::Array(items) => items.iter().map(|item| of(item, values)).collect(),
                Json::Object(fields) => {
                    fields.iter().map(|(key, value)| (key.clone(), of(value, values))).collect::<Map<_, _>>().into()
                }
                other => other.clone(),
            }
        }
        of(&self.value, values)
    }
}

impl Injections {
    /// True if nothing is added.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The labels of nodes that entries add to `nodeSelector`.
    pub fn node_labels(&self) -> impl Iterator<Item = InjectedNodeLabel<'_>> {
        let groups = self.groups.iter().filter(|group| group.path == ["spec", "nodeSelector"]);
        groups.flat_map(|group| &group.additions).map(|one| InjectedNodeLabel {
            key: &one.key,
            value: Text(one.value.value.as_str().unwrap_or_default().to_owned()),
            entry: one.entry,
            earlier: one.earlier.iter().map(|(entry, _)| *entry).collect(),
        })
    }

    /// Changes a pod so that an entry matches it; false if no labels and annotations do.
    pub fn select(&self, entry: usize, pod: &mut Json) -> bool {
        let Some(selected) = self.entries.get(entry) else { return false };
        for (field, selector) in [("labels", &selected.labels), ("annotations", &selected.annotations)] {
            let found = selector::strings(defaults::field(pod, &["metadata", field]));
            let Some(wanted) = selector::satisfying(selector, &found) else { return false };
            for (key, value) in wanted {
                json::set(pod, &["metadata", field, &key], value);
            }
        }
        true
    }

    /// The lists of additions to containers, if there are any.
    fn of_containers(&self) -> impl Iterator<Item = &Group> {
        self.of(Owner::Container)
    }

    fn of(&self, owner: Owner) -> impl Iterator<Item = &Group> {
        self.groups.iter().filter(move |group| group.of == owner)
    }
}

impl Selected {
    fn new(when: Option<&When>) -> Self {
        let of = |selector: Option<&Selector>| selector.map(label_selector).unwrap_or_default();
        let labels = when.and_then(|when| when.pod_selector.as_ref());
        let annotations = when.and_then(|when| when.annotation_selector.as_ref());
        let mut annotations = of(annotations);
        // The kubelet makes a mirror pod of a static pod, and the API server rejects one that refers to other objects.
        annotations.match_expressions.get_or_insert_default().push(LabelSelectorRequirement {
            key: MIRROR.to_owned(),
            operator: "DoesNotExist".to_owned(),
            values: None,
        });
        Self { labels: of(labels), annotations }
    }
}

fn label_selector(selector: &Selector) -> LabelSelector {
    let requirements = selector.match_expressions.iter().map(|one| LabelSelectorRequirement {
        key: one.key.clone(),
        operator: one.operator.to_string(),
        values: Some(one.values.clone()),
    });
    LabelSelector { match_labels: Some(selector.match_labels.clone()), match_expressions: Some(requirements.collect()) }
}

/// The keys that a selector reads.
fn keys(selector: &LabelSelector) -> BTreeSet<&str> {
    let labels = selector.match_labels.iter().flat_map(BTreeMap::keys).map(String::as_str);
    labels.chain(selector.match_expressions.iter().flatten().map(|one| one.key.as_str())).collect()
}
