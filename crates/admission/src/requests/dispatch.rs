//! The verdict of all policies together on a request (apiserver
//! `pkg/admission/plugin/policy/validating/dispatcher.go`).

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value as Json;

use super::{
    Cluster, Denial, Evaluation, Operation, Outcome, PolicyKind, Request, Review,
    authorizer::{RecordingAuthorizer, authority},
    cluster::Stored,
    expression::{Evaluator, Expression, Inputs},
    matching::{self, Matched, unknown_namespace},
    namespace, params,
    plugins::{self, Phase, PluginRemarks, VALIDATING_POLICIES},
    policy::validating::{Binding, Policy},
    refusal::{MatchError, denial, forbidden},
    validate::{Annotation, Decision, Verdict, validate},
    warnings::Warnings,
};

/// The longest value of an audit annotation, in bytes.
const MAX_ANNOTATION: usize = 10 * 1024;

/// The annotation of bindings with the action `Audit`.
const FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";

/// Goes through the policies.
pub(crate) struct Dispatch<'a> {
    cluster: &'a Cluster,
    request: &'a Request,
    authorizer: Arc<RecordingAuthorizer>,
    denials: Vec<Denial>,
    unjudged: Vec<String>,
    warnings: Warnings,
    audit_annotations: BTreeMap<String, String>,
    evaluations: Vec<Evaluation>,
}

impl<'a> Dispatch<'a> {
    pub fn new(cluster: &'a Cluster, request: &'a Request) -> Self {
        Self {
            cluster,
            request,
            authorizer: Arc::new(RecordingAuthorizer::new(cluster.authorizer())),
            denials: vec![],
            unjudged: vec![],
            warnings: Warnings::default(),
            audit_annotations: BTreeMap::new(),
            evaluations: vec![],
        }
    }

    /// Adds the warnings of earlier stages.
    pub fn warn(&mut self, warnings: &[String]) {
        for warning in warnings {
            self.warnings.add(warning);
        }
    }

    /// The result of the request: the validating plugins run in their order, the policies among them. The first denial
    /// ends it.
    pub fn run(mut self) -> Review {
        if self.plugins(Phase::Before) {
            self.policies();
            // A denial that is known may stand behind something that is not, but not behind another denial.
            if self.denials.is_empty() {
                self.plugins(Phase::After);
            }
        }
        self.review()
    }

    /// The verdict of the policies alone on the request.
    pub fn policies_alone(mut self) -> Review {
        self.policies();
        self.review()
    }

    fn policies(&mut self) {
        let on = self.cluster.plugins().runs_named(VALIDATING_POLICIES, self.cluster.minor());
        if on && !matching::is_excluded(&self.request.resource) {
            for (policy, bindings) in self.cluster.policies() {
                self.policy(policy, bindings);
            }
        }
    }

    /// Asks the other plugins that validate; whether they let the request pass.
    fn plugins(&mut self, phase: Phase) -> bool {
        let request = self.request;
        if request.operation == Operation::Connect {
            // No plugin that is modelled looks at connections.
            return true;
        }
        let attributes = plugins::Attributes { cluster: self.cluster, request, old: request.old_object.as_ref() };
        let mut said = PluginRemarks::default();
        let result = attributes.validate(phase, request.object.as_ref(), &mut said);
        self.warn(&said.warnings);
        for (key, value) in said.annotations {
            self.audit(key, value);
        }
        self.unjudged.extend(said.unjudged);
        match result.map_err(denial) {
            Ok(()) => true,
            Err(Ok(denial)) => {
                self.denials.push(denial);
                false
            }
            Err(Err(why)) => {
                self.unjudged.push(why);
                true
            }
        }
    }

    fn review(self) -> Review {
        let outcome = match (self.denials.is_empty(), self.unjudged.is_empty()) {
            (false, _) => Outcome::Denied(self.denials),
            (true, false) => Outcome::NoVerdict(self.unjudged.join("; ")),
            (true, true) => Outcome::Allowed,
        };
        Review {
            outcome,
            object: self.request.object.clone(),
            mutated: None,
            warnings: self.warnings.into_sent(),
            audit_annotations: self.audit_annotations,
            evaluations: self.evaluations,
        }
    }

