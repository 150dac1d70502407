//! Values of types with declared names that expressions construct (apiserver `pkg/cel/mutation/jsonpatch.go` and
//! `pkg/cel/mutation/dynamic/objects.go`).

use std::{collections::BTreeMap, sync::Arc};

use super::Value;

/// The type of patches that are merged into an object, and what the names of the types of its parts begin with.
pub const OBJECT: &str = "Object";
/// The type of an operation of a JSON patch.
pub const JSON_PATCH: &str = "JSONPatch";

/// An `Object{…}`, `Object.<field>…{…}` or `JSONPatch{…}`.
#[derive(Clone, Debug)]
pub struct Struct<'a> {
    name: Arc<str>,
    fields: BTreeMap<Arc<str>, Value<'a>>,
}

impl<'a> Struct<'a> {
    /// One with these fields. A `JSONPatch` has `op`, `path` and `from` in any case.
    pub(crate) fn new(name: Arc<str>, mut fields: BTreeMap<Arc<str>, Value<'a>>) -> Self {
        if &*name == JSON_PATCH {
            for field in ["op", "path", "from"] {
                fields.entry(field.into()).or_insert_with(|| String::new().into());
            }
        }
        Self { name, fields }
    }

    /// The name of its type.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it is a `JSONPatch`.
    pub fn is_json_patch(&self) -> bool {
        &*self.name == JSON_PATCH
    }

    /// The value of a field.
    pub fn get(&self, field: &str) -> Option<&Value<'a>> {
        self.fields.get(field)
    }

    /// The fields that it was given, by name.
    pub fn fields(&self) -> impl ExactSizeIterator<Item = (&str, &Value<'a>)> {
        self.fields.iter().map(|(name, value)| (&**name, value))
    }

    pub(super) fn into_owned(self) -> Struct<'static> {
        let fields = self.fields.into_iter().map(|(name, value)| (name, value.into_owned())).collect();
        Struct { name: self.name, fields }
    }

    pub(super) fn is_zero(&self) -> bool {
        !self.is_json_patch() && self.fields.is_empty()
    }

    pub(super) fn go_type(&self) -> &'static str {
        if self.is_json_patch() { "*mutation.JSONPatchVal" } else { "*dynamic.ObjectVal" }
    }
}
