//! `palisade render --static`: policies as static manifests of an API server.

use std::sync::Arc;

use palisade_cel::Minor;
use palisade_compiler::PolicyWithBindings;
use serde_json::Value as Json;

use crate::{
    input,
    output::could_not_print,
    profiles::{self, Accepted},
    report::{self, Failure, Problem, Source},
};

/// The suffix of the names of all objects that an API server reads from files (`StaticConfigSuffix` in apiserver
/// `pkg/admission/plugin/manifest/validation.go`). No such name can be created through the API.
const SUFFIX: &str = ".static.k8s.io";
/// The first minor version that reads files.
const SINCE: Minor = Minor::V1_36;

/// The policies and bindings of all profiles.
pub fn objects(sources: &[Arc<Source>], accepted: &[Accepted], version: Minor) -> Result<Vec<Json>, Failure> {
    if version < SINCE {
        let message = format!("--static requires Kubernetes {SINCE} or newer, not {version}");
        let help = "remove --static and apply the objects through the API";
        return Err(Failure::CouldNotRun(vec![Problem::new(message).help(help)]));
    }
    let problems = reading(sources, accepted)?;
    if !problems.is_empty() {
        return Err(Failure::Wrong(problems));
    }
    let mut objects = Vec::new();
    for one in accepted {
        if one.checked.mutation.is_some() {
            report::note(&format!(
                "note: profile {}: its defaults for pods are not printed, because API servers read mutating policies \
                 from another \
                 directory; pods are evaluated without them",
                one.checked.profile
            ));
        }
        for (_, pair) in one.checked.bundle.pairs() {
            objects.extend(of_pair(pair).map_err(|error| could_not_print(&error))?);
        }
    }
    Ok(objects)
}

/// The settings of profiles that make their policies read parameters, which are objects in the API.
fn reading(sources: &[Arc<Source>], accepted: &[Accepted]) -> Result<Vec<Problem>, Failure> {
    let objects = sources.iter().map(input::objects).collect::<Result<Vec<_>, _>>()?;
    let mut problems = Vec::new();
    for Accepted { profile, checked } in accepted {
        let spec = &profile.spec;
        let read = [
            (
                "spec.parameters",
                !spec.parameters.is_empty(),
                "replace each $name by a value, in a separate profile for each value",
            ),
            (
                "spec.exceptions",
                !spec.exceptions.is_empty(),
                "list the namespaces in spec.excludeNamespaces, or remove the exception",
            ),
        ];
        for (path, _, help) in read.into_iter().filter(|(_, written, _)| *written) {
            let name = &checked.profile;
            let message = format!(
                "{path}: must be empty in profile {name:?}: it requires ToolSecurityParams from the API, and static \
                 manifests \
                 cannot read them"
            );
            let is_it = |object: &&input::Object<'_>| {
                let named = |json: &Json| json["metadata"]["name"].as_str() == Some(name);
                object.kind == profiles::KIND && object.json().is_ok_and(|json| named(&json))
            };
            let problem = match objects.iter().flatten().find(is_it) {
                Some(object) => object.problem(path, message),
                None => Problem::new(message),
            };
            problems.push(problem.help(format!("{help}; or apply the profile through the controller")));
        }
    }
    Ok(problems)
}

/// A policy and its bindings under names for files. They have no owner: the owner is an object of the API.
fn of_pair(pair: &PolicyWithBindings) -> Result<Vec<Json>, serde_json::Error> {
    let mut pair = pair.clone();
    let PolicyWithBindings { policy, binding, updates, others, offered: _ } = &mut pair;
    let mut bindings: Vec<_> = [binding].into_iter().chain(updates).chain(others).collect();
    for metadata in [&mut policy.metadata].into_iter().chain(bindings.iter_mut().map(|one| &mut one.metadata)) {
        metadata.owner_references = None;
        metadata.name.get_or_insert_default().push_str(SUFFIX);
    }
    for binding in &mut bindings {
        binding.spec.policy_name.push_str(SUFFIX);
    }
    let bindings = bindings.into_iter().map(serde_json::to_value);
    [serde_json::to_value(&*policy)].into_iter().chain(bindings).collect()
}
