//! What a product adds to suites: objects that policies are made of.

use std::{fmt, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use palisade_apiserver::admission::{Cluster, Review, Webhook};
use palisade_cel::Position;
use serde_json::Value as Json;

/// What a product adds.
pub trait Extension: fmt::Debug + Sync {
    /// A cluster of Kubernetes 1.`minor` with what the product plugs into it, and nothing else.
    fn cluster(&self, minor: u8) -> Cluster;

    /// The kind of the objects that policies are made of.
    fn kind(&self) -> &'static str;

    /// Reads such an object.
    ///
    /// # Errors
    /// What is wrong with it.
    fn read(&self, object: &Json) -> Result<Arc<dyn Made>, Vec<Wrong>>;
}

/// Something that is wrong with an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// What.
    pub message: String,
    /// What to do about it.
    pub help: Option<&'static str>,
}

/// An object that policies are made of. Findings about these are reported on it, by paths in it.
pub trait Made: fmt::Debug + Send + Sync {
    /// The policies and their bindings, and what these rely on, where there are these Namespaces at that time.
    ///
    /// # Errors
    /// Why there are none.
    fn objects(&self, namespaces: &[&Json], now: Timestamp) -> Result<Vec<Json>, String>;

    /// What it becomes besides in a cluster of Kubernetes 1.`minor`.
    fn objects_of(&self, minor: u8) -> Vec<Json>;

    /// The webhook that there is for it in a cluster of Kubernetes 1.`minor`, with its name.
    fn webhook(&self, minor: u8) -> Option<(String, Arc<dyn Webhook>)>;

    /// The checks that it asks for, and what they came to in reviews.
    fn checks(&self, reviews: &[Review]) -> Vec<Check>;

    /// Where a place in an expression of a policy comes from: `spec.checks[0].expression:1:7`.
    fn origin(&self, policy: &str, path: &str, position: Position) -> Option<String>;

    /// The expressions and messages that its author wrote.
    fn texts(&self) -> Vec<Text>;

    /// What changes in the policies if another text stands at a path; nothing if they cannot be made then.
    fn with_text(&self, path: &str, text: &str) -> Vec<Replaced>;

    /// Cases to begin with.
    fn scaffold(&self) -> Scaffolded;
}

/// A check that an object asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The path of the setting that asks for it.
    pub path: String,
    /// What it is: `check runAsUser`.
    pub what: String,
    /// Whether it found nothing wrong, in some review.
    pub passes: bool,
    /// Whether it found a violation, in some review.
    pub violates: bool,
}

/// An expression or message that an author wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Where it is.
    pub path: String,
    /// What kind.
    pub kind: TextKind,
    /// The text.
    pub text: String,
}

/// What a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextKind {
    /// An expression that decides.
    Expression,
    /// An expression that makes a message.
    MessageExpression,
    /// A message.
    Message,
}

/// An expression in the place of one of a ValidatingAdmissionPolicy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replaced {
    /// The policy.
    pub policy: String,
    /// The place of the expression in `spec`.
    pub path: String,
    /// The expression.
    pub source: String,
}

/// What a suite begins with.
#[derive(Clone, Debug, Default)]
pub struct Scaffolded {
    /// What is in the cluster besides.
    pub resources: Vec<Json>,
    /// Each with its name, its object and what is expected.
    pub cases: Vec<(String, Json, Json)>,
}
