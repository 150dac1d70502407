//! A policy on its own: its verdict on a request, whatever it matches and whichever bindings it has.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use k8s_openapi::{
    api::admissionregistration::v1::ValidatingAdmissionPolicy, apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use palisade_admission::requests::{
    self, BUDGET, CompiledPolicy, Evaluation, MAX_MESSAGE, Objects, Operation, PolicyEvaluation, ResourceId, User,
    completed_namespace,
};
use palisade_api::{Diagnostic, Location};
use palisade_cel::{Issue, Minor, Position, schema::Kind, value::Value};
use palisade_compiler::{VIOLATIONS, violation};
use palisade_kube_json::{json::Change as _, selector};
use serde_json::{Value as Json, json};

use crate::{
    PORTABLE,
    place::{POLICY, in_spec},
};

/// A request for a validating policy to evaluate.
#[derive(Clone, Debug)]
pub struct ValidationRequest<'a> {
    /// The namespace.
    pub namespace: &'a str,
    /// The operation.
    pub operation: Operation,
    /// The kind of the object.
    pub kind: &'a str,
    /// The API group of the resource; `None` for that of the object.
    pub group: Option<&'a str>,
    /// The plural name of the kind; `None` for the usual plural.
    pub resource: Option<&'a str>,
    /// `ephemeralcontainers` or the like; empty for the object itself.
    pub subresource: &'a str,
    /// The name in the path of the request; `None` for that of the object.
    pub name: Option<&'a str>,
    /// The user.
    pub user: &'a str,
    /// The user's groups.
    pub groups: &'a [&'a str],
    /// The object as it would be.
    pub object: &'a Json,
    /// The object as it is; null on creation.
    pub old_object: &'a Json,
    /// The parameters of the namespace, if the policy has some.
    pub params: Option<&'a Json>,
    /// The namespace as an object; `None` for one that has the labels by which the policy selects it, and no others.
    pub namespace_object: Option<&'a Json>,
}

impl<'a> ValidationRequest<'a> {
    /// A user without special rights creates `object` in a namespace `tenant` without parameters.
    pub fn create(kind: &'a str, object: &'a Json) -> Self {
        Self {
            namespace: "tenant",
            operation: Operation::Create,
            kind,
            group: None,
            resource: None,
            subresource: "",
            name: None,
            user: "tenant",
            groups: &["system:authenticated"],
            object,
            old_object: &Json::Null,
            params: None,
            namespace_object: None,
        }
    }

    /// The rest of the request, as the API server would have it.
    fn attributes(&self) -> requests::Request {
        let of = |object: &Json| object["apiVersion"].as_str().unwrap_or_default().to_owned();
        let api_version = of(self.object);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        requests::Request {
            operation: self.operation,
            kind: Kind { group: group.to_owned(), version: version.to_owned(), kind: self.kind.to_owned() },
            resource: ResourceId::new(
                self.group.unwrap_or(group),
                version,
                &self.resource.map_or_else(|| plural(self.kind), str::to_owned),
            ),
            subresource: self.subresource.to_owned(),
            name: self.name.or(self.object["metadata"]["name"].as_str()).unwrap_or_default().to_owned(),
            namespace: self.namespace.to_owned(),
            user: User {
                name: self.user.to_owned(),
                groups: self.groups.iter().map(|&group| group.to_owned()).collect(),
                ..User::default()
            },
            object: None,
            old_object: None,
            dry_run: false,
            options: requests::Request::default_options(self.operation, false),
        }
    }
}

/// The resource of a kind, as Kubernetes and most of its extensions form plurals (`UnsafeGuessKindToResource` in
/// apimachinery `pkg/api/meta/restmapper.go`).
fn plural(kind: &str) -> String {
    let name = kind.to_lowercase();
    match name.as_bytes().last() {
        _ if name == "endpoints" => name,
        Some(b's') => format!("{name}es"),
        Some(b'y') => format!("{}ies", &name[..name.len() - 1]),
        _ => format!("{name}s"),
    }
}

/// A namespace as an API server has it: with these labels and annotations, and with what it gives each.
pub fn namespace(name: &str, labels: &BTreeMap<String, String>, annotations: &BTreeMap<String, String>) -> Json {
    let mut metadata = json!({
        "name": name, "uid": "00000000-0000-4000-8000-000000000000", "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z", "labels": labels,
    });
    // What is empty is left out.
    if !annotations.is_empty() {
        *metadata.at_mut(&["annotations"]) = json!(annotations);
    }
    completed_namespace(json!({"metadata": metadata}))
}

