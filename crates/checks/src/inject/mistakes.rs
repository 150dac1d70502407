//! The errors in additions that the schema accepts.

use std::collections::{BTreeMap, BTreeSet};

use super::{Injections, Key, MAX_ADDED, MAX_PER_CONTAINER, Owner, keys};
use crate::Diagnostic;

/// The prefix of keys of labels and annotations that only Palisade sets.
const RESERVED: &str = "toolsecurity.dev/";

impl Injections {
    /// The errors in these additions, apart from those in texts.
    pub fn mistakes(&self) -> Vec<Diagnostic> {
        let mut found = Vec::new();
        for (index, _) in self.entries.iter().enumerate() {
            let adds = self.groups.iter().flat_map(|group| &group.additions).any(|one| one.entry == index);
            if !adds && !self.removals.iter().any(|(entry, ..)| *entry == index) {
                let path = format!("spec.mutation.inject[{index}]");
                found.push(Diagnostic::new(path, "adds nothing").help("add a volume, a variable or another addition"));
            }
        }
        self.read_what_is_added(&mut found);
        self.mistakes_of_containers(&mut found);
        for group in &self.groups {
            let mut seen: BTreeMap<&str, &super::Addition> = BTreeMap::new();
            for one in &group.additions {
                if let Some(other) = seen.get(&*one.key) {
                    if one.entry == other.entry {
                        let message = format!("the same element as {}", other.value.path);
                        found.push(Diagnostic::new(one.value.path.clone(), message).help("remove one of them"));
                    } else if group.path == ["spec", "volumes"] && one.value.value != other.value.value {
                        let message = format!("volume {} has another source in {}", one.key, other.value.path);
                        found.push(Diagnostic::new(one.value.path.clone(), message).help("use another volume name"));
                    }
                }
                seen.entry(&one.key).or_insert(one);
            }
            if matches!(group.key, Key::Mount | Key::Variable) && group.additions.len() > MAX_PER_CONTAINER {
                let what = if group.key == Key::Mount { "mounts" } else { "environment variables" };
                let message =
                    format!("{} {what} in all entries, at most {MAX_PER_CONTAINER} are allowed", group.additions.len());
                found.push(Diagnostic::new("spec.mutation.inject", message).help("remove some of them"));
            }
        }
        found
    }

    /// A container mounts only volumes that its entry adds, so that each pod that gets the container has them.
    fn mistakes_of_containers(&self, found: &mut Vec<Diagnostic>) {
        let volumes: BTreeSet<_> = self
            .groups
            .iter()
            .filter(|group| group.path == ["spec", "volumes"])
            .flat_map(|group| &group.additions)
            .map(|one| (one.entry, one.key.as_str()))
            .collect();
        let containers: Vec<_> = self.of(Owner::Before).flat_map(|group| &group.additions).collect();
        for one in &containers {
            for (index, volume) in one.volumes.iter().enumerate() {
                if !volumes.contains(&(one.entry, volume.as_str())) {
                    let path = format!("{}.volumeMounts[{index}].name", one.value.path);
                    let message = format!("the entry has no volume {volume}");
                    found.push(Diagnostic::new(path, message).help("name a volume in volumes of the same entry"));
                }
            }
        }
        if containers.len() > MAX_ADDED {
            let message = format!("{} containers in all entries, at most {MAX_ADDED} are allowed", containers.len());
            found.push(Diagnostic::new("spec.mutation.inject", message).help("remove some of them"));
        }
    }

    /// A condition that reads what an entry adds would change with the addition.
    fn read_what_is_added(&self, found: &mut Vec<Diagnostic>) {
        let added = |path: &[&str]| -> BTreeSet<&str> {
            let groups = self.groups.iter().filter(|group| group.path == path);
            groups.flat_map(|group| &group.additions).map(|one| one.key.as_str()).collect()
        };
        for (field, selector) in [("labels", "podSelector"), ("annotations", "annotationSelector")] {
            let added = added(&["metadata", field]);
            for key in added.iter().filter(|key| key.starts_with(RESERVED)) {
                let message = format!("{key} is reserved: only Palisade sets {field} that begin with {RESERVED}");
                found.push(Diagnostic::new("spec.mutation.inject", message).help("use another key"));
            }
            for (index, entry) in self.entries.iter().enumerate() {
                let read = keys(if field == "labels" { &entry.labels } else { &entry.annotations });
                for key in read.intersection(&added) {
                    let path = format!("spec.mutation.inject[{index}].when.{selector}");
                    let message = format!("reads {key}, which an entry adds to {field}");
                    found.push(Diagnostic::new(path, message).help("select pods by a key that no entry adds"));
                }
            }
        }
        let added = added(&["env"]);
        let unless = self.of_containers().flat_map(|group| &group.additions);
        let unless = unless.map(|one| (format!("{}.unlessSet", one.value.path), &one.unless_set));
        let removals = self.removals.iter();
        let removals =
            removals.map(|(entry, _, names)| (format!("spec.mutation.inject[{entry}].removeWorkingDirIfSet"), names));
        for (path, names) in unless.chain(removals) {
            for name in names.iter().filter(|name| added.contains(name.as_str())) {
                let message = format!("reads the variable {name}, which an entry adds");
                found.push(Diagnostic::new(path.clone(), message).help("name a variable that no entry adds"));
            }
        }
    }
}
