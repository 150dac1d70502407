//! From the entries of a profile to additions.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json, json};

use super::{Addition, Group, Injections, Key, Owner, Selected, Template};
use crate::{
    Text,
    settings::{
        inject::Injection,
        inject_containers::{ContainerType, InjectedContainer},
        inject_variables::{InjectedVariable, VariablePolicy},
        inject_volumes::{InjectedMount, InjectedVolume},
    },
};

/// The lists and maps that get additions, in the order of the operations.
const GROUPS: [(Owner, &[&str], Key); 13] = [
    (Owner::Before, &["spec", "initContainers"], Key::Fields(&["name"])),
    (Owner::Pod, &["metadata", "labels"], Key::Map),
    (Owner::Pod, &["metadata", "annotations"], Key::Map),
    (Owner::Pod, &["spec", "volumes"], Key::Fields(&["name"])),
    (Owner::Pod, &["spec", "nodeSelector"], Key::Map),
    (Owner::Pod, &["spec", "affinity", "nodeAffinity", "preferredDuringSchedulingIgnoredDuringExecution"], Key::Whole),
    (Owner::Pod, &["spec", "tolerations"], Key::Fields(&["key", "operator", "value", "effect"])),
    (Owner::Pod, &["spec", "topologySpreadConstraints"], Key::Fields(&["topologyKey", "whenUnsatisfiable"])),
    (Owner::Pod, &["spec", "imagePullSecrets"], Key::Fields(&["name"])),
    (Owner::Pod, &["spec", "hostAliases"], Key::Fields(&["ip"])),
    (Owner::Pod, &["spec", "dnsConfig", "options"], Key::Fields(&["name"])),
    (Owner::Container, &["volumeMounts"], Key::Mount),
    (Owner::Container, &["env"], Key::Variable),
];

impl Injections {
    /// The additions of these entries.
    pub fn new(entries: &[Injection]) -> Self {
        let mut found = Self {
            entries: entries.iter().map(|entry| Selected::new(entry.when.as_ref())).collect(),
            groups: GROUPS.map(|(of, path, key)| Group { of, path, key, additions: vec![] }).into(),
            ..Self::default()
        };
        for (index, entry) in entries.iter().enumerate() {
            found.add_entry(index, entry);
        }
        found.groups.retain(|group| !group.additions.is_empty());
        found
    }

    fn add_entry(&mut self, index: usize, entry: &Injection) {
        let at = |field: &str| format!("spec.mutation.inject[{index}].{field}");
        let listed = |field: &str, values: Vec<Json>| -> Vec<Template> {
            let template = |(at_index, value)| Template { path: format!("{}[{at_index}]", at(field)), value };
            values.into_iter().enumerate().map(template).collect()
        };
        let mut add = |field: &'static str, templates: Vec<Template>| {
            for value in templates {
                self.add(field, Addition::of(index, entry, String::new(), value));
            }
        };
        add("preferredDuringSchedulingIgnoredDuringExecution", {
            let term = |one: &crate::settings::inject::PreferredNodes| json!({"weight": one.weight, "preference": {"matchExpressions": one.match_expressions}});
            listed("preferredNodeAffinity", entry.preferred_node_affinity.iter().map(term).collect())
        });
        add("tolerations", listed("tolerations", entry.tolerations.iter().map(|one| json!(one)).collect()));
        add("topologySpreadConstraints", {
            let constraint = |one: &crate::settings::inject::InjectedSpread| {
                json!({
                    "maxSkew": one.max_skew, "topologyKey": one.topology_key,
                    "whenUnsatisfiable": one.when_unsatisfiable,
                    "labelSelector": {"matchLabels": one.match_labels},
                })
            };
            listed("topologySpreadConstraints", entry.topology_spread_constraints.iter().map(constraint).collect())
        });
        let secrets = entry.image_pull_secrets.iter().map(|name| json!({"name": name})).collect();
        add("imagePullSecrets", listed("imagePullSecrets", secrets));
        add("hostAliases", listed("hostAliases", entry.host_aliases.iter().map(|one| json!(one)).collect()));
        add("options", listed("dnsOptions", entry.dns_options.iter().map(|one| json!(one)).collect()));
        let mut add_map = |field: &'static str, map: &BTreeMap<String, Text>| {
            for (key, text) in map {
                let value = Template { path: format!("{}[{key}]", at(field)), value: json!(text) };
                self.add(field, Addition::of(index, entry, key.clone(), value));
            }
        };
        add_map("labels", &entry.labels);
        add_map("annotations", &entry.annotations);
        add_map("nodeSelector", &entry.node_selector);
        for (number, volume) in entry.volumes.iter().enumerate() {
            let path = at(&format!("volumes[{number}]"));
            let value = Template { path: path.clone(), value: volume_json(volume) };
            if !self.volumes.iter().any(|(name, _)| *name == volume.name) {
                self.volumes.push((volume.name.clone(), value.clone()));
            }
            self.add("volumes", Addition::of(index, entry, volume.name.clone(), value));
            for (number, mount) in volume.mounts.iter().enumerate() {
                let value =
                    Template { path: format!("{path}.mounts[{number}]"), value: mount_json(&volume.name, mount) };
                let addition = Addition::of(index, entry, mount.mount_path.clone(), value);
                self.add("volumeMounts", Addition { volumes: vec![volume.name.clone()], ..addition });
            }
        }
        for (number, container) in entry.containers.iter().enumerate() {
            let value = Template { path: at(&format!("containers[{number}]")), value: container_json(container) };
            let volumes = container.volume_mounts.iter().map(|mount| mount.name.clone()).collect();
            let addition = Addition::of(index, entry, container.name.clone(), value);
            self.add("initContainers", Addition { volumes, ..addition });
        }
        for (number, variable) in entry.env.iter().enumerate() {
            let value = Template { path: at(&format!("env[{number}]")), value: variable_json(variable) };
            let addition = Addition::of(index, entry, variable.name.clone(), value);
            let replaces = variable.policy == VariablePolicy::Always;
            self.add("env", Addition { unless_set: variable.unless_set.clone(), replaces, ..addition });
        }
        if !entry.remove_working_dir_if_set.is_empty() {
            self.removals.push((index, entry.init_containers, entry.remove_working_dir_if_set.clone()));
        }
    }

    /// Adds to the group of a list or map.
    fn add(&mut self, field: &str, mut addition: Addition) {
        let Some(group) = self.groups.iter_mut().find(|group| group.path.last() == Some(&field)) else { return };
        if addition.key.is_empty() {
            addition.key = match group.key {
                Key::Fields(fields) => {
                    let text = |field: &&str| addition.value.value.get(*field).map(Json::to_string).unwrap_or_default();
                    fields.iter().map(text).collect::<Vec<_>>().join(" ")
                }
                _ => addition.value.value.to_string(),
            };
        }
        let same = group.additions.iter().filter(|other| other.key == addition.key);
        addition.earlier = same.map(|other| (other.entry, other.init)).collect();
        group.additions.push(addition);
    }
}

