//! The admission of requests by kube-apiserver: `MutatingAdmissionPolicy` at request time
//! (`k8s.io/apiserver/pkg/admission/plugin/policy/mutating`).

mod json_patch;
mod merge;
mod misfit;
mod patch;
mod schema;
mod value;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use palisade_cel::{quote, schema::Kind};
use serde_json::Value as Json;

use super::{
    Cluster, Denial, Evaluation, PolicyKind, Request,
    authorizer::{RecordingAuthorizer, authority},
    cluster::Stored,
    expression::{Evaluator, Expression, Inputs},
    matching::{self, Matched, unknown_namespace},
    namespace, params,
    plugins::{MUTATING_POLICIES, MUTATING_WEBHOOKS},
    policy::mutating::{Binding, Policy},
    refusal::{MatchError, Stop, internal},
    validate::conditions_match,
    webhook::Webhooks,
};
use crate::objects::Submission;

pub use misfit::{Misfit, MisfitCause, misfits};

/// Why a mutation leaves the object as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Failure {
    /// An error of the policy, which its failure policy is about.
    Policy(String),
    /// An error of the API server itself, whatever the failure policy.
    Internal(String),
    /// Nothing can be said offline.
    NoVerdict(String),
}

/// A policy with a binding and parameters.
type Invocation<'a> = (&'a Policy, &'a Binding, Matched, Option<&'a Stored>);

/// The names of a policy, a binding and parameters.
type Key = (String, String, Option<String>);

/// Goes through the mutating policies, twice if the first time changes something.
pub(crate) struct Mutating<'a> {
    cluster: &'a Cluster,
    request: Request,
    sent: Submission<'a>,
    authorizer: Arc<RecordingAuthorizer>,
    evaluations: &'a mut Vec<Evaluation>,
    /// Those that were asked since something changed, and are asked again if need be.
    invoked: BTreeSet<Key>,
    /// Those to ask again.
    again: BTreeSet<Key>,
}

impl<'a> Mutating<'a> {
    /// For a request with a decoded object. `sent` has its resource and subresource.
    pub fn new(
        cluster: &'a Cluster,
        request: Request,
        sent: Submission<'a>,
        evaluations: &'a mut Vec<Evaluation>,
    ) -> Self {
        let authorizer = Arc::new(RecordingAuthorizer::new(cluster.authorizer()));
        let (invoked, again) = (BTreeSet::new(), BTreeSet::new());
        Self { cluster, request, sent, authorizer, evaluations, invoked, again }
    }

    /// The object after the policies and then the webhook. `between` applies the built-in plugins before the API server
    /// runs these again. Adds the client's warnings.
    ///
    /// # Errors
    /// A denial, or no verdict.
    pub fn run(
        mut self,
        between: impl FnOnce(&Json) -> Result<Json, Stop>,
        warnings: &mut Vec<String>,
    ) -> Result<Option<Json>, Stop> {
        let asked = matches!(self.request.operation.name(), "CREATE" | "UPDATE" | "CONNECT");
        if !asked || matching::is_excluded(&self.request.resource) {
            return Ok(self.request.object);
        }
        let (plugins, minor) = (self.cluster.plugins(), self.cluster.minor());
        let [asks_policies, asks_webhooks] =
            [MUTATING_POLICIES, MUTATING_WEBHOOKS].map(|name| plugins.runs_named(name, minor));
        let mut webhooks = Webhooks::default();
        let by_policies = asks_policies && self.pass(false)?;
        let left = self.request.object.clone();
        let by_webhooks =
            asks_webhooks && webhooks.pass(self.cluster, &mut self.request, self.sent, false, warnings)?;
        if by_policies || by_webhooks {
            if let Some(object) = &self.request.object {
                self.request.object = Some(between(object)?);
            }
            if self.request.object != left {
                self.require();
            }
            if asks_policies {
                self.pass(true)?;
            }
            if asks_webhooks {
                webhooks.pass(self.cluster, &mut self.request, self.sent, true, warnings)?;
            }
        }
        Ok(self.request.object)
    }

