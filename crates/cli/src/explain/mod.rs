//! `palisade explain`: how profiles mutate a pod, the checks that then deny it, and the smallest change with which it
//! is admitted.

mod args;

use std::{collections::BTreeSet, fmt::Write as _};

use k8s_openapi::jiff::Timestamp;
use palisade_api::{Settings, Stage, ToolSecurityParams, Values, names::Shape};
use palisade_checks::Check;
use palisade_gate::{Decision, ValidationRequest, Validator};
use palisade_mutation::{Change, MutationRequest, Plan};
use palisade_objects::json;
use serde::Serialize;
use serde_json::{Value as Json, json};

pub use args::ExplainArgs;
use args::ExplainFormat;

use crate::{
    files,
    namespaces::{self, Tenant},
    output::{self, could_not_print, yaml},
    pods,
    profiles::{self, Accepted},
    report::{self, Failure, Problem},
    smallest::{self, Refuses},
};

/// The explanation for one pod.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Explanation {
    /// The pod's name.
    pod: String,
    /// Its namespace, if one was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace: Option<String>,
    /// The profiles that select it.
    profiles: Vec<String>,
    /// The defaults that are set.
    mutated: Vec<Change>,
    /// Its violations.
    refused: Vec<Violation>,
    /// Its violations of checks with another stage than Deny.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    not_refused: Vec<Violation>,
    /// The change with which it is admitted; omitted if it is already admitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    change: Option<smallest::Least>,
}

/// A violation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Violation {
    profile: String,
    check: String,
    message: String,
    /// The stage of the check, if it differs from the stage of the profile.
    #[serde(skip_serializing_if = "Option::is_none")]
    stage: Option<Stage>,
}

impl Violation {
    /// Whether it is denied at the stage Deny.
    fn is_refused(&self) -> bool {
        self.stage.is_none_or(|stage| stage == Stage::Deny)
    }
}

/// Runs the command.
pub fn run(args: &ExplainArgs) -> Result<(), Failure> {
    let paths = args.files.iter().chain(&args.profiles).chain(&args.namespaces);
    if paths.filter(|path| *path == "-").count() > 1 {
        return Err(Failure::CouldNotRun(vec![Problem::new("only one file can be standard input")]));
    }
    let accepted = profiles::all(&files::sources(&args.profiles)?)?;
    profiles::warn(&accepted);
    let namespace = match &args.namespaces {
        Some(path) => Some(one_namespace(path)?),
        None => None,
    };
    let pods = pods::read(&args.files)?;
    let explanations = explanations(&pods, &accepted, namespace.as_ref())?;
    let text = match args.output {
        ExplainFormat::Human => explanations.iter().map(human).collect::<Vec<_>>().join("\n"),
        ExplainFormat::Yaml => yaml(&explanations).map_err(|error| could_not_print(&error))?,
        ExplainFormat::Json => format!("{:#}\n", json!({"items": explanations})),
    };
    output::print(&text)?;
    let refused = explanations.iter().filter(|explanation| !explanation.refused.is_empty());
    let problems: Vec<_> =
        refused.map(|explanation| Problem::new(format!("pod {:?} is denied", explanation.pod))).collect();
    if problems.is_empty() { Ok(()) } else { Err(Failure::Wrong(problems)) }
}

/// The profiles of a namespace, to evaluate pods.
fn explanations(pods: &[Json], accepted: &[Accepted], namespace: Option<&Tenant>) -> Result<Vec<Explanation>, Failure> {
    let judges = judges(accepted, namespace)?;
    let all = pods.iter().map(|pod| explain(pod, &judges, namespace)).collect::<Result<_, _>>();
    all.map_err(|message| Failure::CouldNotRun(vec![Problem::new(message)]))
}

/// The explanation of a pod in a namespace, as text and as JSON.
///
/// # Errors
/// There is no verdict.
pub fn one(pod: Json, accepted: &[Accepted], namespace: &Tenant) -> Result<(String, Json), Failure> {
    let found = explanations(&[pod], accepted, Some(namespace))?;
    Ok((found.iter().map(human).collect(), json!(found.first())))
}

