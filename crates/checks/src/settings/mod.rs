//! The settings of a profile that checks read: the schema of each group of `spec` in a file of its name, with a row of
//! [`all`] for each setting; the Pod Security Standards ([`standard`]), what an absent setting means
//! ([`Settings::seed`]), and which level a profile implies ([`implied()`]).
//!
//! Code that iterates over all settings iterates over these rows: the settings that a level of the standards adds to a
//! profile, the level that a profile implies, the comparison of two profiles, and the random and the stricter profiles
//! of tests. None of them has a separate list to which a new setting must be added.

use serde::{Deserialize, Serialize};

use crate::{Flag, Text};

mod access;
mod host;
mod identity;
mod images;
mod implied;
pub mod inject;
pub mod inject_containers;
pub mod inject_variables;
pub mod inject_volumes;
mod kinds;
mod metadata;
pub mod mutation;
mod network;
mod privileges;
mod ranges;
pub mod redirect;
mod scheduling;
mod seed;
pub mod standard;
mod storage;
mod users;
mod volumes;

pub use access::{Access, AllowedConnection, ConnectionResource};
pub use host::Host;
pub use identity::{Identity, TokenRules};
pub use images::Images;
pub use implied::{Implied, implied};
pub use kinds::{ObjectKind, ObjectOperation};
pub use metadata::{Metadata, MetadataKey, MetadataRule};
pub use network::{AnnotationKeys, Network};
pub use privileges::{AppArmor, Capabilities, Privileges, SeLinux, Seccomp, Sysctls, WindowsRule};
pub use ranges::Range;
pub use scheduling::{AllowedToleration, NodeLabel, Scheduling, TaintEffect, TolerationOperator};
pub use storage::Storage;
pub use users::{GroupRule, GroupRules, SupplementalGroupsPolicy, UserRule, UserRules, Users};
pub use volumes::{HostPath, Volumes};
pub(crate) use volumes::{kind_allowed, kind_refused};

/// The settings of all checks, in the groups of a profile's `spec`. A check whose setting is `None` is off.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Settings {
    /// `spec.users`
    pub users: Users,
    /// `spec.privileges`
    pub privileges: Privileges,
    /// `spec.host`
    pub host: Host,
    /// `spec.volumes`
    pub volumes: Volumes,
    /// `spec.identity`
    pub identity: Identity,
    /// `spec.scheduling`
    pub scheduling: Scheduling,
    /// `spec.images`
    pub images: Images,
    /// `spec.network`
    pub network: Network,
    /// `spec.storage`
    pub storage: Storage,
    /// `spec.access`
    pub access: Access,
    /// `spec.metadata`
    pub metadata: Metadata,
    /// `spec.mutation`
    #[serde(skip_serializing_if = "mutation::Mutation::is_default")]
    pub mutation: mutation::Mutation,
}

/// Every setting, group by group.
pub fn all() -> impl Iterator<Item = &'static Setting> {
    let groups = [
        users::SETTINGS,
        privileges::SETTINGS,
        host::SETTINGS,
        volumes::SETTINGS,
        identity::SETTINGS,
        scheduling::SETTINGS,
        images::SETTINGS,
        network::SETTINGS,
        storage::SETTINGS,
        access::SETTINGS,
        metadata::SETTINGS,
    ];
    groups.into_iter().flatten()
}

impl Settings {
    /// These settings, with those of `seed` where they say nothing.
    #[must_use]
    pub fn or(mut self, mut seed: Self) -> Self {
        // No standard says what is defaulted, so `mutation` is no row.
        for setting in all() {
            setting.slot().fill(&mut self, &mut seed);
        }
        self
    }
}

/// Whether a list of texts says `*`: anything.
pub(crate) fn any(texts: &[Text]) -> bool {
    texts.iter().any(|text| text.0 == "*")
}

/// A setting of a profile.
pub struct Setting {
    /// Its path below `spec`.
    pub path: &'static str,
    /// The kind of its value.
    pub kind: Kind,
}

/// The kind of a setting's value, which determines the stricter one of two values. An unset value restricts nothing.
#[derive(Clone, Copy)]
pub enum Kind {
    /// Whether something is allowed: false is stricter.
    Allowance(At<Flag>),
    /// Whether something is required: true is stricter.
    Demand(At<Flag>),
    /// Whether another setting does not apply to some pods: false is stricter. An unset value relaxes nothing.
    Relaxation(At<Flag>),
    /// A list of allowed strings: fewer are stricter, and `*` allows every string.
    Texts(At<Vec<Text>>),
    /// Another kind. Only code for this setting can determine the stricter one of two values.
    Other(&'static dyn Slot),
    /// A change of pods. A pod is denied only if it has a value that cannot be changed.
    Change(&'static dyn Slot),
}

/// Where a setting of this type is.
pub struct At<T: 'static> {
    /// The setting.
    pub get: fn(&Settings) -> &Option<T>,
    /// The same, to be changed.
    pub get_mut: fn(&mut Settings) -> &mut Option<T>,
}

impl<T> Clone for At<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for At<T> {}

/// The operations on a setting of any type.
pub trait Slot: Sync {
    /// Whether the settings say it.
    fn is_said(&self, settings: &Settings) -> bool;
    /// Whether both say the same.
    fn is_same(&self, one: &Settings, other: &Settings) -> bool;
    /// Takes what `seed` says, if the settings say nothing.
    fn fill(&self, settings: &mut Settings, seed: &mut Settings);
}

impl<T: PartialEq> Slot for At<T> {
    fn is_said(&self, settings: &Settings) -> bool {
        (self.get)(settings).is_some()
    }