    /// Asks all policies; whether they are to be asked again.
    fn pass(&mut self, again: bool) -> Result<bool, Stop> {
        let (mut errors, mut unjudged) = (Vec::new(), Vec::new());
        let invocations = self.invocations(&mut errors, &mut unjudged);
        if let [why, ..] = unjudged.as_slice() {
            return Err(Stop::NoVerdict(why.clone()));
        }
        // Each version in which a policy wants the object is changed by itself, and the last one counts.
        let mut versions: BTreeMap<Kind, Json> = BTreeMap::new();
        if let Some(object) = &self.request.object {
            for (policy, _, matched, _) in &invocations {
                let object = self.cluster.converted(Some(object), &self.request.kind, &matched.kind);
                let object = object.map_err(|error| no_verdict(policy, error))?.into_owned();
                versions.insert(matched.kind.clone(), object);
            }
        }
        let (mut changed, mut last) = (false, None);
        for (policy, binding, matched, param) in &invocations {
            let mut report = |text: String| errors.push(self::error(policy, Some(binding), &text, "Invalid"));
            let key = (policy.name.clone(), binding.name.clone(), param.map(Stored::path));
            let mut object = versions.get(&matched.kind).cloned();
            let before = object.clone();
            let outcome = self.invoke(policy, binding, matched, *param, again, &key, &mut object);
            let Asking { failures, asked } = match outcome {
                Ok(asking) => asking,
                Err(Failure::NoVerdict(why)) => return Err(no_verdict(policy, MatchError::NoVerdict(why))),
                Err(Failure::Internal(text)) => return Err(Stop::Denied(vec![internal(&text)])),
                Err(Failure::Policy(text)) => {
                    report(text);
                    continue;
                }
            };
            failures.into_iter().for_each(&mut report);
            if !asked {
                continue;
            }
            if object.is_some() {
                last = Some(matched.kind.clone());
            }
            if object != before {
                self.require();
                changed = true;
            }
            if let Some(object) = object {
                versions.insert(matched.kind.clone(), object);
            }
            if policy.is_reinvoked() {
                self.invoked.insert(key);
            }
        }
        if let Some(kind) = last
            && let Some(object) = versions.get(&kind)
        {
            self.require();
            changed = true;
            let object = self.cluster.converted(Some(object), &kind, &self.request.kind);
            let object = object.map_err(|error| match error {
                MatchError::NoVerdict(why) | MatchError::Configuration(why) => Stop::NoVerdict(why),
            })?;
            self.request.object = Some(object.into_owned());
        }
        let denials: Vec<Denial> = errors.into_iter().flatten().collect();
        if denials.is_empty() { Ok(changed) } else { Err(Stop::Denied(denials)) }
    }

    /// All that were asked are to be asked again.
    fn require(&mut self) {
        self.again.append(&mut self.invoked);
    }

