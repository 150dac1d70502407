//! The offline check: the only way to a [`Checked`].

use std::sync::LazyLock;

use palisade_api::{Diagnostic, ToolSecurityParamsSpec, catalogue};
use palisade_checks::{fixture::Fixture, pod};
use palisade_compiler::{Compiled, Probe};
use serde_json::{Value as Json, json};

use crate::{Checked, Decision, Operation, Policy, Rejected, Request};

/// The pods of all fixtures of the catalogue.
static PODS: LazyLock<Vec<Json>> = LazyLock::new(|| {
    catalogue::ALL
        .iter()
        .flat_map(|check| serde_saphyr::from_str::<Vec<Fixture>>(check.fixtures).unwrap_or_default())
        .map(|fixture| fixture.pod())
        .collect()
});

/// Checks what was compiled.
///
/// # Errors
/// The first kind of mistake that is found: expressions that do not parse or use names that are not there;
/// expressions that fail on a pod; pods that get the wrong verdict.
pub fn check(compiled: Compiled) -> Result<Checked<Compiled>, Rejected> {
    match diagnose(&compiled) {
        diagnostics if diagnostics.is_empty() => Ok(Checked(compiled)),
        diagnostics => Err(Rejected { diagnostics }),
    }
}

fn diagnose(compiled: &Compiled) -> Vec<Diagnostic> {
    let policy = match Policy::new(&compiled.bundle.policy) {
        Ok(policy) => policy,
        Err(diagnostics) => return diagnostics,
    };
    let params = compiled.probes.params.as_ref().map(|spec| json!({"spec": spec}));
    let judge = Judge { policy: &policy, params: params.as_ref() };
    let diagnostics: Vec<_> = PODS.iter().filter_map(|pod| judge.evaluates(pod)).take(5).collect();
    if !diagnostics.is_empty() {
        return diagnostics;
    }
    let mut diagnostics = judge.complies(&compiled.probes.compliant);
    if let Some(probe) = &compiled.probes.violating {
        diagnostics.extend(judge.violates(probe));
    }
    if !compiled.parameters.is_empty() {
        diagnostics.extend(denies_a_problem(&policy));
    }
    diagnostics
}

struct Judge<'a> {
    policy: &'a Policy,
    params: Option<&'a Json>,
}

impl Judge<'_> {
    fn evaluate(
        &self,
        operation: Operation,
        subresource: &str,
        object: &Json,
        old: &Json,
    ) -> Result<Decision, Diagnostic> {
        let (policy, params) = (self.policy, self.params);
        policy.evaluate(&Request { namespace: "tenant", operation, subresource, object, old_object: old, params })
    }

    fn create(&self, pod: &Json) -> Result<Decision, Diagnostic> {
        self.evaluate(Operation::Create, "", pod, &Json::Null)
    }

    /// Every expression evaluates on this pod, in every way that the policy can meet it.
    fn evaluates(&self, pod: &Json) -> Option<Diagnostic> {
        let mut older = pod.clone();
        older["spec"]["activeDeadlineSeconds"] = json!(1);
        let ways = [
            self.create(pod),
            self.evaluate(Operation::Update, "", pod, &older),
            self.evaluate(Operation::Update, "ephemeralcontainers", pod, &older),
        ];
        if let Some(diagnostic) = ways.into_iter().find_map(Result::err) {
            return Some(diagnostic);
        }
        // A pod whose spec does not change passes, whatever it violates.
        match self.evaluate(Operation::Update, "", pod, pod) {
            Ok(Decision::Admit) => None,
            Ok(Decision::Deny { message, .. }) => {
                Some(Diagnostic::new("policy", format!("an update that leaves spec alone is denied: {message}")))
            }
            Err(diagnostic) => Some(diagnostic),
        }
    }

    fn complies(&self, probe: &Probe) -> Vec<Diagnostic> {
        match self.create(&probe.pod) {
            Ok(Decision::Admit) => vec![],
            Ok(Decision::Deny { message, .. }) => vec![
                Diagnostic::new("spec", format!("no pod was found that complies; the closest is denied: {message}"))
                    .help("two settings may contradict each other, or a list may allow nothing"),
            ],
            Err(diagnostic) => vec![diagnostic],
        }
    }

    fn violates(&self, probe: &Probe) -> Option<Diagnostic> {
        let check = probe.check.unwrap_or_default();
        match self.create(&probe.pod) {
            Ok(Decision::Deny { message, .. }) if message.contains(&format!("[{check}]")) => None,
            Ok(decision) => Some(Diagnostic::new(
                "policy",
                format!("a pod that violates {check} is not denied for it: {decision:?}"),
            )),
            Err(diagnostic) => Some(diagnostic),
        }
    }
}

/// A namespace with a missing or malformed parameter denies every pod and says why.
fn denies_a_problem(policy: &Policy) -> Option<Diagnostic> {
    let params = json!({"spec": ToolSecurityParamsSpec::denying("a problem")});
    let judge = Judge { policy, params: Some(&params) };
    match judge.create(&pod::minimal("pod")) {
        Ok(Decision::Deny { message, .. }) if message.contains("a problem") => None,
        Ok(decision) => Some(Diagnostic::new(
            "policy",
            format!("a namespace whose parameters have a problem does not deny for it: {decision:?}"),
        )),
        Err(diagnostic) => Some(diagnostic),
    }
}