impl Addition {
    fn of(entry: usize, injection: &Injection, key: String, value: Template) -> Self {
        Self {
            entry,
            init: injection.init_containers,
            earlier: vec![],
            key,
            value,
            unless_set: vec![],
            replaces: false,
            volumes: vec![],
        }
    }
}

/// A volume as an API server stores it, with the defaults of its source.
fn volume_json(volume: &InjectedVolume) -> Json {
    const MODE: i64 = 0o644;
    let mut fields = Map::new();
    fields.insert("name".into(), json!(volume.name));
    let mut source = |name: &str, mut value: Json, defaults: &[(&str, Json)]| {
        if let Some(value) = value.as_object_mut() {
            for (key, default) in defaults {
                value.entry(*key).or_insert_with(|| default.clone());
            }
        }
        fields.insert(name.to_owned(), value);
    };
    if let Some(found) = &volume.host_path {
        source("hostPath", json!(found), &[("type", json!(""))]);
    }
    if let Some(found) = &volume.secret {
        source("secret", json!(found), &[("defaultMode", json!(MODE))]);
    }
    if let Some(found) = &volume.config_map {
        source("configMap", json!(found), &[("defaultMode", json!(MODE))]);
    }
    if let Some(found) = &volume.empty_dir {
        source("emptyDir", json!(found), &[]);
    }
    if let Some(found) = &volume.persistent_volume_claim {
        source("persistentVolumeClaim", json!(found), &[]);
    }
    if let Some(found) = &volume.nfs {
        source("nfs", json!(found), &[]);
    }
    fields.into()
}

fn mount_json(volume: &str, mount: &InjectedMount) -> Json {
    let mut value = json!(mount);
    if let Some(fields) = value.as_object_mut() {
        fields.insert("name".into(), json!(volume));
    }
    value
}

/// A variable without what only a profile has.
fn variable_json(variable: &InjectedVariable) -> Json {
    let mut fields = Map::new();
    fields.insert("name".into(), json!(variable.name));
    fields.extend(variable.value.as_ref().map(|value| ("value".to_owned(), json!(value))));
    fields.extend(variable.value_from.as_ref().map(|source| ("valueFrom".to_owned(), json!(source))));
    fields.into()
}

/// A container without the field that only a profile has.
fn container_json(container: &InjectedContainer) -> Json {
    let mut value = json!(container);
    if let Some(fields) = value.as_object_mut() {
        fields.remove("type");
        if container.kind == ContainerType::Sidecar {
            fields.insert("restartPolicy".into(), json!("Always"));
        }
    }
    value
}
