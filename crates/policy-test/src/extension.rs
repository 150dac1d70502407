//! The part of suites that a product adds: objects that become policies.

use std::{fmt, sync::Arc};

use k8s_openapi::jiff::Timestamp;
use palisade_admission::requests::{Cluster, Review, Webhook};
use palisade_cel::{Minor, Position};
use serde_json::Value as Json;

/// The part of suites that a product adds.
pub trait Extension: fmt::Debug + Sync {
    /// A cluster of this minor of Kubernetes with only the parts that the product plugs in.
    fn cluster(&self, minor: Minor) -> Cluster;

    /// The kind of the objects that become policies.
    fn kind(&self) -> &'static str;

    /// Reads such an object.
    ///
    /// # Errors
    /// The error in it.
    fn read(&self, object: &Json) -> Result<Arc<dyn Made>, Vec<Wrong>>;
}

/// An error in an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wrong {
    /// What.
    pub message: String,
    /// Advice.
    pub help: Option<&'static str>,
}

/// An object that becomes policies. Findings about the policies are reported on the object, by paths in it.
pub trait Made: fmt::Debug + Send + Sync {
    /// The policies, their bindings, and the objects that these need, at that time in a cluster with these other objects.
    ///
    /// # Errors
    /// Why there are none.
    fn objects(&self, others: &[&Json], now: Timestamp) -> Result<Vec<Json>, String>;

    /// The other objects that it becomes in a cluster of this minor of Kubernetes.
    fn objects_of(&self, minor: Minor) -> Vec<Json>;

    /// Its webhook in a cluster of this minor of Kubernetes, with the webhook's name.
    fn webhook(&self, minor: Minor) -> Option<(String, Arc<dyn Webhook>)>;

    /// The checks that it demands, and their results in reviews.
    fn checks(&self, reviews: &[Review]) -> Vec<Check>;

    /// The origin of a position in an expression of a policy: the path of an expression of the object, and the position
    /// in it.
    fn origin(&self, policy: &str, path: &str, position: Position) -> Option<(String, Position)>;

    /// The expressions and messages that its author wrote.
    fn texts(&self) -> Vec<Text>;

    /// The changes of the policies if the text at a path is replaced; none if the policies cannot be made then.
    fn with_text(&self, path: &str, text: &str) -> Vec<Replaced>;

    /// A first suite.
    fn scaffold(&self) -> Scaffolded;
}

/// A check that an object demands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The path of the setting that demands it.
    pub path: String,
    /// A description: `check runAsUser`.
    pub what: String,
    /// Whether it found nothing wrong, in some review.
    pub passes: bool,
    /// Whether it found a violation, in some review.
    pub violates: bool,
}

/// An expression or message that the author wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    /// Where it is.
    pub path: String,
    /// The kind of text.
    pub kind: TextKind,
    /// The text.
    pub text: String,
}

/// The kind of a text.
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

/// The content of a first suite.
#[derive(Clone, Debug, Default)]
pub struct Scaffolded {
    /// The other objects of the cluster.
    pub resources: Vec<Json>,
    /// Each case with its name, its object and its expectation.
    pub cases: Vec<(String, Json, Json)>,
}
