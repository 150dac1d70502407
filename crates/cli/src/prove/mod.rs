//! `palisade prove`: whether a change of a profile newly admits or denies a pod, for all pods.

mod args;
mod example;

use std::{collections::BTreeSet, fmt::Write as _};

pub use args::ProveArgs;
use k8s_openapi::api::admissionregistration::v1::Variable;
use palisade_admission::requests::Operation;
use palisade_api::{catalogue, crd, names::Shape};
use palisade_cel::{
    Minor,
    schema::{Kind, Schemas},
};
use palisade_gate::Validator;
use palisade_prove::{
    Answer, Policy, Requests,
    question::expression,
    universe::{self, Type},
};
use serde_json::{Value as Json, json};

use self::{
    args::ProveFormat,
    example::{Example, Policies},
};
use crate::{
    cluster::could_not_run,
    output,
    place::Place,
    profiles::{self, Accepted},
    report::Failure,
};

/// Runs the command.
pub fn run(args: &ProveArgs) -> Result<(), Failure> {
    let version = args.kube_version.unwrap_or(Minor::DEFAULT);
    let [before, after] = [&args.before, &args.after].map(|place| Side::read(place, version));
    let (before, after) = (before?, after?);
    if before.accepted.profile.spec.parameters != after.accepted.profile.spec.parameters {
        return Err(could_not_run(
            "spec.parameters differ, so that namespaces have other values: only profiles with the \
                                  same parameters can be compared",
        ));
    }
    let types = Types::of(version)?;
    let change = Change { admitted: types.found(&after, &before), denied: types.found(&before, &after) };
    output::print(&match args.output {
        ProveFormat::Human => change.text(&before, &after, version),
        ProveFormat::Json => change.json(&before, &after, version),
    })?;
    match &change.admitted {
        found if !found.examples.is_empty() => Err(Failure::Wrong(Vec::new())),
        Found { undecided: Some(why), .. } => {
            Err(could_not_run(format!("not decided whether a pod is newly admitted: {why}")))
        }
        Found { undecided: None, .. } => Ok(()),
    }
}

/// A version of the profile.
struct Side {
    name: String,
    accepted: Accepted,
    expressions: Vec<Policy>,
    policies: Policies,
    /// A pod that it admits.
    complying: Json,
}

impl Side {
    fn read(place: &Place, version: Minor) -> Result<Self, Failure> {
        let accepted =
            place.in_files().ok_or_else(|| could_not_run(format!("{place} must be a file, or git:REF:PATH")))?;
        let mut accepted = profiles::on(accepted?, version).map_err(Failure::fatal)?;
        let (Some(accepted), true) = (accepted.pop(), accepted.is_empty()) else {
            return Err(could_not_run(format!("{place} must have one profile")));
        };
        // Without the fast path: it has the same verdicts.
        let bundle = accepted.checked.bundle.clone().in_full();
        let (mut expressions, mut policies) = (Vec::new(), Vec::new());
        for (_, pair) in bundle.judging(Shape::Pods) {
            let Some(spec) = &pair.policy.spec else { continue };
            let variables = spec.variables.iter().flatten().map(|one| (&*one.name, without_bounds(one)));
            let validations = spec.validations.iter().flatten().map(|one| &*one.expression);
            let parsed = Policy::parse(variables, [], validations);
            expressions.push(parsed.ok_or_else(|| could_not_run(format!("{place}: an expression does not parse")))?);
            let validator = Validator::new(&pair.policy);
            policies.push(validator.map_err(|errors| could_not_run(format!("{place}: {errors:?}")))?);
        }
        let complying = accepted.checked.probes.compliant.pod.clone();
        Ok(Self { name: place.to_string(), accepted, expressions, policies: Policies(policies), complying })
    }

    fn reads_parameters(&self) -> bool {
        self.accepted.checked.probes.params.is_some()
    }
}

/// The expression of a variable, as if no list of a pod had more elements than the policy evaluates.
fn without_bounds(variable: &Variable) -> &str {
    match &*variable.name {
        "withinBounds" => "true",
        "overBounds" => "[]",
        _ => &variable.expression,
    }
}

/// The types of pods and parameters.
struct Types {
    pod: Type,
    params: Type,
}

/// Pods that one version admits, and the other one denies.
struct Found {
    /// For each check that differs, a pod.
    examples: Vec<Example>,
    /// Why there may be others; `None` if it is proved that no other check differs.
    undecided: Option<String>,
}

