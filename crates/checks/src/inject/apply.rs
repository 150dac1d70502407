//! Additions to one pod.

use std::collections::BTreeSet;

use palisade_kube_json::selector;
use serde_json::{Value as Json, json};

use super::{Addition, Group, Injections, Key, MAX_CONTAINERS, MAX_IN_CONTAINERS, Owner, WINDOWS};
use crate::{
    Values,
    defaults::{CONTAINER_LISTS, field, is_unset, is_windows},
};

/// The lists of containers that get additions.
const INJECTED_LISTS: [&str; 2] = [CONTAINER_LISTS[0], CONTAINER_LISTS[1]];

/// One operation on a pod.
#[derive(Clone, Debug, PartialEq)]
pub struct InjectedChange {
    /// The place, as a JSON pointer.
    pub pointer: String,
    /// The change there.
    pub does: Injecting,
    /// The part of the pod: `pod` or `container "main"`.
    pub of: String,
    /// The field below that part, for a message; empty for an object or list on the path to an addition.
    pub field: String,
}

/// The change of an operation.
#[derive(Clone, Debug, PartialEq)]
pub enum Injecting {
    /// Adds a value.
    Add(Json),
    /// Replaces the first value by the second one.
    Replace(Json, Json),
    /// Removes this value.
    Remove(Json),
}

/// A pod that gets additions.
struct Injected<'a> {
    of: &'a Injections,
    values: &'a Values,
    /// Whether each entry matches the pod.
    applies: Vec<bool>,
    /// The injected volumes whose names other volumes of the pod have.
    taken: BTreeSet<&'a str>,
    changes: Vec<InjectedChange>,
}

impl Injections {
    /// The containers that a new pod gets, in a namespace with these parameters. [`Self::changes`] are those of the pod
    /// with them.
    pub fn containers(&self, pod: &Json, values: &Values) -> Vec<InjectedChange> {
        let injected = Injected::new(self, pod, values);
        let is_list = |path: &[&str]| is_unset(field(pod, path)) || field(pod, path).is_array();
        let containers =
            CONTAINER_LISTS.iter().flat_map(|list| field(pod, &["spec", list]).as_array().into_iter().flatten());
        let names: BTreeSet<_> =
            containers.clone().filter_map(|container| field(container, &["name"]).as_str()).collect();
        let is_windows = |object: &Json| !field(object, &WINDOWS).is_null();
        let fits = field(pod, &["spec"]).is_object()
            && Self::fits(pod)
            && !is_windows(field(pod, &["spec"]))
            && !containers.clone().any(is_windows);
        let mut changes = Vec::new();
        for group in self.of(Owner::Before).filter(|group| fits && is_list(group.path)) {
            let wanted = group.additions.iter().filter(|one| injected.is_wanted(one, pod, false));
            let mut wanted = wanted.filter(|one| !names.contains(one.key.as_str())).rev().peekable();
            let pointer = format!("/{}", group.path.join("/"));
            let mut add = |pointer: String, value: Json, field: String| {
                changes.push(InjectedChange { pointer, does: Injecting::Add(value), of: "pod".to_owned(), field });
            };
            if wanted.peek().is_some() && is_unset(field(pod, group.path)) {
                add(pointer.clone(), json!([]), String::new());
            }
            for one in wanted {
                let field = format!("{}[{}]", below_spec(group.path).join("."), shown_key(group, one));
                add(format!("{pointer}/0"), one.value.resolve(values), field);
            }
        }
        changes
    }

    /// The changes of a new pod that has the added [`Self::containers`].
    pub fn changes(&self, pod: &Json, values: &Values) -> Vec<InjectedChange> {
        let mut injected = Injected::new(self, pod, values);
        if !field(pod, &["metadata"]).is_object() || !field(pod, &["spec"]).is_object() {
            return vec![];
        }
        for group in self.of(Owner::Pod) {
            injected.add(group, pod, "", "pod", false);
        }
        if !Self::fits(pod) {
            return injected.changes;
        }
        for list in INJECTED_LISTS {
            let is_init = list == CONTAINER_LISTS[1];
            for (index, container) in field(pod, &["spec", list]).as_array().into_iter().flatten().enumerate() {
                let at = format!("/spec/{list}/{index}");
                let of = format!("container \"{}\"", field(container, &["name"]).as_str().unwrap_or_default());
                for group in self.of_containers() {
                    injected.add(group, container, &at, &of, is_init);
                }
                injected.remove(container, &at, &of, is_init);
            }
        }
        injected.changes
    }

