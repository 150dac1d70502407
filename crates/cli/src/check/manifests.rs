//! The manifests to judge, the namespaces that they are in, and the profiles.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use palisade_api::{IntOrText, Override, ToolSecurityProfile};
use palisade_cel::Minor;
use palisade_compiler::{Namespace, namespace_selector};
use palisade_objects::{json::set, selector, workload::Workload};
use serde_json::Value as Json;

use super::{args::CheckArgs, config::Config};
use crate::{
    cluster::could_not_run,
    files,
    input::{self, Object},
    judge, live,
    namespaces::{self, Tenant},
    profiles::{self, Accepted},
    report::{self, Failure, Problem, Source},
};

/// A pod or workload of a file.
pub(super) struct Manifest<'a> {
    pub object: Object<'a>,
    /// With its namespace.
    pub json: Json,
    pub kind: Option<&'static Workload>,
    pub namespace: String,
}

/// The objects of all files.
pub(super) fn objects(sources: &[Arc<Source>]) -> Result<Vec<Object<'_>>, Failure> {
    let (mut objects, mut problems) = (Vec::new(), Vec::new());
    for source in sources {
        match input::objects(source) {
            Ok(found) => objects.extend(found),
            Err(problem) if source.text().contains("{{") => problems
                .push(problem.help("a template of Helm is not YAML; render it: helm template . | palisade check -")),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(objects) } else { Err(Failure::CouldNotRun(problems)) }
}

/// The pods and workloads among them, each in its namespace; and how many others there are, by their kinds.
pub(super) fn judged<'a>(
    objects: Vec<Object<'a>>,
    namespace: Option<&str>,
) -> Result<(Vec<Manifest<'a>>, BTreeMap<String, usize>), Failure> {
    let (mut found, mut others, mut problems) = (Vec::new(), BTreeMap::new(), Vec::new());
    for object in objects {
        let kind = judge::workload(&object.api_version, &object.kind);
        if kind.is_none() && !judge::is_pod(&object.api_version, &object.kind) {
            let kind = if object.kind.is_empty() { "without kind" } else { &object.kind };
            *others.entry(kind.to_owned()).or_default() += 1;
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
            problems.push(problem.help("--namespace NAME says which, or a Namespace among the manifests"));
            continue;
        };
        if json["metadata"].is_object() {
            set(&mut json, &["metadata", "namespace"], name.as_str());
        }
        found.push(Manifest { object, json, kind, namespace: name });
    }
    if problems.is_empty() { Ok((found, others)) } else { Err(Failure::CouldNotRun(problems)) }
}

/// Profiles, and the namespaces in which they are judged.
pub(super) struct Ground {
    pub accepted: Vec<Accepted>,
    pub tenants: Vec<Tenant>,
    pub version: Minor,
}

/// Reads profiles and namespaces, from files or from a cluster.
pub(super) fn ground(
    args: &CheckArgs,
    config: &Config,
    mut tenants: Vec<Tenant>,
    names: &BTreeSet<String>,
) -> Result<Ground, Failure> {
    let mut version = config.kube_version.unwrap_or(Minor::DEFAULT);
    let mut accepted = if args.live {
        let missing: BTreeSet<_> =
            names.iter().filter(|name| !tenants.iter().any(|one| one.name == **name)).cloned().collect();
        let found = args.cluster.ask(async |client| {
            if config.kube_version.is_none() {
                version = live::version(&client).await?;
            }
            let may_list = live::permitted(&client, [live::PROFILES]).await;
            // All missing rights are named at once.
            let ((), here) = report::both(may_list, live::tenants(&client, &missing).await)?;
            tenants.extend(here);
            live::profiles(&client).await
        })?;
        found.into_iter().map(profiles::accept_live).collect::<Result<_, _>>().map_err(Failure::CouldNotRun)?
    } else {
        profiles::all(&files::sources(&config.profiles)?).map_err(Failure::fatal)?
    };
    if accepted.is_empty() {
        return Err(could_not_run("there is no profile in the cluster to judge by"));
    }
    if !config.parameters.is_empty() {
        let given = |profile: &mut ToolSecurityProfile| give(profile, &config.parameters, names);
        accepted = changed(accepted, &config.parameters, given)?;
    }
    let known: BTreeSet<_> = tenants.iter().map(|one| one.name.clone()).collect();
    for name in names.difference(&known) {
        if args.live {
            report::note(&format!(
                "note: namespace {name} is not in the cluster: it counts as one that each profile selects"
            ));
        }
        tenants.push(invented(name, &accepted)?);
    }
    Ok(Ground { accepted, tenants, version })
}

