//! Evaluation of existing objects: the offline engine evaluates each as if it were created now.

use std::{borrow::Cow, collections::BTreeSet, sync::Arc};

use palisade_api::{
    ObjectKind, ToolSecurityParams,
    names::{Part, Shape},
};
use palisade_compiler::Namespace;
use palisade_gate::{Decision, ValidationRequest, Validator, Violation, namespace as namespace_object};
use palisade_kube_json::workload::WORKLOADS;
use palisade_mutation::{MutationRequest, Plan};
use serde_json::{Value as Json, json};

use crate::{generations::accepted::AcceptedProfile, message::counted};

/// The longest reason, in characters.
const MAX_REASON_CHARS: usize = 400;

/// The policies of a profile, for evaluation.
#[derive(Debug)]
pub struct Evaluator {
    parts: Vec<(Part, Validator)>,
    object_kinds: Vec<ObjectKind>,
    /// Those that custom checks name, as group and resource.
    named: BTreeSet<(String, String)>,
}

/// A kind whose objects are listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ListedKind {
    pub api_version: String,
    pub kind: String,
    /// The plural name.
    pub resource: String,
}

impl ListedKind {
    pub fn new(api_version: &str, kind: &str, resource: &str) -> Self {
        Self { api_version: api_version.to_owned(), kind: kind.to_owned(), resource: resource.to_owned() }
    }

    /// True for pods.
    pub fn is_pods(&self) -> bool {
        (self.api_version.as_str(), self.resource.as_str()) == ("v1", "pods")
    }

    /// True for a kind of Kubernetes' own workloads.
    pub fn is_workload(&self) -> bool {
        WORKLOADS.iter().any(|one| (one.api_version, one.resource) == (self.api_version.as_str(), &self.resource))
    }
}

/// An object of a namespace.
#[derive(Debug)]
pub struct Existing {
    pub of: Arc<ListedKind>,
    /// The whole object.
    pub object: Json,
}

/// Verdict of a profile on an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evaluation {
    /// It complies, or the profile does not evaluate it.
    Complies,
    /// It violates the profile: at least one violation.
    Violates(Vec<Violation>),
    /// There is no verdict, with the reason.
    Unknown(String),
}

/// The findings in a namespace while its objects are evaluated, some at a time.
#[derive(Debug, Default)]
pub struct Findings {
    count: usize,
    first: Option<String>,
}

impl Findings {
    /// Evaluates some objects, and keeps only the first reason.
    pub fn evaluate(&mut self, tenant: &Tenant<'_>, page: &[Existing]) {
        for existing @ Existing { of, object } in page {
            let kind = &of.kind;
            let why = match tenant.evaluate(existing) {
                Evaluation::Complies => continue,
                Evaluation::Violates(violations) => match violations.first() {
                    Some(violation) => format!("[{}] {}", violation.check, violation.message),
                    None => String::new(),
                },
                Evaluation::Unknown(why) => format!("cannot be evaluated: {why}"),
            };
            self.count += 1;
            let name = object.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
            self.first.get_or_insert_with(|| format!("{kind} {name}: {why}").chars().take(MAX_REASON_CHARS).collect());
        }
    }

    /// The violations in the namespace; `None` if all objects comply.
    pub fn end(self) -> Option<String> {
        let first = self.first?;
        let verb = if self.count == 1 { "violates" } else { "violate" };
        Some(format!("{} {verb} the profile; {first}", counted(self.count, "object")))
    }
}

/// An evaluator for one namespace.
#[derive(Debug)]
pub struct Tenant<'a> {
    evaluator: &'a Evaluator,
    namespace: String,
    about: Json,
    params: Option<Json>,
    plan: Plan<'a>,
    all_checks: bool,
}