    /// The injected volumes that an entry would add to the pod, but the pod has another volume with that name.
    pub fn skipped_volumes(&self, pod: &Json, values: &Values) -> Vec<String> {
        let (applies, taken) = (self.applies(pod), self.taken(pod, values));
        let groups = self.groups.iter().filter(|group| group.path == ["spec", "volumes"]);
        let wanted: BTreeSet<_> = groups
            .flat_map(|group| &group.additions)
            .filter(|one| applies.get(one.entry) == Some(&true))
            .map(|one| one.key.as_str())
            .collect();
        wanted.intersection(&taken).map(|name| (*name).to_owned()).collect()
    }

    fn applies(&self, pod: &Json) -> Vec<bool> {
        let of = |map: &str| selector::strings(field(pod, &["metadata", map]));
        let (labels, annotations) = (of("labels"), of("annotations"));
        let is_windows = is_windows(pod);
        let applies = self.entries.iter().map(|entry| {
            !is_windows
                && selector::matches(&entry.labels, &labels)
                && selector::matches(&entry.annotations, &annotations)
        });
        applies.collect()
    }

    fn taken(&self, pod: &Json, values: &Values) -> BTreeSet<&str> {
        let found: Vec<_> = field(pod, &["spec", "volumes"]).as_array().into_iter().flatten().collect();
        let is_taken = |(name, value): &&(String, super::Template)| {
            let value = value.resolve(values);
            found.iter().any(|volume| field(volume, &["name"]) == name.as_str() && **volume != value)
        };
        self.volumes.iter().filter(is_taken).map(|(name, _)| name.as_str()).collect()
    }

    /// Whether the containers of a pod are within the limit of additions.
    fn fits(pod: &Json) -> bool {
        let count = |container: &Json| -> usize {
            let lists = ["env", "volumeMounts", "volumeDevices"];
            lists.iter().map(|list| field(container, &[list]).as_array().map_or(0, Vec::len)).sum()
        };
        let containers = CONTAINER_LISTS.iter().filter_map(|list| field(pod, &["spec", list]).as_array()).flatten();
        containers.clone().count() <= MAX_CONTAINERS && containers.map(count).sum::<usize>() <= MAX_IN_CONTAINERS
    }
}

impl<'a> Injected<'a> {
    fn new(of: &'a Injections, pod: &Json, values: &'a Values) -> Self {
        Self { of, values, applies: of.applies(pod), taken: of.taken(pod, values), changes: vec![] }
    }

    /// Additions to a list or map of the pod or a container.
    fn add(&mut self, group: &Group, object: &Json, at: &str, of: &str, is_init: bool) {
        let found = field(object, group.path);
        let fits = if group.key == Key::Map { found.is_object() } else { found.is_array() };
        let on_the_way = (1..group.path.len()).map(|length| field(object, &group.path[..length]));
        if !object.is_object()
            || !(fits || found.is_null())
            || !on_the_way.clone().all(|one| one.is_null() || one.is_object())
        {
            return;
        }
        let wanted = group.additions.iter().filter(|one| self.is_wanted(one, object, is_init));
        let mut operations = Vec::new();
        for one in wanted {
            let value = one.value.resolve(self.values);
            let (pointer, does) = match Self::existing(group, one, object, &value) {
                None if group.key == Key::Map => {
                    (format!("/{}/{}", group.path.join("/"), escaped(&one.key)), Injecting::Add(value))
                }
                None => (format!("/{}/-", group.path.join("/")), Injecting::Add(value)),
                Some((index, before)) if one.replaces && *before != value => {
                    (format!("/{}/{index}", group.path.join("/")), Injecting::Replace(before.clone(), value))
                }
                Some(_) => continue,
            };
            let field = match group.key {
                Key::Whole => group.path.join("."),
                _ => format!("{}[{}]", below_spec(group.path).join("."), shown_key(group, one)),
            };
            operations.push(InjectedChange { pointer: format!("{at}{pointer}"), does, of: of.to_owned(), field });
        }
        if operations.iter().any(|one| matches!(one.does, Injecting::Add(_))) {
            for length in 1..=group.path.len() {
                let path = &group.path[..length];
                let is_list = length == group.path.len() && group.key != Key::Map;
                let found = field(object, path);
                if (is_list && is_unset(found)) || (!is_list && found.is_null()) {
                    self.changes.push(InjectedChange {
                        pointer: format!("{at}/{}", path.join("/")),
                        does: Injecting::Add(if is_list { json!([]) } else { json!({}) }),
                        of: of.to_owned(),
                        field: String::new(),
                    });
                }
            }
        }
        self.changes.extend(operations);
    }

