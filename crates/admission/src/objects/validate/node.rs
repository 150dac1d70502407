//! A value with its place, and the errors reported for it.

use palisade_cel::Minor;
use serde_json::{Map, Value};

use crate::validation::{Checking, FieldError, quote};

static NULL: Value = Value::Null;

/// A part of an object, and its path, for example `spec.containers[0]`. An omitted part is null: like the Go types,
/// validation does not distinguish the two.
#[derive(Clone, Debug)]
pub(super) struct Node<'a> {
    pub value: &'a Value,
    pub path: String,
}

impl<'a> Node<'a> {
    pub(super) fn new(value: &'a Value, path: impl Into<String>) -> Self {
        Self { value, path: path.into() }
    }

    /// The path of a field.
    pub(super) fn field(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    /// A field, whether or not it is there.
    pub(super) fn get(&self, key: &str) -> Self {
        Self { value: self.value.get(key).unwrap_or(&NULL), path: self.field(key) }
    }

    /// A field that the API server reports by another name.
    pub(super) fn get_as(&self, key: &str, name: &str) -> Self {
        Self { path: self.field(name), ..self.get(key) }
    }

    /// A field that is there.
    pub(super) fn part(&self, key: &str) -> Option<Self> {
        Some(self.get(key)).filter(|found| !found.value.is_null())
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.value.get(key).is_some_and(|value| !value.is_null())
    }

    /// Itself with another place.
    pub(super) fn at(&self, path: impl Into<String>) -> Self {
        Self { value: self.value, path: path.into() }
    }

    /// A text; empty if there is none.
    pub(super) fn text(&self, key: &str) -> &'a str {
        self.value.get(key).and_then(Value::as_str).unwrap_or_default()
    }

    /// Itself as a text.
    pub(super) fn string(&self) -> &'a str {
        self.value.as_str().unwrap_or_default()
    }

    pub(super) fn int(&self, key: &str) -> Option<i64> {
        self.value.get(key).and_then(Value::as_i64)
    }

    pub(super) fn bool(&self, key: &str) -> Option<bool> {
        self.value.get(key).and_then(Value::as_bool)
    }

    pub(super) fn is_true(&self, key: &str) -> bool {
        self.bool(key) == Some(true)
    }

    pub(super) fn elements(&self, key: &str) -> &'a [Value] {
        self.value.get(key).and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
    }

    /// The elements of a list, with their places.
    pub(super) fn list(&self, key: &str) -> impl Iterator<Item = Self> + use<'a> {
        let path = self.field(key);
        self.elements(key).iter().enumerate().map(move |(i, value)| Self { value, path: format!("{path}[{i}]") })
    }

    pub(super) fn map(&self, key: &str) -> Option<&'a Map<String, Value>> {
        self.value.get(key).and_then(Value::as_object)
    }

    /// The entries of a map, with their places: `limits[cpu]`.
    pub(super) fn entries(&self, key: &str) -> impl Iterator<Item = (&'a str, Self)> + use<'a> {
        let path = self.field(key);
        self.map(key)
            .into_iter()
            .flatten()
            .map(move |(key, value)| (key.as_str(), Self { value, path: format!("{path}[{key}]") }))
    }
}