    fn policy<'b>(&mut self, policy: &Policy, bindings: impl Iterator<Item = &'b Binding>) {
        let matched = match matching::matches(policy.spec.match_constraints.as_ref(), self.request, self.cluster) {
            Ok(Some(matched)) => matched,
            Ok(None) => return,
            Err(error) => return self.error(policy, None, error),
        };
        let scope = match params::scope(policy.spec.param_kind.as_ref(), self.cluster) {
            Ok(scope) => scope,
            Err(error) => return self.error(policy, None, error),
        };
        let mut published: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for binding in bindings {
            match matching::matches(binding.spec.match_resources.as_ref(), self.request, self.cluster) {
                Ok(Some(_)) => {}
                Ok(None) => continue,
                Err(error) => {
                    self.error(policy, Some(binding), error);
                    continue;
                }
            }
            let reference = binding.spec.param_ref.as_ref();
            let found = params::collect(scope.as_ref(), reference, &self.request.namespace, self.cluster);
            let found = match found {
                Ok(found) => found,
                Err(error) => {
                    self.error(policy, Some(binding), error);
                    continue;
                }
            };
            let mut judge = || {
                found.iter().map(|param| self.judge(policy, binding, &matched, *param)).collect::<Result<Vec<_>, _>>()
            };
            match judge() {
                Ok(verdicts) => {
                    for (param, verdict) in found.iter().zip(verdicts) {
                        let param = param.map(Stored::path);
                        self.follow(policy, binding, param.as_deref(), verdict, &mut published);
                    }
                }
                Err(error) => self.error(policy, Some(binding), error),
            }
        }
        for (key, values) in published {
            self.audit(format!("{}/{key}", policy.name), values.join(", "));
        }
    }

    /// Evaluates a policy with one set of parameters.
    fn judge(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        matched: &Matched,
        param: Option<&Stored>,
    ) -> Result<Verdict, MatchError> {
        if let Some(error) = policy.expressions().find_map(Expression::unsupported) {
            return Err(error);
        }
        let kind = &matched.kind;
        let object = self.cluster.converted(self.request.object.as_ref(), &self.request.kind, kind)?;
        let old_object = self.cluster.converted(self.request.old_object.as_ref(), &self.request.kind, kind)?;
        let params = match (param, policy.spec.param_kind.as_ref()) {
            (Some(stored), Some(wanted)) => self.cluster.param(stored, wanted)?,
            _ => std::borrow::Cow::Owned(Json::Null),
        };
        let namespace = self.namespace(policy)?;
        let request = self.request.variable(kind, &matched.resource);
        let of_conditions = self.request.variable(kind, &self.request.resource);
        let inputs = Inputs {
            object: &object,
            old_object: &old_object,
            request: &request,
            params: &params,
            namespace: &namespace,
            variables: &policy.variables,
        };
        let of_conditions = Inputs { request: &of_conditions, namespace: &Json::Null, ..inputs };
        let param = param.map(Stored::path);
        let mut evaluator = Evaluator {
            kind: PolicyKind::Validating,
            policy: &policy.name,
            binding: &binding.name,
            param: param.as_deref(),
            log: &mut self.evaluations,
        };
        let authority = authority(self.request, &self.authorizer);
        let verdict = validate(policy, &inputs, &of_conditions, &authority, &mut evaluator);
        match self.authorizer.take_unanswered() {
            Some(question) => Err(MatchError::NoVerdict(format!("it is not known {question}, which the policy asks"))),
            None => Ok(verdict),
        }
    }

    /// The variable `namespaceObject`: null for what is in no namespace, and for namespaces themselves.
    fn namespace(&self, policy: &Policy) -> Result<Json, MatchError> {
        let kind = &self.request.kind;
        let is_namespace = kind.group.is_empty() && kind.version == "v1" && kind.kind == "Namespace";
        if self.request.namespace.is_empty() || is_namespace {
            return Ok(Json::Null);
        }
        match self.cluster.namespace(&self.request.namespace) {
            Some(object) => Ok(namespace::variable(object)),
            None if policy.expressions().any(Expression::reads_namespace) => {
                Err(unknown_namespace(&self.request.namespace))
            }
            None => Ok(Json::Null),
        }
    }

    /// Does what a binding says that follows.
    fn follow(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        param: Option<&str>,
        verdict: Verdict,
        published: &mut BTreeMap<String, Vec<String>>,
    ) {
        for (index, decision) in verdict.decisions.into_iter().enumerate() {
            let Decision::Deny { message, reason } = decision else { continue };
            for action in &binding.spec.validation_actions {
                match action.as_str() {
                    "Deny" => self.deny(policy, Some(binding), param, &message, &reason),
                    "Audit" => self.audit(FAILURE.to_owned(), failure(binding, index, &message)),
                    "Warn" => self.warnings.add(&format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                        policy.name, binding.name
                    )),
                    _ => {}
                }
            }
        }
        for annotation in verdict.annotations {
            match annotation {
                Annotation::Publish { key, value } => {
                    let (value, values) = (shortened(&value), published.entry(key).or_default());
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                // Whatever the actions of the binding are.
                Annotation::Error(error) => self.deny(policy, Some(binding), param, &error, ""),
                Annotation::Exclude => {}
            }
        }
    }

    fn error(&mut self, policy: &Policy, binding: Option<&Binding>, error: MatchError) {
        match error {
            MatchError::NoVerdict(why) => self.unjudged.push(format!("policy '{}': {why}", policy.name)),
            MatchError::Configuration(_) if !policy.fails_closed() => {}
            // A denial, whatever the actions of the binding are.
            MatchError::Configuration(text) => {
                let what = if binding.is_some() { "binding" } else { "policy" };
                self.deny(policy, binding, None, &format!("failed to configure {what}: {text}"), "");
            }
        }
    }

    fn deny(&mut self, policy: &Policy, binding: Option<&Binding>, param: Option<&str>, said: &str, reason: &str) {
        let with = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        let cause = format!("ValidatingAdmissionPolicy '{}'{with} denied request: {said}", policy.name);
        let reason = if reason.is_empty() { "Invalid" } else { reason };
        self.denials.push(Denial {
            policy: policy.name.clone(),
            binding: binding.map(|binding| binding.name.clone()),
            param: param.map(str::to_owned),
            message: forbidden(self.request, &cause),
            said: said.to_owned(),
            cause,
            reason: reason.to_owned(),
            code: code(reason),
            causes: Vec::new(),
        });
    }

    /// Annotations that the audit event already has are kept
    /// (`AddAnnotation` in apiserver `pkg/admission/attributes.go`).
    fn audit(&mut self, key: String, value: String) {
        self.audit_annotations.entry(key).or_insert(value);
    }
}

