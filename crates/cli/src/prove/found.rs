//! Pods that one version of a profile admits, and another one denies.

use std::collections::BTreeSet;

use palisade_admission::requests::Operation;
use palisade_api::{catalogue, crd};
use palisade_cel::{
    Minor,
    schema::{Kind, Schemas},
};
use palisade_prove::{
    Answer, Policy, Requests,
    question::expression,
    universe::{self, Type},
};

use super::{example::Example, side::Side};
use crate::{cluster::could_not_run, report::Failure};

/// The types of pods and parameters.
pub struct Types {
    pod: Type,
    params: Type,
}

/// Pods that one version admits, and the other one denies.
pub struct Found {
    /// For each check that differs, a pod.
    pub examples: Vec<Example>,
    /// Why there may be others; `None` if it is proved that no other check differs.
    pub undecided: Option<String>,
}

impl Types {
    pub fn of(version: Minor) -> Result<Self, Failure> {
        let types = || {
            let mut schemas = Schemas::builtin(version).ok()?;
            schemas.add_crd(&serde_json::to_value(crd::params()).ok()?);
            let params = schemas.kinds().find(|kind| kind.kind == "ToolSecurityParams")?.clone();
            let pod = universe::of_kind(&schemas, &Kind::parse("v1/Pod")?)?;
            Some(Self { pod, params: universe::of_kind(&schemas, &params)? })
        };
        types().ok_or_else(|| could_not_run(format!("the schemas of Kubernetes {version} are not known")))
    }

    /// Pods that the first version admits on these operations, and the second one denies.
    pub fn found(&self, admits: &Side, denies: &Side, operations: &[Operation]) -> Found {
        let mut found = Found { examples: Vec::new(), undecided: None };
        let params = (admits.reads_parameters() || denies.reads_parameters()).then_some(&self.params);
        let admitting: Vec<_> =
            admits.expressions.iter().cloned().chain(admits.assumptions(params.is_some())).collect();
        // The checks of which no example is known yet.
        let mut expressions = denies.expressions.clone();
        let mut compared = BTreeSet::new();
        for operation in operations.iter().copied() {
            let asked = match operation {
                Operation::Create => palisade_prove::Operation::Create,
                _ => palisade_prove::Operation::Update,
            };
            let requests = Requests { object: &self.pod, kind: "Pod", operation: asked, params };
            loop {
                let request = match requests.admitted_are_admitted_by(&admitting, &expressions) {
                    Answer::Proved(_) => break,
                    Answer::Unknown(why) => {
                        found.undecided = Some(why);
                        break;
                    }
                    Answer::Counterexample(request) => *request,
                };
                let doubts = request.doubts.iter().cloned().collect::<Vec<_>>().join(", ");
                let Some(example) = Example::confirmed(operation, request, [admits, denies], &compared) else {
                    let why = if doubts.is_empty() { "a found pod was not confirmed".to_owned() } else { doubts };
                    found.undecided = Some(why);
                    break;
                };
                // Each check has a variable with its violations.
                let new: BTreeSet<_> = example.violations.iter().map(|one| one.check.clone()).collect();
                let new: Vec<_> = new.into_iter().filter(|check| compared.insert(check.clone())).collect();
                let mut is_new = false;
                for policy in &mut expressions {
                    is_new |= without_checks(policy, &new);
                }
                found.examples.push(example);
                if !is_new {
                    found.undecided = Some("other checks were not compared".to_owned());
                    break;
                }
            }
        }
        found
    }
}

/// Takes checks out of a policy; false if it has none of them.
fn without_checks(policy: &mut Policy, checks: &[String]) -> bool {
    let mut is_some = false;
    for check in checks {
        // A custom check can have the name of another variable.
        let is_built_in = catalogue::ALL.iter().any(|one| one.id == check);
        let name = if is_built_in { check.clone() } else { format!("custom_{check}") };
        if let (Some(variable), Some(none)) = (policy.variables.get_mut(&name), expression("[]")) {
            *variable = none;
            is_some = true;
        }
    }
    is_some
}