impl Types {
    fn of(version: Minor) -> Result<Self, Failure> {
        let types = || {
            let mut schemas = Schemas::builtin(version).ok()?;
            schemas.add_crd(&serde_json::to_value(crd::params()).ok()?);
            let params = schemas.kinds().find(|kind| kind.kind == "ToolSecurityParams")?.clone();
            let pod = universe::of_kind(&schemas, &Kind::parse("v1/Pod")?)?;
            Some(Self { pod, params: universe::of_kind(&schemas, &params)? })
        };
        types().ok_or_else(|| could_not_run(format!("the schemas of Kubernetes {version} are not known")))
    }

    /// Pods that the first version admits, and the second one denies.
    fn found(&self, admits: &Side, denies: &Side) -> Found {
        let mut found = Found { examples: Vec::new(), undecided: None };
        let params = (admits.reads_parameters() || denies.reads_parameters()).then_some(&self.params);
        // The checks of which no example is known yet.
        let mut expressions = denies.expressions.clone();
        let mut compared = BTreeSet::new();
        for (operation, asked) in [
            (Operation::Create, palisade_prove::Operation::Create),
            (Operation::Update, palisade_prove::Operation::Update),
        ] {
            let requests = Requests { object: &self.pod, kind: "Pod", operation: asked, params };
            loop {
                let request = match requests.admitted_are_admitted_by(&admits.expressions, &expressions) {
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

/// The difference of two versions.
struct Change {
    admitted: Found,
    denied: Found,
}

impl Change {
    fn name(&self) -> &'static str {
        let is_some = |found: &Found| !found.examples.is_empty();
        match (is_some(&self.admitted), is_some(&self.denied)) {
            (true, true) => "both",
            _ if self.admitted.undecided.is_some() || self.denied.undecided.is_some() => "undecided",
            (false, false) => "equivalent",
            (false, true) => "tightening",
            (true, false) => "loosening",
        }
    }

    fn text(&self, before: &Side, after: &Side, version: Minor) -> String {
        let verdict = match self.name() {
            "equivalent" => "the same pods are admitted",
            "tightening" => "a tightening",
            "loosening" => "a loosening",
            "both" => "a loosening and a tightening",
            _ => "not decided",
        };
        let mut text = format!("{} -> {}: {verdict}\n", before.name, after.name);
        for (what, found) in [("newly admitted", &self.admitted), ("newly denied", &self.denied)] {
            if found.examples.is_empty() && found.undecided.is_none() {
                let _ = writeln!(text, "\n{what}: no pod (proved)");
            }
            for example in &found.examples {
                let _ = writeln!(text, "\n{what}: pods such as this one ({})", example.operation.name());
                text.push_str(&shown(example));
            }
            if let Some(why) = &found.undecided {
                let _ = writeln!(text, "\n{what}: not decided: {why}");
            }
        }
        let _ = writeln!(
            text,
            "\nFor pods of any size with the fields of Kubernetes {version}, created or updated by any user, and all values of \
             parameters, at the stage Deny. Not compared: mutation, stages, selected namespaces, limits of lists (check bounds), workloads, other objects."
        );
        text
    }

    fn json(&self, before: &Side, after: &Side, version: Minor) -> String {
        let found = |found: &Found| {
            let examples: Vec<_> = found.examples.iter().map(Example::json).collect();
            json!({"examples": examples, "undecided": found.undecided})
        };
        let json = json!({
            "before": before.name, "after": after.name, "kubeVersion": version.to_string(), "change": self.name(),
            "newlyAdmitted": found(&self.admitted), "newlyDenied": found(&self.denied),
        });
        format!("{json:#}\n")
    }
}

/// The parts of an example that make the difference, as YAML, and its violations.
fn shown(example: &Example) -> String {
    let mut text = String::new();
    let mut add = |name: &str, value: &Json| {
        if !value.is_null() {
            let yaml = serde_saphyr::to_string(value).unwrap_or_else(|_| value.to_string());
            if !name.is_empty() {
                let _ = writeln!(text, "  {name}:");
            }
            let indent = if name.is_empty() { "  " } else { "    " };
            for line in yaml.lines() {
                let _ = writeln!(text, "{indent}{line}");
            }
        }
    };
    add("", &example.object);
    add("before the update", &example.old_object);
    add("parameters", &example.params["spec"]);
    for violation in &example.violations {
        let _ = writeln!(text, "  [{}] {}", violation.check, violation.message);
    }
    text
}
