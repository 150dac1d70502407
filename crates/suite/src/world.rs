//! A cluster, and the way of a request to its policies.

use palisade_cel::Issue;
use palisade_harness::{
    admission::{Cluster, Denial, Inspected, Operation, Outcome, Request, Review, Trace},
    create,
    objects::{self, Kinds, Sent, Surroundings},
};
use serde_json::Value as Json;

use crate::request::bare_namespace;

/// A cluster of some version, and what its API server makes of what it is sent.
#[derive(Clone)]
pub(crate) struct World {
    cluster: Cluster,
    kinds: Kinds,
    /// What admission plugins look up: classes and limits.
    around: Vec<Json>,
}

impl World {
    /// An empty cluster, whose expressions remember what they came to.
    pub fn new(minor: u8) -> Self {
        Self { cluster: Cluster::new(minor).watching(), kinds: Kinds::builtin(minor), around: Vec::new() }
    }

    /// Adds an object.
    pub fn apply(&mut self, object: Json) -> Result<Vec<String>, String> {
        match object["kind"].as_str().unwrap_or_default() {
            "CustomResourceDefinition" => drop(self.kinds.add_crd(&object)),
            "PriorityClass" | "RuntimeClass" | "IngressClass" | "StorageClass" | "LimitRange" => {
                self.around.push(object.clone());
            }
            _ => {}
        }
        let is_definition = object["kind"] == "CustomResourceDefinition";
        match self.cluster.apply(object.clone()) {
            Ok(warnings) => Ok(warnings),
            Err(create::Refused::Status(status)) => Err(status.message),
            // What counts here is which kind it defines.
            Err(create::Refused::NoVerdict(why)) if is_definition => {
                let mut plain = object;
                without_rules(&mut plain);
                match self.cluster.apply(plain) {
                    Ok(_) => Ok(vec![format!("its x-kubernetes-validations are left out: {why}")]),
                    Err(create::Refused::Status(status)) => Err(status.message),
                    Err(create::Refused::NoVerdict(why)) => Err(format!("no verdict: {why}")),
                }
            }
            Err(create::Refused::NoVerdict(why)) => Err(format!("no verdict: {why}")),
        }
    }

    /// A namespace that a request names is there.
    pub fn ensure_namespace(&mut self, name: &str) {
        // Nothing is wrong with a name of which a request was made.
        let _ = self.cluster.apply(bare_namespace(name));
    }

    /// Which kinds there are.
    pub fn kinds(&self) -> &Kinds {
        &self.kinds
    }

    /// What comes of a request whose objects are as a client sends them.
    pub fn admit(&self, request: &Request) -> Review {
        let resource = &request.resource;
        let Some(found) = self.kinds.by_plural(&resource.group, &resource.version, &resource.resource) else {
            return refused(Outcome::NoVerdict(format!("{} is no resource", resource.group_resource())));
        };
        let around = Surroundings { objects: &self.around, ..Surroundings::default() };
        let receive = |object: &Json, subresource, old| {
            let namespace = request.namespace.as_str();
            let sent = Sent { resource: found, subresource, namespace, object, old };
            objects::receive(&self.kinds, sent, &around)
        };
        let mut request = request.clone();
        let mut warnings = Vec::new();
        // What is stored was sent once.
        let old = match request.old_object.as_ref().map(|old| receive(old, "", None)).transpose() {
            Ok(received) => received.map(|received| received.object),
            Err(why) => return refused(outcome(&why, "the old object")),
        };
        if let Some(object) = request.object.as_ref().filter(|_| request.operation != Operation::Connect) {
            match receive(object, &request.subresource, old.as_ref()) {
                Ok(received) => {
                    request.object = Some(received.object);
                    warnings = received.warnings;
                }
                Err(why) => return refused(outcome(&why, "the object")),
            }
        }
        request.old_object = old;
        let mut review = self.cluster.review(&request);
        warnings.append(&mut review.warnings);
        Review { warnings, ..review }
    }

    /// What comes of a request as an AdmissionReview has it.
    pub fn review(&self, request: &Request) -> Review {
        self.cluster.review(request)
    }

    /// The expressions of all policies.
    pub fn expressions(&self) -> impl Iterator<Item = Inspected<'_>> {
        self.cluster.expressions()
    }

    /// How policies and bindings match a request.
    pub fn trace(&self, request: &Request) -> Vec<Trace> {
        self.cluster.trace(request)
    }

    /// The same with another expression.
    pub fn with_expression(&self, policy: &str, path: &str, source: &str) -> Result<Self, Vec<Issue>> {
        let cluster = self.cluster.with_expression(policy, path, source)?;
        Ok(Self { cluster, ..self.clone() })
    }
}

/// Takes the rules out of the schemas of a definition.
fn without_rules(json: &mut Json) {
    match json {
        Json::Object(fields) => {
            fields.remove("x-kubernetes-validations");
            fields.values_mut().for_each(without_rules);
        }
        Json::Array(items) => items.iter_mut().for_each(without_rules),
        _ => {}
    }
}

fn refused(outcome: Outcome) -> Review {
    Review {
        outcome,
        object: None,
        warnings: Vec::new(),
        audit_annotations: std::collections::BTreeMap::default(),
        evaluations: Vec::new(),
    }
}

/// The answer where no policy is asked.
fn outcome(why: &objects::Refused, what: &str) -> Outcome {
    let (reason, code) = match why {
        objects::Refused::NoVerdict(why) => return Outcome::NoVerdict(format!("{what}: {why}")),
        objects::Refused::Decode(_) => ("BadRequest", 400),
        objects::Refused::Validation { .. } => ("Invalid", 422),
        objects::Refused::Forbidden(_) => ("Forbidden", 403),
    };
    let message = why.to_string();
    Outcome::Denied(vec![Denial {
        policy: String::new(),
        binding: None,
        param: None,
        said: message.clone(),
        cause: message.clone(),
        message,
        reason: reason.to_owned(),
        code,
    }])
}
