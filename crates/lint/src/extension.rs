//! The part of lint that a product adds: kinds of objects that become policies, and rules about them.

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
    /// Whether its objects become policies, which lint then checks.
    pub makes_policies: bool,
}

/// A finding of a product's rule about an object.
#[derive(Clone, Debug)]
pub struct ExtensionFinding {
    /// The rule.
    pub rule: &'static Rule,
    /// The path in the object.
    pub path: String,
    /// The message.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
}

/// Why an object becomes no policies.
#[derive(Debug)]
pub enum NotMade {
    /// It cannot be read as an object of its kind.
    Unreadable(Box<Mistake>),
    /// It is not accepted.
    Rejected(Vec<ExtensionFinding>),
}

/// The extension of lint by a product.
pub trait Extension: fmt::Debug + Sync {
    /// The kinds that it adds.
    fn kinds(&self) -> &'static [ExtensionKind];

    /// Its rules, to which its [findings](ExtensionFinding) refer.
    fn rules(&self) -> &'static [&'static Rule];

    /// The CustomResourceDefinitions that the generated objects need.
    fn definitions(&self) -> Vec<Json>;

    /// The policies and bindings that an object becomes. Lint treats them as if they were in the input.
    ///
    /// # Errors
    /// Why it becomes none.
    fn make(&self, object: &Object<'_>) -> Result<Vec<Json>, NotMade>;

    /// The findings about objects that became policies, by their index.
    fn findings(&self, made: &[&Object<'_>]) -> Vec<(usize, ExtensionFinding)>;
}
