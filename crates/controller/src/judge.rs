//! Whether pods and workloads comply with a profile: the offline engine judges each as if it were
//! created now.

use std::borrow::Cow;

use palisade_api::{ToolSecurityParams, names::Shape};
use palisade_compiler::Namespace;
use palisade_gate::{Decision, ValidationRequest, Validator, Violation, namespace as namespace_object};
use palisade_mutation::{MutationRequest, Plan};
use palisade_objects::workload::WORKLOADS;
use serde_json::{Value as Json, json};

use crate::{accepted::AcceptedProfile, text::counted};

/// The longest reason, in characters.
const LONGEST: usize = 400;

/// The policies of a profile, to judge by.
#[derive(Debug)]
pub struct Judge {
    pods: Option<Validator>,
    workloads: Option<Validator>,
}

/// A pod or a workload of a namespace.
#[derive(Debug)]
pub struct Existing {
    /// Its kind.
    pub kind: &'static str,
    /// The whole object.
    pub object: Json,
}

/// What a profile says of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// It complies, or the profile does not judge it.
    Complies,
    /// It violates the profile: at least one violation.
    Violates(Vec<Violation>),
    /// There is no verdict, and why.
    Unknown(String),
}

/// The findings in a namespace while its objects are judged, some at a time.
#[derive(Debug, Default)]
pub struct Findings {
    count: usize,
    first: Option<String>,
}

impl Findings {
    /// Judges some objects, and keeps nothing of them but the first reason.
    pub fn judge(&mut self, tenant: &Tenant<'_>, page: &[Existing]) {
        for Existing { kind, object } in page {
            let why = match tenant.judge(kind, object) {
                Judgement::Complies => continue,
                Judgement::Violates(violations) => match violations.first() {
                    Some(violation) => format!("[{}] {}", violation.check, violation.message),
                    None => String::new(),
                },
                Judgement::Unknown(why) => format!("cannot be judged: {why}"),
            };
            self.count += 1;
            let name = object.pointer("/metadata/name").and_then(Json::as_str).unwrap_or_default();
            self.first.get_or_insert_with(|| format!("{kind} {name}: {why}").chars().take(LONGEST).collect());
        }
    }

    /// What in the namespace violates the profile; `None` if all complies.
    pub fn end(self) -> Option<String> {
        let first = self.first?;
        let verb = if self.count == 1 { "violates" } else { "violate" };
        Some(format!("{} {verb} the profile; {first}", counted(self.count, "object")))
    }
}

/// A judge in one namespace.
#[derive(Debug)]
pub struct Tenant<'a> {
    judge: &'a Judge,
    namespace: String,
    about: Json,
    params: Option<Json>,
    plan: Plan<'a>,
}

impl Tenant<'_> {
    /// The verdict on an object as if it were created now.
    pub fn judge(&self, kind: &str, object: &Json) -> Judgement {
        let mut mutated = Cow::Borrowed(object);
        let validator = if kind == "Pod" {
            // As the engine in force would mutate it before it is validated.
            let patch = self.plan.patch(&MutationRequest::create(&self.namespace, object));
            if !patch.is_empty()
                && let Err(why) = patch.apply(mutated.to_mut())
            {
                tracing::debug!(namespace = self.namespace.as_str(), error = why, "could not mutate a pod");
            }
            &self.judge.pods
        } else {
            &self.judge.workloads
        };
        let Some(validator) = validator else { return Judgement::Complies };
        let request = ValidationRequest {
            namespace: &self.namespace,
            params: self.params.as_ref(),
            namespace_object: Some(&self.about),
            ..ValidationRequest::create(kind, &mutated)
        };
        match validator.judge(&request) {
            Ok(judgement) if !judgement.matched => Judgement::Complies,
            Ok(judgement) => match judgement.decision {
                Decision::Admit => Judgement::Complies,
                Decision::Deny { message, violations, .. } if violations.is_empty() => {
                    Judgement::Violates(vec![Violation { check: "policy".to_owned(), message }])
                }
                Decision::Deny { violations, .. } => Judgement::Violates(violations),
            },
            Err(mistake) => Judgement::Unknown(mistake.to_string()),
        }
    }
}

impl Judge {
    /// Compiles the policies.
    ///
    /// # Errors
    /// A mistake in a policy, which the check of the profile should have found.
    pub fn new(accepted: &AcceptedProfile) -> Result<Self, String> {
        let of = |shape| {
            let Some(pair) = accepted.compiled.bundle.pair(shape) else { return Ok(None) };
            Validator::new(&pair.policy).map(Some).map_err(|mistakes| crate::text::diagnostics(&mistakes))
        };
        Ok(Self { pods: of(Shape::Pods)?, workloads: of(Shape::Workloads)? })
    }

    /// Whether the profile judges workloads.
    pub fn judges_workloads(&self) -> bool {
        self.workloads.is_some()
    }

    /// The judge in a namespace with these parameters.
    pub fn tenant<'a>(
        &'a self,
        accepted: &'a AcceptedProfile,
        namespace: &Namespace,
        params: Option<&ToolSecurityParams>,
    ) -> Tenant<'a> {
        let mutation = accepted.compiled.mutation.as_ref();
        Tenant {
            judge: self,
            namespace: namespace.name.clone(),
            about: namespace_object(&namespace.name, &namespace.labels, &namespace.annotations),
            params: params.map(|params| json!(params)),
            plan: Plan::new(mutation.map(|mutation| (mutation, params.map(|params| &params.spec)))),
        }
    }

    /// The kinds to list in a namespace, by API version, kind and resource: pods, and workloads if the profile judges them.
    pub fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
        let workloads = WORKLOADS.iter().filter(|_| self.workloads.is_some());
        [("v1", "Pod", "pods")].into_iter().chain(workloads.map(|one| (one.api_version, one.kind, one.resource)))
    }
}