/// The HTTP status of a reason (`reasonToCode` in `policy_decision.go`).
fn code(reason: &str) -> u16 {
    match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    }
}

/// The value of the annotation of a failed validation, as Go's `encoding/json` writes it (`ValidationFailureValue`).
fn failure(binding: &Binding, index: usize, message: &str) -> String {
    let text = |text: &str| Json::from(text).to_string();
    let actions: Vec<_> = binding.spec.validation_actions.iter().map(|action| text(action)).collect();
    let value = format!(
        r#"[{{"message":{},"policy":{},"binding":{},"expressionIndex":{index},"validationActions":[{}]}}]"#,
        text(message),
        text(&binding.spec.policy_name),
        text(&binding.name),
        actions.join(",")
    );
    let escapes =
        [('<', "\\u003c"), ('>', "\\u003e"), ('&', "\\u0026"), ('\u{2028}', "\\u2028"), ('\u{2029}', "\\u2029")];
    escapes.into_iter().fold(value, |value, (from, to)| value.replace(from, to))
}

/// A value, truncated to `MAX_ANNOTATION` bytes. If a character is cut, its remaining bytes are written as JSON writes
/// bytes that are not UTF-8.
fn shortened(value: &str) -> String {
    if value.len() <= MAX_ANNOTATION {
        return value.to_owned();
    }
    let end = value.floor_char_boundary(MAX_ANNOTATION);
    value[..end].to_owned() + &"\u{fffd}".repeat(MAX_ANNOTATION - end)
}
