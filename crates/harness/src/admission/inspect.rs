//! What tests of policies ask of a cluster besides verdicts: which expressions there are and what their parts came to,
//! which rules a request was matched by, and what a policy with one other expression would say.

use std::sync::Arc;

use palisade_cel::{Issue, Mode, eval::Watch};
use serde_json::{Value as Json, json};

use super::{Cluster, Request, matching, policy::Policy};

/// An expression of a policy that is in force.
#[derive(Clone, Copy, Debug)]
pub struct Inspected<'a> {
    /// The policy.
    pub policy: &'a str,
    /// Where the expression stands: `validations[0].expression`.
    pub path: &'a str,
    /// The name, if it is a variable.
    pub variable: Option<&'a str>,
    /// Its text.
    pub source: &'a str,
    /// What its parts came to in all requests so far; nothing if it does not compile, or if the cluster is not
    /// [`watching`](Cluster::watching).
    pub watches: &'a [Arc<Watch>],
}

/// How a request was matched by what a policy or a binding says of requests (`matchConstraints`, `matchResources`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The policy.
    pub policy: String,
    /// The binding; none for the policy's own `matchConstraints`.
    pub binding: Option<String>,
    /// Whether it matched. None if that is not known.
    pub matched: Option<bool>,
    /// Which of `resourceRules` fit, by their index.
    pub rules: Vec<usize>,
    /// Which of `excludeResourceRules` fit.
    pub excludes: Vec<usize>,
    /// What `namespaceSelector` said, if there is one.
    pub namespace_selector: Option<bool>,
    /// What `objectSelector` said, if there is one.
    pub object_selector: Option<bool>,
}

impl Cluster {
    /// The same cluster, whose policies remember what the parts of their expressions came to. Holds for policies that
    /// are applied from now on; values and costs are the same.
    #[must_use]
    pub fn watching(mut self) -> Self {
        self.watches = true;
        self
    }

    /// The expressions of all policies, bound or not, by the names of the policies.
    pub fn expressions(&self) -> impl Iterator<Item = Inspected<'_>> {
        self.all_policies().flat_map(|policy| {
            let variable = |path: &str| policy.variables.iter().find(|variable| variable.expression.path == path);
            policy.expressions().map(move |expression| Inspected {
                policy: &policy.name,
                path: &expression.path,
                variable: variable(&expression.path).map(|variable| &*variable.name),
                source: &expression.source,
                watches: expression.watches(),
            })
        })
    }

    /// The same cluster, with another expression in the place of one. All else is shared, also what is remembered of
    /// the other policies' expressions; the changed policy remembers nothing.
    ///
    /// # Errors
    /// What is wrong with the expression, or with one that uses it. Nothing is, if there is no such expression.
    pub fn with_expression(&self, policy: &str, path: &str, source: &str) -> Result<Self, Vec<Issue>> {
        let found = self.all_policies().find(|one| one.name == policy);
        let changed = found.and_then(|found| {
            let mut spec = serde_json::to_value(&found.spec).ok()?;
            let pointer = format!("/{}", path.replace(['.', '['], "/").replace(']', ""));
            *spec.pointer_mut(&pointer)? = Json::from(source);
            let changed = json!({"metadata": {"name": policy}, "spec": spec});
            Some(Policy::new(serde_json::from_value(changed).ok()?, self.minor(), Mode::Stored))
        });
        let Some(changed) = changed else { return Err(Vec::new()) };
        let issues: Vec<_> = changed.expressions().flat_map(|expression| expression.issues().to_vec()).collect();
        if !issues.is_empty() {
            return Err(issues);
        }
        let mut cluster = self.clone();
        cluster.replace_policy(changed);
        Ok(cluster)
    }

    /// How a request is matched by each policy, and by each binding of those policies that match it.
    pub fn trace(&self, request: &Request) -> Vec<Trace> {
        let mut traces = Vec::new();
        if matching::is_excluded(&request.resource) {
            return traces;
        }
        for (policy, bindings) in self.policies() {
            let own = matching::trace(policy.spec.match_constraints.as_ref(), request, self);
            let goes_on = own.matched != Some(false);
            traces.push(Trace { policy: policy.name.clone(), ..own });
            for binding in bindings.filter(|_| goes_on) {
                let of = matching::trace(binding.spec.match_resources.as_ref(), request, self);
                traces.push(Trace { policy: policy.name.clone(), binding: Some(binding.name.clone()), ..of });
            }
        }
        traces
    }
}
