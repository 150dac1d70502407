//! The parts of a cluster that tests of policies read in addition to verdicts: the expressions and the results of their
//! parts, the rules that matched a request, and the verdict of a policy with one other expression.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::MatchResources;
use palisade_cel::{Issue, Mode, eval::Watch};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value as Json, json};

use super::{
    Cluster, Operation, PolicyKind, Request, Review,
    expression::{Expression, Variable},
    matching::{self, Trace},
    plugins::{MUTATING_POLICIES, VALIDATING_POLICIES},
    policy::{mutating, validating},
};
use crate::create::create;

/// An expression of a policy that is active.
#[derive(Clone, Copy, Debug)]
pub struct Inspected<'a> {
    /// The kind of the policy.
    pub kind: PolicyKind,
    /// The policy.
    pub policy: &'a str,
    /// The path of the expression: `validations[0].expression`.
    pub path: &'a str,
    /// The name, if it is a variable.
    pub variable: Option<&'a str>,
    /// Its text.
    pub source: &'a str,
    /// The values of its parts in all requests so far; empty if it does not compile, or if the cluster is not
    /// [`watching`](Cluster::watching).
    pub watches: &'a [Arc<Watch>],
}

impl Cluster {
    /// The same cluster, whose policies and definitions remember what the parts of their expressions came to. Holds for
    /// those that are applied from now on; values and costs are the same.
    #[must_use]
    pub fn watching(mut self) -> Self {
        self.watches = true;
        self.kinds_mut().watch();
        self
    }

    /// The same cluster, with another text at these JSON pointers of a CustomResourceDefinition. None if the API server rejects
    /// that definition.
    pub fn with_definition(&self, name: &str, pointers: &[String], text: &str) -> Option<Self> {
        let mut definition = self.object("apiextensions.k8s.io", "CustomResourceDefinition", "", name)?.clone();
        for pointer in pointers {
            *definition.pointer_mut(pointer)? = text.into();
        }
        create(self.minor(), &definition, None).ok()?;
        let mut cluster = self.clone();
        cluster.kinds_mut().add_crd(&definition).ok()?;
        Some(cluster)
    }

    /// The expressions of all policies, bound or not, by the names of the policies; the validating ones first.
    pub fn expressions(&self) -> impl Iterator<Item = Inspected<'_>> {
        let validating = self.all_policies().flat_map(|policy| {
            policy.expressions().map(|one| inspected(PolicyKind::Validating, &policy.name, one, &policy.variables))
        });
        let mutating = self.mutations().all().flat_map(|policy| {
            policy.expressions().map(|one| inspected(PolicyKind::Mutating, &policy.name, one, &policy.variables))
        });
        validating.chain(mutating)
    }

    /// The same cluster, with another text in one policy: an expression, a message or a reason. It shares all else,
    /// also what the expressions of the other policies remember; those of the changed policy remember nothing.
    ///
    /// # Errors
    /// The errors in the expression, or in one that uses it. None if the policy has no such text.
    pub fn with_expression(
        &self,
        kind: PolicyKind,
        policy: &str,
        path: &str,
        source: &str,
    ) -> Result<Self, Vec<Issue>> {
        let mut cluster = self.clone();
        let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
        let issues: Option<Vec<Issue>> = match kind {
            PolicyKind::Validating => {
                let found = self.all_policies().find(|one| one.name == policy);
                let changed = found.and_then(|found| changed(policy, &found.spec, &pointer, source));
                changed.map(|changed| {
                    let changed = validating::Policy::new(changed, self.minor(), Mode::Stored);
                    let issues = issues(changed.expressions());
                    cluster.replace_policy(changed);
                    issues
                })
            }
            PolicyKind::Mutating => {
                let found = self.mutations().all().find(|one| one.name == policy);
                let changed = found.and_then(|found| changed(policy, &found.spec, &pointer, source));
                changed.map(|changed| {
                    let changed = mutating::Policy::compile(changed, self.minor(), false);
                    let issues = issues(changed.expressions());
                    cluster.mutations_mut().replace(changed);
                    issues
                })
            }
        };
        match issues {
            Some(issues) if issues.is_empty() => Ok(cluster),
            issues => Err(issues.unwrap_or_default()),
        }
    }

    /// How a request is matched by each policy of a kind, and by each binding of those policies that match it. What
    /// mutating policies are matched with is the object as it was sent, and what validating ones are matched with the
    /// object as those made it.
    pub fn trace(&self, kind: PolicyKind, request: &Request) -> Vec<Trace> {
        let mut traces = Vec::new();
        let plugin = match kind {
            PolicyKind::Validating => VALIDATING_POLICIES,
            PolicyKind::Mutating => MUTATING_POLICIES,
        };
        // Mutating admission has no object of a deletion.
        let asked = (kind == PolicyKind::Validating || request.operation != Operation::Delete)
            && self.plugins().runs_named(plugin, self.minor());
        if matching::is_excluded(&request.resource) || !asked {
            return traces;
        }
        let mut of_policy = |policy: &str, constraints, bindings: Vec<(&str, Option<&MatchResources>)>| {
            let own = matching::trace((kind, policy, None), constraints, request, self);
            let goes_on = own.matched != Some(false);
            traces.push(own);
            for (binding, matched) in bindings.into_iter().filter(|_| goes_on) {
                traces.push(matching::trace((kind, policy, Some(binding)), matched, request, self));
            }
        };
        match kind {
            PolicyKind::Validating => {
                for (policy, bindings) in self.policies() {
                    let bindings = bindings.map(|one| (&*one.name, one.spec.match_resources.as_ref())).collect();
                    of_policy(&policy.name, policy.spec.match_constraints.as_ref(), bindings);
                }
            }
            PolicyKind::Mutating => {
                for (policy, bindings) in self.mutations().policies() {
                    let bindings = bindings.map(|one| (&*one.name, one.spec.match_resources.as_ref())).collect();
                    of_policy(&policy.name, policy.spec.match_constraints.as_ref(), bindings);
                }
            }
        }
        traces
    }
}

