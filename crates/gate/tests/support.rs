//! A policy of a profile with its parameters, as the tests evaluate requests with it.

use palisade_api::names::Shape;
use palisade_compiler::Compiled;
use palisade_gate::{Decision, Judgement, ValidationRequest, Validator};
use serde_json::{Value as Json, json};

/// The policy of one shape, and the parameters of a namespace.
pub(crate) struct ShapePolicy {
    policy: Validator,
    pub(crate) params: Option<Json>,
}

impl ShapePolicy {
    /// With the parameters of the profile's probes.
    pub(crate) fn new(compiled: &Compiled, shape: Shape) -> Self {
        Self::with(compiled, shape, compiled.probes.params.as_ref().map(|spec| json!({"spec": spec})))
    }

    pub(crate) fn with(compiled: &Compiled, shape: Shape, params: Option<Json>) -> Self {
        let policy = &compiled.bundle.pair(shape).unwrap().policy;
        Self { policy: Validator::new(policy).unwrap_or_else(|error| panic!("{error:?}")), params }
    }

    /// The judgement on a request, with these parameters. An expression that fails is an error.
    pub(crate) fn judge(&self, request: &ValidationRequest<'_>) -> Judgement {
        let request = ValidationRequest { params: self.params.as_ref(), ..request.clone() };
        self.policy.judge(&request).unwrap_or_else(|error| panic!("{error}\n{}", request.object))
    }

    pub(crate) fn creates(&self, kind: &str, object: &Json) -> Judgement {
        self.judge(&ValidationRequest::create(kind, object))
    }

    /// The message of the denial of a pod, if it is denied.
    pub(crate) fn denial(&self, pod: &Json) -> Option<String> {
        match self.creates("Pod", pod).decision {
            Decision::Admit => None,
            Decision::Deny { message, .. } => Some(message),
        }
    }

    /// Whether a pod is admitted; `None` if an expression fails on it.
    pub(crate) fn admits(&self, pod: &Json) -> Option<bool> {
        let request = ValidationRequest { params: self.params.as_ref(), ..ValidationRequest::create("Pod", pod) };
        self.policy.evaluate(&request).ok().map(|decision| decision == Decision::Admit)
    }
}
