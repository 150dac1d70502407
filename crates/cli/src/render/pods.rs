//! `palisade render --pod`: shows how profiles mutate the pods in a file.

use palisade_compiler::ChangedBy;
use palisade_mutation::{MutationRequest, Plan};
use serde_json::{Value as Json, json};

use super::args::{RenderArgs, RenderFormat};
use crate::{
    diff,
    namespaces::Tenant,
    output::{self, could_not_print, yaml},
    pods,
    profiles::{self, Accepted},
    report::{Failure, Problem},
};

/// Prints the mutated pods of `palisade render --pod`.
pub fn print(path: &str, args: &RenderArgs, accepted: &[Accepted], namespaces: &[Tenant]) -> Result<(), Failure> {
    let (mut mutated, mut diffs) = (Vec::new(), Vec::new());
    for pod in pods::read(&[path.to_owned()])? {
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

fn mutate(pod: &Json, args: &RenderArgs, accepted: &[Accepted], namespaces: &[Tenant]) -> Result<Json, Failure> {
    let failed = |message: String| Failure::CouldNotRun(vec![Problem::new(message)]);
    let wanted = pod["metadata"]["namespace"].as_str();
    let namespace = match (wanted, namespaces) {
        _ if args.namespaces.is_none() => None,
        (Some(wanted), _) => match namespaces.iter().find(|one| one.name == wanted) {
            Some(found) => Some(found),
            None => return Err(failed(format!("namespace {wanted:?} of a pod must be in --namespaces"))),
        },
        (None, [one]) => Some(one),
        (None, _) => {
            let message = format!("a pod has no namespace, and --namespaces has {}", namespaces.len());
            return Err(failed(message));
        }
    };
    let mut mutations = Vec::new();
    for one in accepted.iter().filter(|one| profiles::meets(one, namespace)) {
        match profiles::changed_by(one, args.kube_version) {
            Some((mutation, ChangedBy::Policy(_) | ChangedBy::Webhook)) => {
                mutations.push((mutation, profiles::params(one, namespace)));
            }
            Some((_, ChangedBy::Nobody)) | None => {}
        }
    }
    let plan = Plan::new(mutations.iter().map(|(mutation, params)| (*mutation, params.as_ref().map(|one| &one.spec))));
    let name = namespace.map_or(wanted.unwrap_or("default"), |namespace| &namespace.name);
    let mut after = pod.clone();
    plan.patch(&MutationRequest::create(name, pod)).apply(&mut after).map_err(failed)?;
    Ok(after)
}
