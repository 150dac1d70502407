//! `palisade prove`: whether a change of a profile newly admits or denies a pod, for all pods.

mod args;
mod example;

use std::fmt::Write as _;

pub use args::ProveArgs;
use palisade_admission::requests::Operation;
use palisade_api::{crd, names::Shape};
use palisade_cel::{
    Minor,
    schema::{Kind, Schemas},
};
use palisade_gate::Validator;
use palisade_prove::{
    Answer, Policy, Requests,
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
    match change.admitted {
        Found::Nothing => Ok(()),
        Found::Example(_) => Err(Failure::Wrong(Vec::new())),
        Found::Undecided(_) => Err(Failure::CouldNotRun(Vec::new())),
    }
}

/// A version of the profile.
struct Side {
    name: String,
    accepted: Accepted,
    expressions: Vec<Policy>,
    policies: Policies,
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
            let variables = spec.variables.iter().flatten().map(|one| (&*one.name, &*one.expression));
            let validations = spec.validations.iter().flatten().map(|one| &*one.expression);
            let parsed = Policy::parse(variables, [], validations);
            expressions.push(parsed.ok_or_else(|| could_not_run(format!("{place}: an expression does not parse")))?);
            let validator = Validator::new(&pair.policy);
            policies.push(validator.map_err(|errors| could_not_run(format!("{place}: {errors:?}")))?);
        }
        Ok(Self { name: place.to_string(), accepted, expressions, policies: Policies(policies) })
    }
}

/// The types of pods and parameters.
struct Types {
    pod: Type,
    params: Type,
}

/// Pods that one version admits, and the other one denies.
enum Found {
    /// It is proved that there are none.
    Nothing,
    Example(Box<Example>),
    /// The reason.
    Undecided(String),
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
        let mut undecided = None;
        for (operation, asked) in [
            (Operation::Create, palisade_prove::Operation::Create),
            (Operation::Update, palisade_prove::Operation::Update),
        ] {
            let requests = Requests { object: &self.pod, kind: "Pod", operation: asked, params: Some(&self.params) };
            match requests.admitted_are_admitted_by(&admits.expressions, &denies.expressions) {
                Answer::Proved(_) => {}
                Answer::Unknown(why) => undecided = Some(why),
                Answer::Counterexample(request) => {
                    let doubts = request.doubts.iter().cloned().collect::<Vec<_>>().join(", ");
                    match Example::confirmed(operation, *request, &admits.policies, &denies.policies) {
                        Some(example) => return Found::Example(Box::new(example)),
                        None if doubts.is_empty() => undecided = Some("a found pod was not confirmed".to_owned()),
                        None => undecided = Some(format!("it depends on {doubts}")),
                    }
                }
            }
        }
        undecided.map_or(Found::Nothing, Found::Undecided)
    }
}

/// The difference of two versions.
struct Change {
    admitted: Found,
    denied: Found,
}

impl Change {
    fn name(&self) -> &'static str {
        match (&self.admitted, &self.denied) {
            (Found::Undecided(_), _) | (_, Found::Undecided(_)) => "undecided",
            (Found::Nothing, Found::Nothing) => "equivalent",
            (Found::Nothing, Found::Example(_)) => "tightening",
            (Found::Example(_), Found::Nothing) => "loosening",
            (Found::Example(_), Found::Example(_)) => "both",
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
            match found {
                Found::Nothing => {
                    let _ = writeln!(text, "\n{what}: no pod (proved)");
                }
                Found::Undecided(why) => {
                    let _ = writeln!(text, "\n{what}: not decided: {why}");
                }
                Found::Example(example) => {
                    let _ = writeln!(text, "\n{what}: pods such as this one ({})", example.operation.name());
                    text.push_str(&shown(example));
                }
            }
        }
        let _ = writeln!(
            text,
            "\nFor pods of any size with the fields of Kubernetes {version}, created or updated by any user, and all values of \
             parameters, at the stage Deny. Not compared: mutation, stages, selected namespaces, workloads, other objects."
        );
        text
    }

    fn json(&self, before: &Side, after: &Side, version: Minor) -> String {
        let found = |found: &Found| match found {
            Found::Nothing => json!({"proved": true}),
            Found::Undecided(why) => json!({"proved": false, "undecided": why}),
            Found::Example(example) => json!({"proved": false, "example": example.json()}),
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