impl Checking<'_> {
    pub(super) fn required(&mut self, field: impl Into<String>, detail: &str) {
        self.errors.push(FieldError::required(field, detail));
    }

    pub(super) fn forbidden(&mut self, field: impl Into<String>, detail: &str) {
        self.errors.push(FieldError::forbidden(field, detail));
    }

    pub(super) fn invalid(&mut self, field: impl Into<String>, value: &str, detail: &str) {
        self.errors.push(FieldError::invalid(field, value, detail));
    }

    /// A value that is shown as it is in JSON: numbers, booleans, texts of a separate type.
    pub(super) fn invalid_value(&mut self, field: impl Into<String>, value: &Value, detail: &str) {
        self.errors.push(FieldError::invalid_value(self.minor, field, value, detail));
    }

    /// The value of a node.
    pub(super) fn wrong(&mut self, node: &Node<'_>, detail: &str) {
        self.invalid_value(&node.path, node.value, detail);
    }

    pub(super) fn invalid_shown(&mut self, field: impl Into<String>, shown: &str, detail: &str) {
        self.errors.push(FieldError::invalid_shown(field, shown, detail));
    }

    /// A text with each thing that is wrong with it.
    pub(super) fn each(&mut self, field: impl Into<String>, value: &str, wrong: &[String]) {
        let field = field.into();
        self.errors.extend(wrong.iter().map(|detail| FieldError::invalid(&field, value, detail)));
    }

    pub(super) fn not_found(&mut self, field: impl Into<String>, value: &str) {
        self.errors.push(FieldError::not_found(field, value));
    }

    pub(super) fn duplicate(&mut self, field: impl Into<String>, value: &str) {
        self.errors.push(FieldError::duplicate(field, value));
    }

    pub(super) fn unsupported(&mut self, field: impl Into<String>, value: &str, supported: &[&str]) {
        self.errors.push(FieldError::not_supported(self.minor, field, value, supported));
    }

    /// A text that must be one of a list.
    pub(super) fn one_of(&mut self, node: &Node<'_>, supported: &[&str]) {
        if !supported.contains(&node.string()) {
            self.unsupported(&node.path, node.string(), supported);
        }
    }

    /// The same, and it must be there.
    pub(super) fn required_one_of(&mut self, node: &Node<'_>, supported: &[&str]) {
        if node.string().is_empty() {
            self.required(&node.path, "");
        } else {
            self.one_of(node, supported);
        }
    }

    pub(super) fn too_long(&mut self, field: impl Into<String>, most: usize) {
        self.errors.push(FieldError::too_long_in(self.minor, field, most));
    }

    pub(super) fn too_many(&mut self, field: impl Into<String>, actual: usize, most: usize) {
        self.errors.push(FieldError::too_many_in(self.minor, field, actual, most));
    }

    /// A number that must not be negative, if it is there.
    pub(super) fn not_negative(&mut self, node: &Node<'_>, key: &str) {
        if node.int(key).is_some_and(|number| number < 0) {
            self.wrong(&node.get(key), "must be greater than or equal to 0");
        }
    }

    /// A number that must be within borders, if it is there.
    pub(super) fn within(&mut self, node: &Node<'_>, key: &str, from: i64, to: i64) {
        if node.int(key).is_some_and(|number| !(from..=to).contains(&number)) {
            self.wrong(&node.get(key), &format!("must be between {from} and {to}, inclusive"));
        }
    }

    /// A value of a struct or list of the API server's own form, of which JSON is shown; until 1.33 it is shown in the
    /// syntax of Go, with its type.
    pub(super) fn invalid_go(&mut self, field: impl Into<String>, go_type: &str, value: &Value, detail: &str) {
        let shown = if self.minor >= Minor::V1_34 { go_json(value) } else { format!("{go_type}{}", go_braces(value)) };
        self.invalid_shown(field, &shown, detail);
    }

    /// A list of texts.
    pub(super) fn invalid_texts(&mut self, field: impl Into<String>, value: &Value, detail: &str) {
        self.invalid_go(field, "[]string", value, detail);
    }
}

fn go_json(value: &Value) -> String {
    crate::validation::html_escaped(&value.to_string())
}

/// Elements and fields in the syntax of Go.
fn go_braces(value: &Value) -> String {
    match value {
        Value::Null => "(nil)".to_owned(),
        Value::Array(list) => format!("{{{}}}", list.iter().map(go_scalar).collect::<Vec<_>>().join(", ")),
        Value::Object(map) => {
            let fields = map.iter().map(|(key, value)| format!("{key}:{}", go_scalar(value)));
            format!("{{{}}}", fields.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn go_scalar(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        other => other.to_string(),
    }
}
