//! What a product adds: kinds of objects that policies are made of, and rules about them.

use std::fmt;

use palisade_manifest::{Mistake, Object};
use serde_json::Value as Json;

use crate::Rule;

/// A kind that a product adds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExtensionKind {
    /// The group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Whether policies are made of its objects, which are linted then.
    pub makes_policies: bool,
}

/// What a rule of a product says of an object.
#[derive(Clone, Debug)]
pub struct ExtensionFinding {
    /// The rule.
    pub rule: &'static Rule,
    /// The path in the object.
    pub path: String,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

/// Why no policies are made of an object.
#[derive(Debug)]
pub enum NotMade {
    /// It cannot be read as an object of its kind.
    Unreadable(Box<Mistake>),
    /// It is not accepted.
    Rejected(Vec<ExtensionFinding>),
}

/// What a product adds.
pub trait Extension: fmt::Debug + Sync {
    /// The kinds that it adds.
    fn kinds(&self) -> &'static [ExtensionKind];

    /// Its rules, which what it [finds](ExtensionFinding) is said to be of.
    fn rules(&self) -> &'static [&'static Rule];

    /// The CustomResourceDefinitions that what it makes relies on.
    fn definitions(&self) -> Vec<Json>;

    /// The policies and bindings that an object becomes. They are linted as if they were in the input.
    ///
    /// # Errors
    /// Why it becomes none.
    fn make(&self, object: &Object<'_>) -> Result<Vec<Json>, NotMade>;

    /// What is wrong with objects of which policies were made, by their index.
    fn findings(&self, made: &[&Object<'_>]) -> Vec<(usize, ExtensionFinding)>;
}
