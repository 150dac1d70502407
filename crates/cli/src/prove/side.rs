//! A profile that is compared: its expressions, and policies that evaluate requests.

use k8s_openapi::api::admissionregistration::v1::Variable;
use palisade_api::{
    Diagnostic, ToolSecurityProfile,
    names::{self, Shape},
};
use palisade_cel::Minor;
use palisade_gate::{PORTABLE, Validator};
use palisade_kube_json::json::merge;
use palisade_prove::{Policy, question::expression};
use serde_json::{Value as Json, json};

use super::args::{ProveArgs, StandardsLevel};
use crate::{
    cluster::could_not_run,
    place::Place,
    profiles::{self, Accepted},
    report::{Failure, Problem},
};

/// The prefix of the expression of `--never` in a check that is violated where the expression is true.
const NOT: &str = "!(";

/// A version of a profile, or a statement about it.
pub struct Side {
    /// Its place, with the name of the profile if there are several, or the statement.
    pub name: String,
    /// The profile.
    pub accepted: Accepted,
    /// The expressions of its policies.
    pub expressions: Vec<Policy>,
    /// Its policies.
    pub policies: Vec<Validator>,
    /// A pod that it admits.
    pub complying: Json,
}

impl Side {
    /// The profiles of a file or directory.
    pub fn all(place: &Place, version: Minor) -> Result<Vec<Self>, Failure> {
        // A name without a slash is one in the cluster elsewhere.
        let named = Place::Path(place.to_string());
        let files = if matches!(place, Place::Cluster { .. }) { &named } else { place };
        let accepted = files.in_files().transpose()?.unwrap_or_default();
        let is_only = accepted.len() == 1;
        let side = |one: Accepted| {
            let name = if is_only { place.to_string() } else { format!("{} in {place}", one.checked.profile) };
            Self::new(name, one, version)
        };
        accepted.into_iter().map(side).collect()
    }

    /// The profile that denies exactly the pods that refute a statement about this profile.
    pub fn of_statement(&self, args: &ProveArgs, version: Minor) -> Result<Self, Failure> {
        let own = &self.accepted.profile;
        let (name, settings) = match (&args.implies, &args.never) {
            (Some(StandardsLevel { level, version }), _) => {
                (format!("implies {level}@{version}"), json!({"baseline": level, "baselineVersion": version}))
            }
            (None, never) => {
                let never = never.as_deref().unwrap_or_default();
                // Alone, too: parentheses could close those around it.
                expression(never).ok_or_else(|| {
                    could_not_run(format!("--never: {never:?} is not a CEL expression; it must be one of type bool"))
                })?;
                let check = json!({
                    "id": "never", "expression": format!("{NOT}{never})"), "message": "the expression is true",
                });
                (
                    format!("never admits {never}"),
                    json!({
                        "baseline": "Privileged", "customChecks": [check], "parameters": own.spec.parameters,
                    }),
                )
            }
        };
        // An expression that reads the pod as `object` has no meaning for a workload.
        let mut spec = json!({
            "namespaceSelector": own.spec.namespace_selector, "enforcement": {"pods": "Deny", "workloads": "Off"},
        });
        merge(&mut spec, &settings);
        let spec = serde_json::from_value(spec).map_err(|error| could_not_run(error.to_string()))?;
        let profile = ToolSecurityProfile::new(&self.accepted.checked.profile, spec);
        let accepted = profiles::checked(profile, PORTABLE, &of_option).map_err(Failure::CouldNotRun)?;
        Self::new(name, accepted, version)
    }

    /// A profile with this name in answers.
    pub fn new(name: String, accepted: Accepted, version: Minor) -> Result<Self, Failure> {
        let accepted = profiles::on(vec![accepted], version).map_err(Failure::fatal)?.remove(0);
        // Without the fast path: it has the same verdicts.
        let bundle = accepted.checked.bundle.clone().in_full();
        let (mut expressions, mut policies) = (Vec::new(), Vec::new());
        for (_, pair) in bundle.judging(Shape::Pods) {
            let Some(spec) = &pair.policy.spec else { continue };
            let variables = spec.variables.iter().flatten().map(|one| (&*one.name, without_bounds(one)));
            let validations = spec.validations.iter().flatten().map(|one| &*one.expression);
            let parsed = Policy::parse(variables, [], validations);
            expressions.push(parsed.ok_or_else(|| could_not_run(format!("{name}: an expression does not parse")))?);
            let validator = Validator::new(&pair.policy);
            policies.push(validator.map_err(|errors| could_not_run(format!("{name}: {errors:?}")))?);
        }
        let complying = accepted.checked.probes.compliant.pod.clone();
        Ok(Self { name, accepted, expressions, policies, complying })
    }

    /// The requests that are compared, as a policy: of any namespace but that of probes, and with parameters in their
    /// ranges, because the controller writes no others.
    ///
    /// `reads_parameters`: whether a policy that is compared has parameters.
    pub fn assumptions(&self, reads_parameters: bool) -> Option<Policy> {
        let outside = format!("request.namespace != '{}'", names::PROBE_NAMESPACE);
        let parameters = self.accepted.profile.spec.parameters.iter().filter(|_| reads_parameters);
        let ranges = parameters.flat_map(|parameter| {
            let name = &parameter.name;
            let bounds = [("<", parameter.minimum), (">", parameter.maximum)];
            bounds.into_iter().filter_map(move |(beyond, bound)| {
                let bound = bound?;
                Some(format!("params == null || !(params.spec.?integers[?'{name}'].orValue({bound}) {beyond} {bound})"))
            })
        });
        let all: Vec<_> = [outside].into_iter().chain(ranges).collect();
        Policy::parse([], [], all.iter().map(String::as_str))
    }

    /// Whether its policies have parameters.
    pub fn reads_parameters(&self) -> bool {
        self.accepted.checked.probes.params.is_some()
    }
}

/// A mistake in the expression of `--never`, at its place in the option.
fn of_option(diagnostic: &Diagnostic) -> Problem {
    let at = match diagnostic.location.position {
        Some((1, column)) => format!(":1:{}", column.saturating_sub(NOT.len()).max(1)),
        Some((line, column)) => format!(":{line}:{column}"),
        None => String::new(),
    };
    let problem = Problem::new(format!("--never{at}: {}", diagnostic.message));
    diagnostic.help.iter().fold(problem, Problem::help)
}

/// The expression of a variable, as if no list of a pod had more elements than the policy evaluates.
fn without_bounds(variable: &Variable) -> &str {
    match &*variable.name {
        "withinBounds" => "true",
        "overBounds" => "[]",
        _ => &variable.expression,
    }
}