fn one_namespace(path: &str) -> Result<Tenant, Failure> {
    let mut found = namespaces::read(&files::read(path)?)?;
    if found.len() == 1 {
        return Ok(found.remove(0));
    }
    let message = format!("{path}: must have one Namespace, not {}", found.len());
    Err(Failure::CouldNotRun(vec![Problem::new(message)]))
}

/// A profile, with its parameters in the pod's namespace.
struct Judge<'a> {
    name: &'a str,
    accepted: &'a Accepted,
    policies: Vec<Validator>,
    settings: Settings,
    values: Values,
    params: Option<ToolSecurityParams>,
    /// The namespace, if it is given.
    namespace: Option<Json>,
}

fn judges<'a>(accepted: &'a [Accepted], namespace: Option<&Tenant>) -> Result<Vec<Judge<'a>>, Failure> {
    let mut judges = Vec::new();
    for one in accepted.iter().filter(|one| profiles::meets(one, namespace)) {
        let Accepted { profile, checked } = one;
        let name = checked.profile.as_str();
        let params = profiles::params(one, namespace);
        let policies = checked.bundle.judging(Shape::Pods).map(|(_, pair)| Validator::new(&pair.policy));
        let policies = policies.collect::<Result<_, _>>().map_err(|found: Vec<_>| {
            Failure::CouldNotRun(found.iter().map(|diagnostic| Problem::new(diagnostic.to_string())).collect())
        })?;
        let values = params.as_ref().map(|params| params.spec.values()).unwrap_or_default();
        let settings = profile.spec.effective_settings();
        let namespace = namespace.map(|one| palisade_gate::namespace(&one.name, &one.labels, &one.annotations));
        judges.push(Judge { name, accepted: one, policies, settings, values, params, namespace });
    }
    Ok(judges)
}

impl Judge<'_> {
    /// The violations of a pod.
    fn violations(&self, namespace: &str, pod: &Json) -> Result<Vec<Violation>, String> {
        let params = self.params.as_ref().map(|params| json!({"spec": params.spec}));
        let (params, namespace_object) = (params.as_ref(), self.namespace.as_ref());
        let request =
            ValidationRequest { namespace, params, namespace_object, ..ValidationRequest::create("Pod", pod) };
        let mut found: Vec<Violation> = Vec::new();
        for policy in &self.policies {
            match policy.evaluate(&request).map_err(|error| error.to_string())? {
                Decision::Admit => {}
                // A denial without violations is not one that a change of the pod can fix.
                Decision::Deny { message, violations, .. } if violations.is_empty() => return Err(message),
                Decision::Deny { violations, .. } => {
                    let of_profile = |palisade_gate::Violation { check, message }| Violation {
                        profile: self.name.to_owned(),
                        stage: self.accepted.checked.enforcement.checks.get(&check).copied(),
                        check,
                        message,
                    };
                    // Two policies may evaluate one check.
                    let violations: Vec<_> = violations.into_iter().map(of_profile).collect();
                    found.extend(violations.into_iter().filter(|one| !found.contains(one)).collect::<Vec<_>>());
                }
            }
        }
        Ok(found)
    }
}

/// The effects of the profiles of a namespace on a pod.
struct Explainer<'a> {
    judges: &'a [Judge<'a>],
    plan: Plan<'a>,
    namespace: String,
}

impl Explainer<'_> {
    /// The mutated pod, and the changes.
    fn mutate(&self, pod: &Json) -> Result<(Json, Vec<Change>), String> {
        let patch = self.plan.patch(&MutationRequest::create(&self.namespace, pod));
        let mut mutated = pod.clone();
        patch.apply(&mut mutated)?;
        // The API server sets it before policies run, and exceptions compare it.
        if mutated["metadata"]["creationTimestamp"].is_null() {
            json::set(&mut mutated, &["metadata", "creationTimestamp"], Timestamp::now().to_string());
        }
        Ok((mutated, patch.changes))
    }

    /// The violations of the mutated pod.
    fn violations(&self, pod: &Json) -> Result<Vec<Violation>, String> {
        let (mutated, _) = self.mutate(pod)?;
        let mut found = Vec::new();
        for judge in self.judges {
            found.extend(judge.violations(&self.namespace, &mutated)?);
        }
        Ok(found)
    }
}

