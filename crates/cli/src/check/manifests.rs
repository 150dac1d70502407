//! The manifests to evaluate, their namespaces, and the profiles.

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::Minor;
use palisade_compiler::{Namespace, namespace_selector};
use palisade_kube_json::{json::set, selector, workload::Workload};
use serde_json::Value as Json;

use super::{args::CheckArgs, config::Config};
use crate::{
    cluster::could_not_run,
    dump_files::Dump,
    evaluator::{self, ProfileEvaluator},
    files,
    input::Object,
    live,
    namespaces::{self, Tenant},
    parameters,
    profiles::{self, Accepted},
    report::{self, Failure, Problem},
};

/// An object of a file.
pub(super) struct Manifest<'a> {
    pub object: Object<'a>,
    /// With its namespace.
    pub json: Json,
    /// The kind of a workload.
    pub kind: Option<&'static Workload>,
    pub namespace: String,
}

/// The objects of files, each in its namespace.
#[derive(Default)]
pub(super) struct Manifests<'a> {
    /// Pods and workloads.
    pub judged: Vec<Manifest<'a>>,
    /// Objects of other kinds. A profile may evaluate them.
    pub candidates: Vec<Manifest<'a>>,
    /// Definitions of kinds.
    pub definitions: Vec<Json>,
    /// The number of objects that profiles do not evaluate, by kind.
    pub others: BTreeMap<String, usize>,
    /// Objects that cannot be evaluated.
    pub problems: Vec<Problem>,
}

/// The pods and workloads among some objects.
pub(super) fn judged<'a>(objects: Vec<Object<'a>>, namespace: Option<&str>) -> Manifests<'a> {
    let Manifests { mut judged, mut candidates, mut definitions, mut others, mut problems } = Manifests::default();
    for object in objects {
        if object.kind == "CustomResourceDefinition" {
            definitions.extend(object.json());
        }
        let kind = evaluator::workload(&object.api_version, &object.kind);
        if kind.is_none() && !evaluator::is_pod(&object.api_version, &object.kind) {
            match evaluator::no_longer_served(&object.api_version, &object.kind) {
                Some(why) => problems.push(object.problem("apiVersion", why)),
                None => match candidate(object, namespace) {
                    Ok(manifest) => candidates.push(manifest),
                    Err(kind) => *others.entry(kind).or_default() += 1,
                },
            }
            continue;
        }
        let mut json = match object.json() {
            Ok(json) => json,
            Err(mistake) => {
                problems.push(mistake.problem);
                continue;
            }
        };
        let own = json["metadata"]["namespace"].as_str().filter(|name| !name.is_empty());
        let Some(name) = own.or(namespace).map(str::to_owned) else {
            let problem = object.problem("metadata", format!("{} names no namespace", object.kind));
            problems.push(problem.help("specify it with --namespace NAME, or add a Namespace to the manifests"));
            continue;
        };
        if json["metadata"].is_object() {
            set(&mut json, &["metadata", "namespace"], name.as_str());
        }
        judged.push(Manifest { object, json, kind, namespace: name });
    }
    Manifests { judged, candidates, definitions, others, problems }
}

/// An object of another kind in its namespace.
///
/// # Errors
/// The kind of an object that has no namespace or cannot be read. Profiles evaluate few of these kinds.
fn candidate<'a>(object: Object<'a>, namespace: Option<&str>) -> Result<Manifest<'a>, String> {
    let Ok(mut json) = object.json() else { return Err(object.kind) };
    let own = json["metadata"]["namespace"].as_str().filter(|name| !name.is_empty());
    let Some(name) = own.or(namespace).map(str::to_owned) else { return Err(object.kind) };
    if json["metadata"].is_object() {
        set(&mut json, &["metadata", "namespace"], name.as_str());
    }
    Ok(Manifest { object, json, kind: None, namespace: name })
}

/// Moves the candidates that a profile evaluates to the evaluated objects, and counts the others. The kinds that the
/// manifests define are defined first.
///
/// Returns the definitions that the API server would reject.
pub(super) fn promote(manifests: &mut Manifests<'_>, judge: &ProfileEvaluator) -> Vec<Problem> {
    let mut problems = Vec::new();
    for definition in std::mem::take(&mut manifests.definitions) {
        if let Err(why) = judge.clusters.define(&definition) {
            let name = definition["metadata"]["name"].as_str().unwrap_or_default();
            problems.push(Problem::new(format!("CustomResourceDefinition {name}: {why}")));
        }
    }
    for manifest in std::mem::take(&mut manifests.candidates) {
        let Object { api_version, kind, .. } = &manifest.object;
        if judge.evaluates(api_version, kind) {
            manifests.judged.push(manifest);
        } else {
            *manifests.others.entry(kind.clone()).or_default() += 1;
        }
    }
    problems
}