impl Tenant<'_> {
    /// The evaluator for the stage Deny of the namespace: without the checks with a separate stage other than Deny.
    #[must_use]
    pub fn in_deny(self) -> Self {
        Self { all_checks: false, ..self }
    }

    /// The verdict on an object as if it were created now.
    pub fn evaluate(&self, Existing { of, object }: &Existing) -> Evaluation {
        let mut mutated = Cow::Borrowed(object);
        let shapes: &[Shape] = if of.is_pods() {
            // As the engine in force would mutate it before it is validated.
            let patch = self.plan.patch(&MutationRequest::create(&self.namespace, object));
            if !patch.is_empty()
                && let Err(why) = patch.apply(mutated.to_mut())
            {
                tracing::debug!(namespace = self.namespace.as_str(), error = why, "could not mutate a pod");
            }
            &[Shape::Pods]
        } else if of.is_workload() {
            // A custom check may evaluate workloads as objects, too.
            &[Shape::Workloads, Shape::Objects]
        } else {
            &[Shape::Objects]
        };
        let request = ValidationRequest {
            namespace: &self.namespace,
            params: self.params.as_ref(),
            namespace_object: Some(&self.about),
            resource: Some(&of.resource),
            ..ValidationRequest::create(&of.kind, &mutated)
        };
        let mut found = Vec::new();
        let is_asked = |part: Part| {
            part.shape().is_some_and(|shape| shapes.contains(&shape) && (self.all_checks || part == shape.into()))
        };
        for (_, validator) in self.evaluator.parts.iter().filter(|(part, _)| is_asked(*part)) {
            let violations = match validator.judge(&request) {
                Ok(evaluation) if !evaluation.matched => continue,
                Ok(evaluation) => match evaluation.decision {
                    Decision::Admit => continue,
                    Decision::Deny { message, violations, .. } if violations.is_empty() => {
                        vec![Violation { check: "policy".to_owned(), message }]
                    }
                    Decision::Deny { violations, .. } => violations,
                },
                Err(error) => return Evaluation::Unknown(error.to_string()),
            };
            // Two policies may evaluate one check.
            found.extend(violations.into_iter().filter(|one| !found.contains(one)).collect::<Vec<_>>());
        }
        if found.is_empty() { Evaluation::Complies } else { Evaluation::Violates(found) }
    }
}

impl Evaluator {
    /// Compiles the policies.
    ///
    /// # Errors
    /// An error in a policy, which the check of the profile should have found.
    pub fn new(accepted: &AcceptedProfile) -> Result<Self, String> {
        let pairs = accepted.compiled.bundle.pairs().filter(|(part, _)| part.shape().is_some());
        let parts = pairs.map(|(part, pair)| Ok((part, Validator::new(&pair.policy)?))).collect::<Result<_, _>>();
        let parts = parts.map_err(|mistakes: Vec<_>| crate::message::diagnostics(&mistakes))?;
        let kinds = accepted.profile.spec.custom_checks.iter().flat_map(|check| &check.kinds);
        let named = kinds.map(|kind| (kind.group.clone(), kind.resource.clone())).collect();
        Ok(Self { parts, object_kinds: accepted.compiled.listed_kinds(), named })
    }

    /// True if the profile evaluates workloads.
    pub fn evaluates_workloads(&self) -> bool {
        self.parts.iter().any(|(part, _)| part.shape() == Some(Shape::Workloads))
    }

    /// The evaluator for a namespace with these parameters.
    pub fn tenant<'a>(
        &'a self,
        accepted: &'a AcceptedProfile,
        namespace: &Namespace,
        params: Option<&ToolSecurityParams>,
    ) -> Tenant<'a> {
        let mutation = accepted.compiled.mutation.as_ref();
        Tenant {
            evaluator: self,
            namespace: namespace.name.clone(),
            about: namespace_object(&namespace.name, &namespace.labels, &namespace.annotations),
            params: params.map(|params| json!(params)),
            plan: Plan::new(mutation.map(|mutation| (mutation, params.map(|params| &params.spec)))),
            all_checks: true,
        }
    }

    /// The kinds to list in a namespace: pods, and workloads if the profile evaluates them. Others: [`Self::object_kinds`].
    pub fn kinds(&self) -> impl Iterator<Item = ListedKind> {
        let workloads = WORKLOADS.iter().filter(|_| self.evaluates_workloads());
        let workloads = workloads.map(|one| ListedKind::new(one.api_version, one.kind, one.resource));
        [ListedKind::new("v1", "Pod", "pods")].into_iter().chain(workloads)
    }

    /// The kinds of other objects that the profile evaluates. The API server may not have all of them.
    pub fn object_kinds(&self) -> &[ObjectKind] {
        &self.object_kinds
    }

    /// True if a custom check names this kind. Checks of the catalogue also evaluate kinds that many clusters do not have.
    pub fn is_named(&self, kind: &ObjectKind) -> bool {
        self.named.iter().any(|(group, resource)| (group, resource) == (&kind.group, &kind.resource))
    }
}
