//! The common parts of all validation of objects: errors in the words of the API server, the checks of names and of
//! metadata, and the rules of schemas.

mod field;
mod field_path;
pub(crate) mod meta;
pub(crate) mod names;
pub(crate) mod rule;
mod schemas;

use palisade_cel::Minor;
pub use palisade_cel::quote;
use serde_json::Value as Json;

pub use field::{Error as FieldError, ErrorType, NOT_SHOWN, aggregate};
pub(crate) use field::{IMMUTABLE, go_json, html_escaped, shown};
pub(crate) use field_path::{field_path, selectable_field};
pub(crate) use schemas::any_schema;

/// The checks of an object, and their findings.
pub(crate) struct Checking<'a> {
    pub(crate) minor: Minor,
    pub(crate) old: Option<&'a Json>,
    pub(crate) errors: Vec<FieldError>,
    /// Why there is no verdict, if there is none.
    pub(crate) unknown: Option<String>,
}

/// A text of an object; empty if there is none.
pub(crate) fn text<'a>(of: &'a Json, key: &str) -> &'a str {
    of.get(key).and_then(Json::as_str).unwrap_or_default()
}

/// The elements of a list of an object.
pub(crate) fn list<'a>(of: &'a Json, key: &str) -> &'a [Json] {
    of.get(key).and_then(Json::as_array).map(Vec::as_slice).unwrap_or_default()
}

/// A part of an object, unless it is null.
pub(crate) fn part<'a>(of: &'a Json, key: &str) -> Option<&'a Json> {
    of.get(key).filter(|part| !part.is_null())
}