impl Cluster {
    /// Whether there are policies.
    pub fn has_policies(&self) -> bool {
        self.all_policies().next().is_some() || self.mutations().all().next().is_some()
    }

    /// The policies without a binding, which the API server never evaluates: the validating ones first.
    pub fn unbound(&self) -> impl Iterator<Item = (PolicyKind, &str)> {
        let bound =
            |name: &str| self.policies().any(|(one, mut bindings)| one.name == name && bindings.next().is_some());
        let validating = self.all_policies().map(|policy| &*policy.name).filter(move |name| !bound(name));
        let mutations = self.mutations();
        let bound = |name: &str| mutations.policies().any(|(one, mut of)| one.name == name && of.next().is_some());
        let mutating = mutations.all().map(|policy| &*policy.name).filter(move |name| !bound(name));
        validating.map(|name| (PolicyKind::Validating, name)).chain(mutating.map(|name| (PolicyKind::Mutating, name)))
    }

    /// How policies and bindings of both kinds matched a request, given its result. `sent` is whether the request has
    /// the object as a client sends it; mutating policies do not see the object of an `AdmissionReview`. If the request
    /// was rejected before validating admission, only mutating policies are in the list.
    pub fn matched(&self, request: &Request, review: &Review, sent: bool) -> Vec<Trace> {
        let mut traces = if sent { self.trace(PolicyKind::Mutating, request) } else { Vec::new() };
        if request.object.is_none() || review.object.is_some() {
            let request = Request { object: review.object.clone(), ..request.clone() };
            traces.extend(self.trace(PolicyKind::Validating, &request));
        }
        traces
    }
}

fn inspected<'a>(
    kind: PolicyKind,
    policy: &'a str,
    expression: &'a Expression,
    variables: &'a [Variable],
) -> Inspected<'a> {
    let variable = variables.iter().find(|variable| variable.expression.path == expression.path);
    Inspected {
        kind,
        policy,
        path: &expression.path,
        variable: variable.map(|variable| &*variable.name),
        source: &expression.source,
        watches: expression.watches(),
    }
}

/// A policy with another text at a pointer in its spec; none if there is no text.
fn changed<P: DeserializeOwned>(name: &str, spec: &impl Serialize, pointer: &str, text: &str) -> Option<P> {
    let mut spec = serde_json::to_value(spec).ok()?;
    *spec.pointer_mut(pointer).filter(|value| value.is_string())? = Json::from(text);
    serde_json::from_value(json!({"metadata": {"name": name}, "spec": spec})).ok()
}

fn issues<'a>(expressions: impl Iterator<Item = &'a Expression>) -> Vec<Issue> {
    expressions.flat_map(|expression| expression.issues().to_vec()).collect()
}