/// Profiles, and the namespaces in which they are evaluated.
pub(super) struct CheckInputs {
    pub accepted: Vec<Accepted>,
    pub tenants: Vec<Tenant>,
    pub version: Minor,
    /// The namespaces for which the answers of profiles are unknown, with the reason.
    pub unknown: BTreeMap<String, Problem>,
}

/// Reads profiles and namespaces, from files or from a cluster.
pub(super) fn inputs(
    args: &CheckArgs,
    config: &Config,
    mut tenants: Vec<Tenant>,
    names: &BTreeSet<String>,
) -> Result<CheckInputs, Failure> {
    let mut version = config.kube_version.unwrap_or(Minor::DEFAULT);
    let given = if config.profiles.is_empty() {
        None
    } else {
        Some(profiles::all(&files::sources(&config.profiles)?).map_err(Failure::fatal)?)
    };
    let accepted = if args.live {
        let missing: BTreeSet<_> =
            names.iter().filter(|name| !tenants.iter().any(|one| one.name == **name)).cloned().collect();
        let found = args.cluster.ask(async |client| {
            if config.kube_version.is_none() {
                version = live::version(&client).await?;
            }
            let may_list = live::permitted(&client, [live::PROFILES]).await;
            // All missing permissions are reported together.
            let ((), here) = report::both(may_list, live::tenants(&client, &missing).await)?;
            tenants.extend(here);
            live::profiles(&client).await
        })?;
        found.into_iter().map(profiles::accept_live).collect::<Result<_, _>>().map_err(Failure::CouldNotRun)?
    } else if let Some(directory) = &args.dump {
        let dump = Dump::open(directory)?;
        version = config.kube_version.unwrap_or(dump.version);
        let here = dump.tenants.into_iter().filter(|one| names.contains(&one.name));
        let missing: Vec<_> = here.filter(|one| !tenants.iter().any(|other| other.name == one.name)).collect();
        tenants.extend(missing);
        given.unwrap_or(dump.profiles)
    } else {
        given.unwrap_or_default()
    };
    if accepted.is_empty() {
        return Err(could_not_run("at least one profile is required, and there is none in the cluster"));
    }
    let accepted = profiles::on(parameters::set(accepted, &config.parameters)?, version).map_err(Failure::fatal)?;
    let mut unknown = BTreeMap::new();
    let known: BTreeSet<_> = tenants.iter().map(|one| one.name.clone()).collect();
    for name in names.difference(&known) {
        if args.live || args.dump.is_some() {
            report::note(&format!(
                "note: namespace {name} is not in the cluster: it is treated as if each profile selected it"
            ));
        }
        match invented(name, &accepted) {
            Ok(tenant) => tenants.push(tenant),
            Err(problem) => drop(unknown.insert(name.clone(), problem)),
        }
    }
    Ok(CheckInputs { accepted, tenants, version, unknown })
}

/// A namespace that is not found: it has the labels by which the profiles select, and no others.
fn invented(name: &str, accepted: &[Accepted]) -> Result<Tenant, Problem> {
    let mut labels = [("kubernetes.io/metadata.name".to_owned(), name.to_owned())].into();
    let help = "add its Namespace with --namespaces or to the manifests";
    for one in accepted {
        let selector = namespace_selector(&one.profile.spec);
        labels = selector::satisfying(&selector, &labels).ok_or_else(|| {
            let message = format!(
                "the labels of namespace {name} are required to determine whether profile {} selects it",
                one.checked.profile
            );
            Problem::new(message).help(help)
        })?;
    }
    let namespace = Namespace { name: name.to_owned(), labels: labels.clone(), ..Namespace::default() };
    for one in accepted {
        if let Err(why) = one.checked.resolver.resolve(&namespace) {
            let message = format!("namespace {name}, profile {}: {why}", one.checked.profile);
            let help = "add its Namespace with --namespaces or to the manifests, or set --param NAME=VALUE";
            return Err(Problem::new(message).help(help));
        }
    }
    let metadata =
        k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta { labels: Some(labels), ..Default::default() };
    namespaces::seen(name.to_owned(), metadata)
        .ok_or_else(|| Problem::new(format!("namespace {name} is being deleted")))
}