/// Gives parameters a value in namespaces, as an override in the profile does.
fn give(profile: &mut ToolSecurityProfile, values: &BTreeMap<String, IntOrText>, names: &BTreeSet<String>) {
    let declared = |name: &String| profile.spec.parameters.iter().any(|parameter| parameter.name == *name);
    let parameters: BTreeMap<_, _> =
        values.iter().filter(|(name, _)| declared(name)).map(|(name, value)| (name.clone(), value.clone())).collect();
    if parameters.is_empty() {
        return;
    }
    let mut overrides = Vec::new();
    for one in &profile.spec.overrides {
        let (here, elsewhere): (Vec<_>, Vec<_>) = one.namespaces.iter().cloned().partition(|name| names.contains(name));
        overrides.push(Override { namespaces: elsewhere, parameters: one.parameters.clone() });
        let mut kept = one.parameters.clone();
        kept.retain(|name, _| !parameters.contains_key(name));
        overrides.push(Override { namespaces: here, parameters: kept });
    }
    overrides.push(Override { namespaces: names.iter().cloned().collect(), parameters });
    overrides.retain(|one| !one.namespaces.is_empty() && !one.parameters.is_empty());
    profile.spec.overrides = overrides;
}

/// The profiles, changed, compiled and checked again.
fn changed(
    accepted: Vec<Accepted>,
    values: &BTreeMap<String, IntOrText>,
    change: impl Fn(&mut ToolSecurityProfile),
) -> Result<Vec<Accepted>, Failure> {
    for name in values.keys() {
        let declares = |one: &Accepted| one.profile.spec.parameters.iter().any(|parameter| parameter.name == *name);
        if !accepted.iter().any(declares) {
            return Err(could_not_run(format!("no profile has a parameter {name:?}")));
        }
    }
    let again = |one: Accepted| {
        let mut profile = one.profile.clone();
        change(&mut profile);
        if profile == one.profile { Ok(one) } else { profiles::accept_live(profile) }
    };
    accepted.into_iter().map(again).collect::<Result<_, _>>().map_err(Failure::CouldNotRun)
}

/// A namespace that is nowhere: it has the labels by which the profiles select, and no others.
fn invented(name: &str, accepted: &[Accepted]) -> Result<Tenant, Failure> {
    let mut labels = [("kubernetes.io/metadata.name".to_owned(), name.to_owned())].into();
    let help = "give its manifest, with --namespaces or among the manifests";
    for one in accepted {
        let selector = namespace_selector(&one.profile.spec);
        labels = selector::satisfying(&selector, &labels).ok_or_else(|| {
            let message =
                format!("which labels namespace {name} has decides whether profile {} selects it", one.checked.profile);
            Failure::CouldNotRun(vec![Problem::new(message).help(help)])
        })?;
    }
    let namespace = Namespace { name: name.to_owned(), labels: labels.clone(), ..Namespace::default() };
    for one in accepted {
        if let Err(why) = one.checked.resolver.resolve(&namespace) {
            let message = format!("namespace {name}, profile {}: {why}", one.checked.profile);
            let help = "give the namespace's manifest, with --namespaces or among the manifests; or --param NAME=VALUE";
            return Err(Failure::CouldNotRun(vec![Problem::new(message).help(help)]));
        }
    }
    let metadata =
        k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta { labels: Some(labels), ..Default::default() };
    namespaces::seen(name.to_owned(), metadata)
        .ok_or_else(|| could_not_run(format!("namespace {name} is being deleted")))
}
