//! The cluster in files.

use std::collections::BTreeMap;

use k8s_openapi::jiff::Timestamp;
use palisade_admission::{
    create::{Refused, Status},
    requests::Cluster,
};
use serde_json::Value as Json;

use crate::{
    eval::EvalArgs,
    files,
    input::{self, Object},
    namespaces,
    offline::{self, text},
    profiles,
    report::{self, Failure, Problem},
};

/// Reads the cluster. The order of files does not matter: CustomResourceDefinitions come first, and policies last.
pub fn read(args: &EvalArgs) -> Result<Cluster, Failure> {
    let mut cluster = palisade_gate::cluster(args.kube_version).with_plugins(args.plugins.plugins()?);
    let sources = files::expand(&args.files)?.iter().map(|path| files::read(path)).collect::<Result<Vec<_>, _>>()?;
    let mut objects = Vec::new();
    for source in &sources {
        objects.extend(input::objects(source).map_err(Failure::fatal)?);
    }
    objects.sort_by_key(rank);
    let (mut problems, mut skipped) = (Vec::new(), BTreeMap::<String, usize>::new());
    let own = |found: &Object<'_>| found.kind == profiles::KIND;
    if objects.iter().any(own) {
        offline::define(&mut cluster)?;
    }
    let (profiles, objects): (Vec<_>, Vec<_>) = objects.into_iter().partition(own);
    for object in &objects {
        match apply(&mut cluster, object) {
            Ok(true) => {}
            Ok(false) => {
                let kind = if object.kind.is_empty() { "without kind" } else { &object.kind };
                *skipped.entry(kind.to_owned()).or_default() += 1;
            }
            Err(problem) => problems.push(problem),
        }
    }
    let mut accepted = Vec::new();
    for object in &profiles {
        match profiles::accept(object) {
            Ok(profile) => accepted.push(profile),
            Err(found) => problems.extend(found),
        }
    }
    if !problems.is_empty() {
        return Err(Failure::CouldNotRun(problems));
    }
    let accepted = profiles::on(args.params.set(accepted)?, args.kube_version).map_err(Failure::fatal)?;
    // The cluster has accepted them, so they have no errors.
    let (tenants, _) = namespaces::among(&objects);
    profiles::tell(&accepted, &tenants);
    offline::enforce(&mut cluster, &accepted, &tenants, args.kube_version, Timestamp::now())?;
    if !skipped.is_empty() {
        let listed: Vec<_> = skipped.iter().map(|(kind, count)| format!("{count} {kind}")).collect();
        let names: Vec<_> = args.files.iter().map(|path| if path == "-" { "<stdin>" } else { path }).collect();
        report::note(&format!("note: {}: skipped objects of unknown kinds: {}", names.join(", "), listed.join(", ")));
    }
    for (kind, name) in cluster.unbound() {
        let kind = kind.name();
        report::note(&format!(
            "note: {kind} {name} is never evaluated because the files have no binding for it: add a {kind}Binding"
        ));
    }
    Ok(cluster)
}

/// Objects come before those that refer to them.
fn rank(object: &Object<'_>) -> u8 {
    match object.kind.as_str() {
        "CustomResourceDefinition" => 0,
        "Namespace" => 1,
        "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy" => 3,
        "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding" => 4,
        _ => 2,
    }
}

/// Adds an object to the cluster; false if its kind is unknown.
fn apply(cluster: &mut Cluster, object: &Object<'_>) -> Result<bool, Problem> {
    if rank(object) == 2 && cluster.kinds().by_kind(&object.api_version, &object.kind).is_none() {
        // For example a kustomization.yaml, which is sent to no API server and need not have a name.
        return Ok(false);
    }
    let mut json = object.json().map_err(|mistake| mistake.problem)?;
    if let Some(metadata) = json.get_mut("metadata").and_then(Json::as_object_mut)
        && !metadata.contains_key("uid")
    {
        // Only a cluster sets it.
        metadata.remove("resourceVersion");
    }
    match cluster.apply(json) {
        Ok(warnings) => {
            for warning in warnings {
                report::note(&format!("warning: {}: {warning}", object.source.name()));
            }
            Ok(true)
        }
        Err(Refused::Status(Status { code: 404, .. })) => Ok(false),
        Err(Refused::NoVerdict(_)) if rank(object) == 2 => Ok(false),
        Err(refused) => {
            let path = match &refused {
                Refused::Status(status) => status.causes.first().map_or("metadata.name", |cause| cause.field.as_str()),
                Refused::NoVerdict(_) => "metadata.name",
            };
            let problem = object.problem(path, text(&refused));
            Err(problem.help("the API server would reject it, so it has no effect to evaluate"))
        }
    }
}