/// The namespace of any tenant whom the policy matches: it has the labels that are demanded, and no others.
pub(crate) fn selected(name: &str, policy: &ValidatingAdmissionPolicy) -> Json {
    tenant(name, selector_of(policy))
}

fn selector_of(policy: &ValidatingAdmissionPolicy) -> Option<&LabelSelector> {
    policy.spec.as_ref()?.match_constraints.as_ref()?.namespace_selector.as_ref()
}

fn tenant(name: &str, selector: Option<&LabelSelector>) -> Json {
    let fixed = BTreeMap::from([("kubernetes.io/metadata.name".to_owned(), name.to_owned())]);
    let labels = selector.and_then(|selector| selector::satisfying(selector, &fixed)).unwrap_or_default();
    namespace(name, &labels, &BTreeMap::new())
}

/// A policy's verdict on a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing is violated.
    Admit,
    /// The first validation that failed.
    Deny {
        /// The message for the user, as text: what it quotes may look like a violation, and its end may be cut off.
        message: String,
        /// The reason in the API server's answer.
        reason: String,
        /// All violations, if the policy was compiled from a profile; other policies have no such list.
        violations: Vec<Violation>,
    },
}

/// One violation of a profile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The id of the check: of the catalogue, of the profile, or of a rule of the policy itself (`bounds`,
    /// `parameters`).
    pub check: String,
    /// The place, the value found and the allowed values.
    pub message: String,
}

impl Violation {
    /// Reads an element of the list.
    fn read(element: &Value<'_>) -> Option<Self> {
        let (check, message) = violation(element.as_str()?)?;
        Some(Self { check: check.to_owned(), message: message.to_owned() })
    }
}

/// A policy's verdict on a request, and the cost of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judgement {
    /// The verdict.
    pub decision: Decision,
    /// Whether its match conditions hold. Where they do not, the API server admits the request and evaluates nothing
    /// more.
    pub matched: bool,
    /// The cost of validations and messages, in the API server's units. A policy may spend [`BUDGET`] on one request.
    pub cost: u64,
    /// The cost of the match conditions, which may spend [`MATCH_CONDITIONS_BUDGET`].
    pub matching: u64,
}

/// A validating policy with all expressions compiled.
#[derive(Debug)]
pub struct Validator {
    policy: CompiledPolicy,
    /// Of the namespaces that it matches.
    selector: Option<LabelSelector>,
    /// The name and the object of the last namespace that it was evaluated in: most requests are in the same.
    last_namespace: Mutex<Option<(String, Arc<Json>)>>,
}

impl Validator {
    /// Compiles a policy: syntax, names, types, results and constants of each expression.
    ///
    /// # Errors
    /// All errors for which the API server would reject the policy, and everything without a verdict.
    pub fn new(policy: &ValidatingAdmissionPolicy) -> Result<Self, Vec<Diagnostic>> {
        Self::on(policy, PORTABLE)
    }

    /// As [`Self::new`], on an API server of a minor.
    pub(crate) fn on(policy: &ValidatingAdmissionPolicy, minor: Minor) -> Result<Self, Vec<Diagnostic>> {
        let selector = selector_of(policy).cloned();
        let compiled = CompiledPolicy::new(policy.clone(), minor);
        compiled
            .map(|policy| Self { policy, selector, last_namespace: Mutex::default() })
            .map_err(|issues| issues.iter().map(|(path, issue)| diagnostic(in_spec(path), issue)).collect())
    }

    /// The policy's verdict on a request.
    ///
    /// # Errors
    /// As [`Self::judge`].
    pub fn evaluate(&self, request: &ValidationRequest<'_>) -> Result<Decision, Diagnostic> {
        self.judge(request).map(|judgement| judgement.decision)
    }

