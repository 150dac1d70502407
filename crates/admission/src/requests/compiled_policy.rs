//! A policy on its own: the results of its expressions for a request, whatever it matches and whichever bindings it
//! has.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use palisade_cel::{Issue, Minor, Mode};
use serde_json::Value as Json;

use super::{
    Evaluation, PolicyKind, Request,
    authorizer::{RecordingAuthorizer, authority},
    expression::{Evaluator, Inputs},
    namespace,
    policy::validating::Policy,
    validate::{Decision, Verdict, conditions_match, validate_matched},
};

/// A ValidatingAdmissionPolicy with all its expressions compiled, in no cluster.
#[derive(Debug)]
pub struct CompiledPolicy(Policy);

/// The objects that a policy is evaluated with; null for those that there are none of.
#[derive(Clone, Copy, Debug)]
pub struct Objects<'a> {
    /// The object as it would be.
    pub object: &'a Json,
    /// The object as it is.
    pub old_object: &'a Json,
    /// The parameters.
    pub params: &'a Json,
    /// The namespace of the request, as it is stored. Match conditions do not see it.
    pub namespace: &'a Json,
}

/// The verdict of a policy on a request.
#[derive(Clone, Debug)]
pub struct PolicyEvaluation {
    /// Whether all match conditions hold. Where they do not, the API server admits the request and evaluates nothing
    /// more. An error if that is unknown.
    pub matched: Result<bool, String>,
    /// The message and the reason of the first validation that failed; none if all hold.
    pub denial: Option<(String, String)>,
    /// Every expression that was evaluated.
    pub evaluations: Vec<Evaluation>,
}

impl CompiledPolicy {
    /// Compiles a policy as this minor of Kubernetes does.
    ///
    /// # Errors
    /// The errors in its expressions, each with the place of the expression in `spec`.
    pub fn new(policy: ValidatingAdmissionPolicy, minor: Minor) -> Result<Self, Vec<(String, Issue)>> {
        let policy = Policy::new(policy, minor, Mode::New);
        let of_expression = |one: &super::expression::Expression| {
            one.issues().iter().map(|issue| (one.path.clone(), issue.clone())).collect::<Vec<_>>()
        };
        let issues: Vec<_> = policy.expressions().flat_map(of_expression).collect();
        if issues.is_empty() { Ok(Self(policy)) } else { Err(issues) }
    }

    /// The place of the expression of a variable in `spec`.
    pub fn variable(&self, name: &str) -> Option<&str> {
        let variable = self.0.variables.iter().find(|variable| variable.name == name)?;
        Some(&variable.expression.path)
    }

    /// Evaluates the policy: the match conditions, and the rest, whether they hold or not. Of the request it reads all
    /// but the objects, which are in `objects`. Only members of `system:masters` are authorized.
    pub fn evaluate(&self, request: &Request, objects: Objects<'_>) -> PolicyEvaluation {
        let variable = request.variable(&request.kind, &request.resource);
        let namespace = if objects.namespace.is_null() { Json::Null } else { namespace::variable(objects.namespace) };
        let inputs = Inputs {
            object: objects.object,
            old_object: objects.old_object,
            request: &variable,
            params: objects.params,
            namespace: &namespace,
            variables: &self.0.variables,
        };
        let of_conditions = Inputs { namespace: &Json::Null, ..inputs };
        let mut evaluations = Vec::new();
        let mut evaluator = Evaluator {
            kind: PolicyKind::Validating,
            policy: &self.0.name,
            binding: "",
            param: None,
            log: &mut evaluations,
        };
        let authority = authority(request, &RecordingAuthorizer::default().into());
        let conditions = &self.0.match_conditions;
        let matched = conditions_match(conditions, true, &of_conditions, &authority, &mut evaluator);
        let Verdict { decisions, .. } = validate_matched(&self.0, &inputs, &authority, &mut evaluator);
        let denial = decisions.into_iter().find_map(|decision| match decision {
            Decision::Admit => None,
            Decision::Deny { message, reason } => Some((message, reason)),
        });
        PolicyEvaluation { matched, denial, evaluations }
    }
}
