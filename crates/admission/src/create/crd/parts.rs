//! A definition as the API server keeps it: what all versions share is in one place
//! (`Convert_v1_CustomResourceDefinitionSpec_To_apiextensions_CustomResourceDefinitionSpec`).

use serde_json::{Map, Value as Json};

use super::FLAGS;
use crate::validation::{list, part};

/// The spec of a definition.
pub(super) struct Parts<'a> {
    pub(super) spec: &'a Json,
    pub(super) versions: &'a [Json],
}

/// The places of what versions may share, and their names above the versions.
const SHARED: [(&str, &str); 4] = [
    ("schema", "validation"),
    ("subresources", "subresources"),
    ("additionalPrinterColumns", "additionalPrinterColumns"),
    ("selectableFields", "selectableFields"),
];

/// Whether Go keeps the value of a field of a schema as if the field were not there: it is no pointer.
fn is_unsaid(key: &str, value: &Json) -> bool {
    match key {
        _ if FLAGS.contains(&key) => value.is_null() || *value == false,
        "properties" | "patternProperties" | "definitions" | "dependencies" => {
            value.is_null() || value.as_object().is_some_and(Map::is_empty)
        }
        // A default is a value; an empty list of items is a pointer.
        "default" | "items" => value.is_null(),
        _ => value.is_null() || value.as_array().is_some_and(Vec::is_empty),
    }
}

/// Whether two parts are the same to the API server: an empty list is none.
fn same(one: Option<&Json>, other: Option<&Json>) -> bool {
    match (one, other) {
        (Some(Json::Object(one)), Some(Json::Object(other))) => {
            // Each key once: twice would double the work at each depth.
            let more = other.keys().filter(|key| !one.contains_key(*key));
            one.keys().chain(more).all(|key| match (one.get(key), other.get(key)) {
                (Some(value), None) | (None, Some(value)) => is_unsaid(key, value),
                (one, other) => same(one, other),
            })
        }
        (Some(Json::Array(one)), Some(Json::Array(other))) if one.len() == other.len() => {
            one.iter().zip(other).all(|(one, other)| same(Some(one), Some(other)))
        }
        (None | Some(Json::Null), Some(of)) | (Some(of), None | Some(Json::Null)) => {
            of.is_null() || of.as_array().is_some_and(Vec::is_empty)
        }
        _ => one == other,
    }
}

impl<'a> Parts<'a> {
    pub(super) fn new(spec: &'a Json) -> Self {
        Self { spec, versions: list(spec, "versions") }
    }

    /// Whether all versions have the same in a place.
    fn is_shared(&self, key: &str) -> bool {
        let pointer = |version: &'a Json| part(version, key);
        let first = self.versions.first().and_then(pointer);
        // A part without anything in it is not the same as no part.
        self.versions.iter().all(|version| {
            let own = pointer(version);
            own.is_some_and(Json::is_object) == first.is_some_and(Json::is_object) && same(own, first)
        })
    }

    /// The value that all versions share in a place, and its path.
    pub(super) fn shared(&self, key: &str) -> Option<(&'a Json, String)> {
        let (_, above) = SHARED.iter().find(|(below, _)| *below == key)?;
        let found = self.versions.first().and_then(|version| part(version, key)).filter(|_| self.is_shared(key))?;
        Some((found, format!("spec.{above}")))
    }

    /// The value of one version in a place, if not all versions share it, and its path.
    pub(super) fn own(&self, index: usize, key: &str) -> Option<(&'a Json, String)> {
        let found = self.versions.get(index).and_then(|version| part(version, key));
        found.filter(|_| !self.is_shared(key)).map(|found| (found, format!("spec.versions[{index}].{key}")))
    }

    /// Whether a version has the subresource `status`, which is looked up by its name.
    pub(super) fn has_status(&self, name: &Json) -> bool {
        let versions = if self.is_shared("subresources") {
            self.versions.first()
        } else {
            self.versions.iter().find(|version| version.get("name") == Some(name))
        };
        versions.is_some_and(has_status)
    }

    /// Whether any version has it.
    pub(super) fn any_has_status(&self) -> bool {
        self.versions.iter().any(has_status)
    }

    /// The schemas of all versions; null for one that has none.
    pub(super) fn schemas(&self) -> impl Iterator<Item = Option<&'a Json>> {
        self.versions.iter().map(schema_of)
    }
}

fn has_status(version: &Json) -> bool {
    version.pointer("/subresources/status").is_some_and(|status| !status.is_null())
}

/// The schema of a version.
pub(super) fn schema_of(version: &Json) -> Option<&Json> {
    version.pointer("/schema/openAPIV3Schema").filter(|schema| !schema.is_null())
}

/// Whether two schemas are the same to the API server.
pub(super) fn same_schema(one: Option<&Json>, other: Option<&Json>) -> bool {
    one.is_some() == other.is_some() && same(one, other)
}
