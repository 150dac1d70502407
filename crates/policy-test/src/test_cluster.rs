//! A cluster, and the way of a request to its policies.

use std::sync::Arc;

use palisade_admission::{
    create,
    objects::{InspectedRule, Kinds},
    requests::{Cluster, Inspected, Plugins, PolicyKind, Request, Review, Trace, Webhook},
};
use palisade_cel::{Issue, Minor};
use serde_json::Value as Json;

use crate::{Extension, request::bare_namespace};

/// The API server that answers the cases of suites.
#[derive(Clone, Debug)]
pub struct Server {
    /// The minor, where a suite names none.
    pub minor: Minor,
    /// The admission plugins that run.
    pub plugins: Plugins,
    /// The extension of a product.
    pub extension: Option<&'static dyn Extension>,
}

/// A cluster of some version, and its API server's answers.
#[derive(Clone)]
pub(crate) struct TestCluster {
    cluster: Cluster,
}

impl TestCluster {
    /// An empty cluster that remembers the results of its expressions.
    pub fn new(minor: Minor, plugins: &Plugins, extension: Option<&dyn Extension>) -> Self {
        let cluster = extension.map_or_else(|| Cluster::new(minor), |extension| extension.cluster(minor));
        Self { cluster: cluster.with_plugins(plugins.clone()).watching() }
    }

    /// Adds an object.
    pub fn apply(&mut self, object: Json) -> Result<Vec<String>, String> {
        self.cluster.apply(object).map_err(|refused| match refused {
            create::Refused::Status(status) => status.message,
            create::Refused::NoVerdict(why) => format!("no verdict: {why}"),
        })
    }

    /// Adds a webhook with known answers.
    pub fn register(&mut self, name: String, webhook: Arc<dyn Webhook>) {
        self.cluster.register(name, webhook);
    }

    /// Ensures that a namespace exists that a request names.
    pub fn ensure_namespace(&mut self, name: &str) {
        // A request was made with this name, so it is valid.
        let _ = self.cluster.apply(bare_namespace(name));
    }

    /// Which kinds there are.
    pub fn kinds(&self) -> &Kinds {
        self.cluster.kinds()
    }

    /// The result of a request with objects as a client sends them.
    pub fn admit(&self, request: &Request) -> Review {
        self.cluster.admit(request)
    }

    /// The result of a request with objects as in an AdmissionReview.
    pub fn review(&self, request: &Request) -> Review {
        self.cluster.review(request)
    }

    /// The expressions of all policies.
    pub fn expressions(&self) -> impl Iterator<Item = Inspected<'_>> {
        self.cluster.expressions()
    }

    /// The rules of all definitions.
    pub fn rules(&self) -> Vec<InspectedRule<'_>> {
        self.cluster.kinds().rules()
    }

    /// The same cluster with another text in a definition; none if the API server rejects it.
    pub fn with_definition(&self, name: &str, pointers: &[String], text: &str) -> Option<Self> {
        Some(Self { cluster: self.cluster.with_definition(name, pointers, text)? })
    }

    /// How policies of a kind and their bindings match a request.
    pub fn trace(&self, kind: PolicyKind, request: &Request) -> Vec<Trace> {
        self.cluster.trace(kind, request)
    }

    /// How policies and bindings of both kinds matched a request, given its result.
    pub fn matched(&self, request: &Request, review: &Review, sent: bool) -> Vec<Trace> {
        self.cluster.matched(request, review, sent)
    }

    /// The same cluster with another expression, message or reason.
    pub fn with_expression(
        &self,
        kind: PolicyKind,
        policy: &str,
        path: &str,
        source: &str,
    ) -> Result<Self, Vec<Issue>> {
        Ok(Self { cluster: self.cluster.with_expression(kind, policy, path, source)? })
    }
}