    /// The policy's verdict on a request, and its cost.
    ///
    /// # Errors
    /// More than the API server counts as an error: an expression that fails, whatever `failurePolicy` says; a message
    /// that the API server would not show; a policy over its budget; and match conditions that leave out a request with
    /// a violation, or one on which another expression fails.
    pub fn judge(&self, request: &ValidationRequest<'_>) -> Result<Judgement, Diagnostic> {
        let tenant = self.tenant(request.namespace);
        let objects = Objects {
            object: request.object,
            old_object: request.old_object,
            params: request.params.unwrap_or(&Json::Null),
            namespace: request.namespace_object.unwrap_or(&tenant),
        };
        let PolicyEvaluation { matched, denial, evaluations } = self.policy.evaluate(&request.attributes(), objects);
        let at = || in_spec("matchConditions");
        if let Some(diagnostic) = evaluations.iter().find_map(mistake) {
            // The API server denies a request on which an expression fails, unless the policy does not match it.
            return Err(match matched {
                Ok(false) => {
                    Diagnostic::new(at(), format!("excludes a request on which the policy fails: {diagnostic}"))
                }
                _ => diagnostic,
            });
        }
        let matched = matched.map_err(|error| Diagnostic::new(at(), error))?;
        if let Some((message, _)) = denial.as_ref().filter(|_| !matched) {
            return Err(Diagnostic::new(at(), format!("excludes a request that violates the policy: {message}")));
        }
        let is_condition = |evaluation: &&Evaluation| evaluation.path.starts_with("matchConditions");
        let cost_of = |evaluations: Vec<&Evaluation>| evaluations.iter().map(|evaluation| evaluation.cost).sum();
        let (conditions, others) = evaluations.iter().partition(is_condition);
        let (matching, cost) = (cost_of(conditions), cost_of(others));
        if cost > BUDGET {
            let message = format!("validations and messages cost {cost} of the budget of {BUDGET}");
            return Err(Diagnostic::new(POLICY.at("spec"), message));
        }
        let decision = denial.map_or(Decision::Admit, |(message, reason)| {
            let violations = self.violations(&evaluations);
            Decision::Deny { message, reason, violations }
        });
        Ok(Judgement { decision, matched, cost, matching })
    }

    /// A namespace with this name that the policy matches.
    fn tenant(&self, name: &str) -> Arc<Json> {
        let mut last = self.last_namespace.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, namespace)) if known == name => Arc::clone(namespace),
            _ => {
                let namespace = Arc::new(tenant(name, self.selector.as_ref()));
                *last = Some((name.to_owned(), Arc::clone(&namespace)));
                namespace
            }
        }
    }

    /// The violations in the evaluations.
    fn violations(&self, evaluations: &[Evaluation]) -> Vec<Violation> {
        let path = self.policy.variable(VIOLATIONS);
        let evaluation = path.and_then(|path| evaluations.iter().find(|one| one.path == path));
        match evaluation.map(|evaluation| &evaluation.result) {
            Some(Ok(Value::List(list))) => list.iter().filter_map(|element| Violation::read(&element)).collect(),
            _ => Vec::new(),
        }
    }
}

/// The error of an evaluation. The failure of a variable is not reported: the expression that uses the variable fails,
/// too.
fn mistake(evaluation: &Evaluation) -> Option<Diagnostic> {
    if evaluation.path.starts_with("variables") {
        return None;
    }
    let at = || in_spec(&evaluation.path);
    let text = match &evaluation.result {
        Err(error) => return Some(Diagnostic::new(at(), format!("evaluation failed: {error}"))),
        Ok(Value::String(text)) if evaluation.path.ends_with("messageExpression") => text.trim(),
        Ok(_) => return None,
    };
    let dropped = text.contains('\n') || text.len() > MAX_MESSAGE || text.is_empty();
    dropped
        .then(|| Diagnostic::new(at(), format!("evaluation failed: the API server would drop this message: {text:?}")))
}

/// An error in the expression at a location.
pub(crate) fn diagnostic(expression: Location, issue: &Issue) -> Diagnostic {
    let Position { line, column } = issue.position;
    let position = (issue.position != Position::NONE).then_some((line, column));
    let diagnostic = Diagnostic::new(Location { position, ..expression }, issue.message.clone());
    match &issue.help {
        Some(help) => diagnostic.help(help.clone()),
        None => diagnostic,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The namespace of the last request is kept, and is no other request's.
    #[test]
    fn each_request_is_evaluated_with_its_own_namespace() {
        let policy = serde_json::from_value(json!({
            "metadata": {"name": "test"},
            "spec": {
                "matchConstraints": {"namespaceSelector": {"matchLabels": {"tenancy": "tool"}}},
                "validations": [{
                    "expression": "namespaceObject.metadata.name == request.namespace \
                        && namespaceObject.metadata.labels['kubernetes.io/metadata.name'] == request.namespace \
                        && namespaceObject.metadata.labels.tenancy == 'tool'",
                }],
            },
        }))
        .unwrap();
        let validator = Validator::new(&policy).unwrap();
        let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
        for namespace in ["a", "b", "b", "a"] {
            let request = ValidationRequest { namespace, ..ValidationRequest::create("Pod", &pod) };
            assert_eq!(validator.evaluate(&request), Ok(Decision::Admit), "{namespace}");
        }
        let other = namespace("other", &BTreeMap::new(), &BTreeMap::new());
        let request = ValidationRequest {
            namespace: "a",
            namespace_object: Some(&other),
            ..ValidationRequest::create("Pod", &pod)
        };
        assert!(matches!(validator.evaluate(&request), Ok(Decision::Deny { .. })));
    }
}
