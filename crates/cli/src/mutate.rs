//! How profiles mutate the pods in files.

use k8s_openapi::jiff::Timestamp;
use palisade_api::ToolSecurityParams;
use palisade_apiserver::objects::{Kinds, Sent};
use palisade_cel::Minor;
use palisade_compiler::{ChangedBy, Namespace};
use palisade_mutation::{Plan, Request};
use serde_json::{Value as Json, json};

use crate::{
    args::{RenderArgs, RenderFormat},
    diff, input,
    output::{self, could_not_print, yaml},
    render::{self, Accepted},
    report::{self, Failure, Problem},
};

/// The pods in a file.
pub fn pods(path: &str) -> Result<Vec<Json>, Failure> {
    let source = input::read(path)?;
    let objects = input::objects(&source).map_err(|problem| Failure::CouldNotRun(vec![problem]))?;
    let (mut pods, mut others, mut problems) = (Vec::new(), Vec::new(), Vec::new());
    // The newest minor has all fields of the older ones.
    let kinds = Kinds::builtin(Minor::NEWEST.number());
    for object in objects {
        if object.kind != "Pod" || object.api_version != "v1" {
            others.push(object.kind);
            continue;
        }
        match object.json() {
            Ok(pod) => match undecodable(&kinds, &pod) {
                Some(why) => problems.push(object.problem("", why)),
                None if pod["spec"]["containers"].as_array().is_none_or(Vec::is_empty) => {
                    problems.push(object.problem("spec", "a pod without containers"));
                }
                None => pods.push(pod),
            },
            Err(mistake) => problems.push(mistake.problem),
        }
    }
    output::ignored(&source, &others, "Pod");
    if pods.is_empty() && problems.is_empty() {
        problems.push(Problem::new(format!("{}: no Pod found", source.name())));
    }
    if problems.is_empty() { Ok(pods) } else { Err(Failure::CouldNotRun(problems)) }
}

/// Why the API server cannot decode it as a pod: a field has another type. No check could judge it either.
fn undecodable(kinds: &Kinds, pod: &Json) -> Option<String> {
    let resource = kinds.by_kind("v1", "Pod")?;
    let sent = Sent { resource, subresource: "", namespace: "default", object: pod, old: None };
    kinds.decode(sent).err().map(|refused| refused.to_string())
}

/// Whether a profile selects a pod in a namespace. Without a namespace, it does.
pub fn meets(accepted: &Accepted, namespace: Option<&Namespace>) -> bool {
    let Some(namespace) = namespace else { return true };
    let selected = palisade_compiler::selects(&accepted.profile.spec, namespace);
    if !selected {
        report::note(&format!(
            "note: profile {} does not select namespace {}",
            accepted.checked.profile, namespace.name
        ));
    }
    selected
}

/// The parameters of a profile in a namespace, if it has any; made-up values without a namespace.
pub fn params(Accepted { checked, .. }: &Accepted, namespace: Option<&Namespace>) -> Option<ToolSecurityParams> {
    if let Some(namespace) = namespace {
        return checked.params(namespace, Timestamp::now());
    }
    let name = checked.profile.as_str();
    if !checked.parameters.is_empty() {
        report::note(&format!("warning: without the pod's namespace, parameters have made-up values (profile {name})"));
    }
    checked.probes.params.clone().map(|spec| ToolSecurityParams::new(name, spec))
}

/// Prints the mutated pods of `palisade render --pod`.
pub fn print(path: &str, args: &RenderArgs, accepted: &[Accepted], namespaces: &[Namespace]) -> Result<(), Failure> {
    let (mut mutated, mut diffs) = (Vec::new(), Vec::new());
    for pod in pods(path)? {
        let after = mutate(&pod, args, accepted, namespaces)?;
        diffs.push(diff::unified(&pod, &after, diff::CONTEXT)?);
        mutated.push(after);
    }
    let text = match args.output {
        RenderFormat::Diff => diffs.concat(),
        RenderFormat::Json => format!("{:#}\n", json!({"apiVersion": "v1", "kind": "List", "items": mutated})),
        RenderFormat::Yaml => {
            let mut documents = Vec::new();
            for (pod, diff) in mutated.iter().zip(&diffs) {
                let object = yaml(std::slice::from_ref(pod)).map_err(|error| could_not_print(&error))?;
                let comment = diff.lines().fold(String::new(), |all, line| all + "# " + line + "\n");
                documents.push(comment + &object);
            }
            documents.join("---\n")
        }
    };
    output::print(&text)
}

fn mutate(pod: &Json, args: &RenderArgs, accepted: &[Accepted], namespaces: &[Namespace]) -> Result<Json, Failure> {
    let failed = |message: String| Failure::CouldNotRun(vec![Problem::new(message)]);
    let wanted = pod["metadata"]["namespace"].as_str();
    let namespace = match (wanted, namespaces) {
        _ if args.namespaces.is_none() => None,
        (Some(wanted), _) => match namespaces.iter().find(|one| one.name == wanted) {
            Some(found) => Some(found),
            None => return Err(failed(format!("namespace {wanted:?} of a pod is not among --namespaces"))),
        },
        (None, [one]) => Some(one),
        (None, _) => {
            let message = format!("a pod names no namespace, and --namespaces has {}", namespaces.len());
            return Err(failed(message));
        }
    };
    let mut mutations = Vec::new();
    for one in accepted.iter().filter(|one| meets(one, namespace)) {
        match render::changed_by(one, args.kube_version) {
            Some((mutation, ChangedBy::Policy(_) | ChangedBy::Webhook)) => {
                mutations.push((mutation, params(one, namespace)));
            }
            Some((_, ChangedBy::Nobody)) | None => {}
        }
    }
    let plan = Plan::new(mutations.iter().map(|(mutation, params)| (*mutation, params.as_ref().map(|one| &one.spec))));
    let name = namespace.map_or(wanted.unwrap_or("default"), |namespace| &namespace.name);
    let mut after = pod.clone();
    plan.patch(&Request::create(name, pod)).apply(&mut after).map_err(failed)?;
    Ok(after)
}