    fn invocations(&self, errors: &mut Vec<Option<Denial>>, unjudged: &mut Vec<String>) -> Vec<Invocation<'a>> {
        let (cluster, request) = (self.cluster, &self.request);
        let mut found = Vec::new();
        for (policy, bindings) in cluster.mutations().policies() {
            let mut report = |binding: Option<&Binding>, why| match why {
                MatchError::NoVerdict(why) => unjudged.push(format!("policy '{}': {why}", policy.name)),
                MatchError::Configuration(text) => {
                    let what = if binding.is_some() { "binding" } else { "policy" };
                    errors.push(error(policy, binding, &format!("failed to configure {what}: {text}"), "Forbidden"));
                }
            };
            let matched = match matching::matches(policy.spec.match_constraints.as_ref(), request, cluster) {
                Ok(Some(matched)) => matched,
                Ok(None) => continue,
                Err(why) => {
                    report(None, why);
                    continue;
                }
            };
            let scope = match params::scope(policy.spec.param_kind.as_ref(), cluster) {
                Ok(scope) => scope,
                Err(why) => {
                    report(None, why);
                    continue;
                }
            };
            for binding in bindings {
                match matching::matches(binding.spec.match_resources.as_ref(), request, cluster) {
                    Ok(Some(_)) => {}
                    Ok(None) => continue,
                    Err(why) => {
                        report(Some(binding), why);
                        continue;
                    }
                }
                let reference = binding.spec.param_ref.as_ref();
                match params::collect(scope.as_ref(), reference, &request.namespace, cluster) {
                    Ok(params) => {
                        found.extend(params.into_iter().map(|param| (policy, binding, matched.clone(), param)));
                    }
                    Err(why) => report(Some(binding), why),
                }
            }
        }
        found
    }

    /// Lets a policy change the object.
    #[expect(clippy::too_many_arguments, reason = "an invocation and its object")]
    fn invoke(
        &mut self,
        policy: &Policy,
        binding: &Binding,
        matched: &Matched,
        param: Option<&Stored>,
        again: bool,
        key: &Key,
        object: &mut Option<Json>,
    ) -> Result<Asking, Failure> {
        if let Some(MatchError::NoVerdict(why)) = policy.expressions().find_map(Expression::unsupported) {
            return Err(Failure::NoVerdict(why));
        }
        let unknown = |error| match error {
            MatchError::NoVerdict(why) | MatchError::Configuration(why) => Failure::NoVerdict(why),
        };
        let cluster = self.cluster;
        let (kind, request) = (&matched.kind, &self.request);
        let old_object = cluster.converted(request.old_object.as_ref(), &request.kind, kind).map_err(unknown)?;
        let params = match (param, policy.spec.param_kind.as_ref()) {
            (Some(stored), Some(wanted)) => cluster.param(stored, wanted).map_err(unknown)?,
            _ => std::borrow::Cow::Owned(Json::Null),
        };
        let namespace = self.namespace(policy).map_err(unknown)?;
        let of_conditions = request.variable(kind, &request.resource);
        let of_mutations = request.variable(kind, &matched.resource);
        let authority = authority(request, &self.authorizer);
        let mut evaluator = Evaluator {
            kind: PolicyKind::Mutating,
            policy: &policy.name,
            binding: &binding.name,
            param: key.2.as_deref(),
            log: self.evaluations,
        };
        let null = Json::Null;
        let current = object.clone().unwrap_or_default();
        let inputs = Inputs {
            object: &current,
            old_object: &old_object,
            request: &of_conditions,
            params: &params,
            namespace: &null,
            variables: &policy.variables,
        };
        let conditions = &policy.match_conditions;
        let holds = conditions_match(conditions, policy.fails_closed(), &inputs, &authority, &mut evaluator);
        answered(&self.authorizer)?;
        if !holds.map_err(Failure::Policy)? || (again && !self.again.contains(key)) {
            return Ok(Asking::default());
        }
        let mut failures = Vec::new();
        for mutation in &policy.mutations {
            let Some(current) = object.clone() else { continue };
            let inputs = Inputs { object: &current, request: &of_mutations, namespace: &namespace, ..inputs };
            let patched = patch::patch(mutation, &inputs, &authority, &mut evaluator, cluster, kind);
            answered(&self.authorizer)?;
            let patched = patched.and_then(|patched| patch::receive(mutation, &patched, &self.sent, kind, cluster));
            match patched {
                Ok(patched) => *object = Some(patched),
                Err(Failure::Policy(text)) => failures.push(text),
                Err(other) => return Err(other),
            }
        }
        Ok(Asking { failures, asked: true })
    }

    /// The variable `namespaceObject`, as validating policies have it.
    fn namespace(&self, policy: &Policy) -> Result<Json, MatchError> {
        let Kind { group, version, kind } = &self.request.kind;
        if self.request.namespace.is_empty()
            || (group.as_str(), version.as_str(), kind.as_str()) == ("", "v1", "Namespace")
        {
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
}

/// The result of evaluating a policy.
#[derive(Debug, Default)]
struct Asking {
    /// Errors of its mutations; mutations after a failed one are nevertheless applied.
    failures: Vec<String>,
    /// Whether its conditions hold, and it was its turn.
    asked: bool,
}

fn answered(authorizer: &RecordingAuthorizer) -> Result<(), Failure> {
    match authorizer.take_unanswered() {
        Some(question) => Err(Failure::NoVerdict(format!("it is not known {question}, which the policy asks"))),
        None => Ok(()),
    }
}

fn no_verdict(policy: &Policy, error: MatchError) -> Stop {
    match error {
        MatchError::NoVerdict(why) | MatchError::Configuration(why) => {
            Stop::NoVerdict(format!("policy '{}': {why}", policy.name))
        }
    }
}

/// The denial for an error of a policy; none if its failure policy is `Ignore`. The status is always that of
/// Forbidden (`policyDispatcher.Dispatch` in `policy/generic`).
fn error(policy: &Policy, binding: Option<&Binding>, said: &str, reason: &str) -> Option<Denial> {
    let of = match binding {
        Some(binding) => format!("policy '{}' with binding '{}'", policy.name, binding.name),
        None => format!("policy {}", quote(&policy.name)),
    };
    let message = format!("{of} denied request: {said}");
    policy.fails_closed().then(|| Denial {
        policy: policy.name.clone(),
        binding: binding.map(|binding| binding.name.clone()),
        param: None,
        cause: message.clone(),
        message,
        said: said.to_owned(),
        reason: reason.to_owned(),
        code: 403,
        causes: Vec::new(),
    })
}