impl Refuses for Explainer<'_> {
    fn refuses(&self, pod: &Json) -> Result<BTreeSet<String>, String> {
        Ok(self.violations(pod)?.into_iter().filter(Violation::is_refused).map(|one| one.check).collect())
    }

    fn comply(&self, check: &Check, pod: &mut Json) {
        for judge in self.judges {
            (check.comply)(&judge.settings, &judge.values, pod);
        }
    }
}

fn explain(pod: &Json, judges: &[Judge<'_>], namespace: Option<&Tenant>) -> Result<Explanation, String> {
    let mutations = judges.iter().filter_map(|judge| {
        Some((judge.accepted.checked.mutation.as_ref()?, judge.params.as_ref().map(|params| &params.spec)))
    });
    let of_pod = pod["metadata"]["namespace"].as_str().unwrap_or("default");
    let explainer = Explainer {
        judges,
        plan: Plan::new(mutations),
        namespace: namespace.map_or(of_pod, |namespace| &namespace.name).to_owned(),
    };
    let (_, mutated) = explainer.mutate(pod)?;
    let (refused, not_refused): (Vec<_>, _) = explainer.violations(pod)?.into_iter().partition(Violation::is_refused);
    let change = if refused.is_empty() { None } else { Some(smallest::least(pod, &explainer)?) };
    let name = pod["metadata"]["name"].as_str().or(pod["metadata"]["generateName"].as_str()).unwrap_or_default();
    Ok(Explanation {
        pod: name.to_owned(),
        namespace: namespace.map(|namespace| namespace.name.clone()),
        profiles: judges.iter().map(|judge| judge.name.to_owned()).collect(),
        mutated,
        refused,
        not_refused,
        change,
    })
}

/// Quoted text of the pod cannot break a line.
fn flat(text: &str) -> String {
    text.replace('\n', " ")
}

fn human(explanation: &Explanation) -> String {
    let Explanation { pod, namespace, profiles, mutated, refused, not_refused, change } = explanation;
    let mut out = format!("pod {}", flat(pod));
    if let Some(namespace) = namespace {
        let _ = write!(out, " in namespace {namespace}");
    }
    let profiles = if profiles.is_empty() { "none".to_owned() } else { profiles.join(", ") };
    let _ = writeln!(out, ", profiles: {profiles}");
    if !mutated.is_empty() {
        let _ = writeln!(out, "\nmutated:");
        for change in mutated {
            let _ = writeln!(out, "  {}", flat(&change.to_string()));
        }
    }
    for Violation { check, message, stage, .. } in not_refused {
        let consequence = stage.unwrap_or_default().consequence();
        let _ = writeln!(out, "\na violation of check {check} {consequence}:\n  [{check}] {}", flat(message));
    }
    if refused.is_empty() {
        let _ = writeln!(out, "\nadmitted");
        return harmless(&out);
    }
    let _ = writeln!(out, "\ndenied:");
    for Violation { check, message, .. } in refused {
        let _ = writeln!(out, "  [{check}] {}", flat(message));
    }
    let Some(change) = change else { return out };
    if !change.lines.is_empty() {
        let after = if change.left.is_empty() {
            "with this change it is admitted"
        } else {
            "with this change it has fewer violations"
        };
        let _ = writeln!(out, "\n{after}:");
        for line in &change.lines {
            let _ = writeln!(out, "  {line}");
        }
    }
    for check in &change.left {
        let _ = writeln!(out, "\n[{check}]: no compliant value is known; see docs/checks/{check}.md");
    }
    harmless(&out)
}

/// Text of a file must not move the terminal's cursor.
fn harmless(out: &str) -> String {
    out.chars().map(|c| if c == '\n' { c } else { report::harmless(c) }).collect()
}