    /// Whether an entry and no earlier one wants an addition.
    fn is_wanted(&self, one: &Addition, object: &Json, is_init: bool) -> bool {
        let applies = |entry: usize, init: bool| self.applies.get(entry) == Some(&true) && (init || !is_init);
        applies(one.entry, one.init)
            && !one.earlier.iter().any(|(entry, init)| applies(*entry, *init))
            && !one.volumes.iter().any(|volume| self.taken.contains(&**volume))
            && !one.unless_set.iter().any(|name| last_variable(object, name).is_some())
    }

    /// The element of a list or map that has the key of an addition.
    fn existing<'j>(group: &Group, one: &Addition, object: &'j Json, value: &Json) -> Option<(usize, &'j Json)> {
        let found = field(object, group.path);
        let position = |is: &dyn Fn(&Json) -> bool| {
            found.as_array().into_iter().flatten().enumerate().find(|(_, element)| is(element))
        };
        let text = |of: &Json, name: &str| field(of, &[name]).as_str().unwrap_or_default().to_owned();
        match group.key {
            Key::Map => found.get(&one.key).map(|value| (0, value)),
            Key::Fields(fields) => {
                position(&|element| fields.iter().all(|name| text(element, name) == text(value, name)))
            }
            Key::Whole => position(&|element| element == value),
            Key::Mount => position(&|element| text(element, "mountPath") == one.key).or_else(|| {
                let devices = field(object, &["volumeDevices"]).as_array().into_iter().flatten().enumerate();
                devices.into_iter().find(|(_, device)| text(device, "devicePath") == one.key)
            }),
            Key::Variable => last_variable(object, &one.key),
        }
    }

    /// Removals of `workingDir`.
    fn remove(&mut self, container: &Json, at: &str, of: &str, is_init: bool) {
        let found = field(container, &["workingDir"]);
        let wanted = self.of.removals.iter().any(|(entry, init, names)| {
            self.applies.get(*entry) == Some(&true)
                && (*init || !is_init)
                && names.iter().any(|name| last_variable(container, name).is_some())
        });
        if wanted && !found.is_null() {
            self.changes.push(InjectedChange {
                pointer: format!("{at}/workingDir"),
                does: Injecting::Remove(found.clone()),
                of: of.to_owned(),
                field: "workingDir".to_owned(),
            });
        }
    }
}

/// The last variable of a container with a name: of several, the last one counts.
fn last_variable<'j>(container: &'j Json, name: &str) -> Option<(usize, &'j Json)> {
    let variables = field(container, &["env"]).as_array()?.iter().enumerate();
    variables.rev().find(|(_, variable)| field(variable, &["name"]) == name)
}

fn below_spec(path: &'static [&'static str]) -> &'static [&'static str] {
    if path.first() == Some(&"spec") { &path[1..] } else { path }
}

/// The key of an addition for a message.
fn shown_key(group: &Group, one: &Addition) -> String {
    match group.key {
        Key::Fields(fields) => {
            let shown = fields.iter().find_map(|name| one.value.value.get(*name)?.as_str());
            shown.unwrap_or_default().to_owned()
        }
        _ => one.key.clone(),
    }
}

/// A key in a JSON pointer.
pub(super) fn escaped(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