    fn is_same(&self, one: &Settings, other: &Settings) -> bool {
        (self.get)(one) == (self.get)(other)
    }

    fn fill(&self, settings: &mut Settings, seed: &mut Settings) {
        let found = (self.get_mut)(settings);
        if found.is_none() {
            *found = (self.get_mut)(seed).take();
        }
    }
}

impl Setting {
    /// The setting, whatever its type is.
    pub fn slot(&self) -> &dyn Slot {
        match &self.kind {
            Kind::Allowance(at) | Kind::Demand(at) | Kind::Relaxation(at) => at,
            Kind::Texts(at) => at,
            Kind::Other(slot) | Kind::Change(slot) => *slot,
        }
    }
}

/// A row.
const fn setting(path: &'static str, kind: Kind) -> Setting {
    Setting { path, kind }
}

/// Where a field of a group is.
macro_rules! at {
    ($group:ident.$field:ident) => {
        $crate::settings::At {
            get: |settings| &settings.$group.$field,
            get_mut: |settings| &mut settings.$group.$field,
        }
    };
}
use at;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use schemars::{Schema, schema_for};
    use serde_json::{Map, Value as Json, json};

    use super::*;

    /// The schema of each group.
    fn schemas() -> [(&'static str, Schema); 11] {
        [
            ("users", schema_for!(Users)),
            ("privileges", schema_for!(Privileges)),
            ("host", schema_for!(Host)),
            ("volumes", schema_for!(Volumes)),
            ("identity", schema_for!(Identity)),
            ("scheduling", schema_for!(Scheduling)),
            ("images", schema_for!(Images)),
            ("network", schema_for!(Network)),
            ("storage", schema_for!(Storage)),
            ("access", schema_for!(Access)),
            ("metadata", schema_for!(Metadata)),
        ]
    }

    /// A setting without a row would be lost where a level fills it in, and compared and tried by nothing.
    #[test]
    fn every_settings_field_has_a_row() {
        let schemas = schemas();
        let groups: BTreeSet<_> = schemas.iter().map(|(group, _)| (*group).to_owned()).collect();
        let serialized = json!(Settings::default());
        assert_eq!(serialized.as_object().map(|groups| groups.keys().cloned().collect()), Some(groups), "groups");
        let fields: BTreeSet<_> = schemas
            .iter()
            .filter_map(|(group, schema)| Some((group, schema.get("properties")?.as_object()?)))
            .flat_map(|(group, properties)| properties.keys().map(move |field| format!("{group}.{field}")))
            .collect();
        let rows: Vec<_> = all().map(|setting| setting.path.to_owned()).collect();
        for field in &fields {
            let group = field.split('.').next().unwrap_or_default();
            assert!(rows.contains(field), "SETTINGS in crates/checks/src/settings/{group}.rs has no row {field}");
        }
        assert_eq!(rows.len(), fields.len(), "a row without a field, or two of one: {rows:?}");
    }

    /// The smallest value of a schema.
    fn smallest(schema: &Json, definitions: &Json) -> Json {
        if let Some(name) = schema["$ref"].as_str().and_then(|path| path.strip_prefix("#/$defs/")) {
            return smallest(&definitions[name], definitions);
        }
        if let Some(first) = ["anyOf", "oneOf"].into_iter().find_map(|key| schema[key].get(0)) {
            return smallest(first, definitions);
        }
        if let Some(value) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return value.clone();
        }
        match schema["type"].as_str().or_else(|| schema["type"][0].as_str()) {
            Some("object") => {
                let required = schema["required"].as_array().into_iter().flatten().filter_map(Json::as_str);
                let field = |name: &str| (name.to_owned(), smallest(&schema["properties"][name], definitions));
                required.map(field).collect::<Map<_, _>>().into()
            }
            Some("array") => json!([]),
            Some("string") => json!("1"),
            Some("integer") => json!(1),
            found => panic!("no value of the type {found:?} is known: {schema}"),
        }
    }

    #[test]
    fn setting_row_accesses_the_field_at_its_path() {
        for (group, schema) in schemas() {
            let schema = schema.to_value();
            for setting in all().filter(|setting| setting.path.split('.').next() == Some(group)) {
                let field = &setting.path[group.len() + 1..];
                let value = smallest(&schema["properties"][field], &schema["$defs"]);
                let mut said: Settings = serde_json::from_value(json!({group: {field: value}})).unwrap();
                let written = json!(said);
                assert!(written.pointer(&format!("/{group}/{field}")).is_some(), "{written}");
                let (slot, mut settings) = (setting.slot(), Settings::default());
                assert!(slot.is_said(&said) && !slot.is_said(&settings), "{}: {written}", setting.path);
                // It takes this one, and no other.
                slot.fill(&mut settings, &mut said);
                assert_eq!((json!(settings), said), (written, Settings::default()), "{}", setting.path);
            }
        }
    }
}
