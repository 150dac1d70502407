//! Values of types with declared names that expressions construct (apiserver `pkg/cel/mutation/jsonpatch.go` and
//! `pkg/cel/mutation/dynamic/objects.go`).

use std::{collections::BTreeMap, sync::Arc};

use super::{List, Map, Value, equal};
use crate::eval::Error;

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

/// `==` of two structs. Of `Object` it is Go's `reflect.DeepEqual`, of `JSONPatch` it is CEL's.
pub(super) fn equals(a: &Arc<Struct<'_>>, b: &Arc<Struct<'_>>) -> Result<bool, Error> {
    if !a.is_json_patch() || !b.is_json_patch() {
        return Ok(same_struct(a, b));
    }
    if ["op", "path", "from"].iter().any(|field| !texts_equal(a.get(field), b.get(field))) {
        return Ok(false);
    }
    match (a.get("value"), b.get("value")) {
        (Some(a), Some(b)) => equal::inner(a, b),
        (a, b) => Ok(a.is_none() && b.is_none()),
    }
}

fn texts_equal(a: Option<&Value<'_>>, b: Option<&Value<'_>>) -> bool {
    a.and_then(Value::as_str) == b.and_then(Value::as_str)
}

fn same_struct(a: &Arc<Struct<'_>>, b: &Arc<Struct<'_>>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
        || (a.name == b.name
            && a.fields.len() == b.fields.len()
            && a.fields.iter().zip(&b.fields).all(|((a, left), (b, right))| a == b && same(left, right)))
}

/// Whether Go takes two values for the same, all the way down: of the same type, and no list but the very same one, for a
/// list has functions in it, which equal nothing.
#[expect(clippy::float_cmp, reason = "as Go does")]
fn same(a: &Value<'_>, b: &Value<'_>) -> bool {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a == b,
        (Value::Uint(a), Value::Uint(b)) => a == b,
        (Value::Double(a), Value::Double(b)) => a == b,
        (Value::List(List::Items(a)), Value::List(List::Items(b))) => std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b)),
        (Value::List(List::Json(a)), Value::List(List::Json(b))) => Arc::ptr_eq(a, b),
        (Value::Map(Map::Json(a)), Value::Map(Map::Json(b))) => a == b,
        (Value::Map(Map::Entries(a)), Value::Map(Map::Entries(b))) => {
            a.len() == b.len() && a.iter().all(|(key, value)| b.find_exact(key).is_some_and(|other| same(value, other)))
        }
        (Value::Optional(Some(a)), Value::Optional(Some(b))) => same(a, b),
        (Value::Struct(a), Value::Struct(b)) => same_struct(a, b),
        (Value::Int(_) | Value::Uint(_) | Value::Double(_) | Value::List(_) | Value::Map(_), _) => false,
        (a, b) => equal::equal(a, b) == Ok(true),
    }
}
