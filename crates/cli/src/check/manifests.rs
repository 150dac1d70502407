//! The manifests to evaluate, their namespaces, and the profiles.

use std::collections::{BTreeMap, BTreeSet};

use palisade_api::{IntOrText, Override, ToolSecurityProfile};
use palisade_cel::Minor;
use palisade_compiler::{Namespace, namespace_selector};
use palisade_objects::{json::set, selector, workload::Workload};
use serde_json::Value as Json;

use super::{args::CheckArgs, config::Config};
use crate::{
    cluster::could_not_run,
    files,
    input::Object,
    judge, live,
    namespaces::{self, Tenant},
    profiles::{self, Accepted},
    report::{self, Failure, Problem},
};

/// A pod or workload of a file.
pub(super) struct Manifest<'a> {
    pub object: Object<'a>,
    /// With its namespace.
    pub json: Json,
    pub kind: Option<&'static Workload>,
    pub namespace: String,
}

/// The pods and workloads of files, each in its namespace.
#[derive(Default)]
pub(super) struct Manifests<'a> {
    pub judged: Vec<Manifest<'a>>,
    /// The number of objects that profiles do not evaluate, by kind.
    pub others: BTreeMap<String, usize>,
    /// Objects that cannot be evaluated.
    pub problems: Vec<Problem>,
}

/// The pods and workloads among some objects.
pub(super) fn judged<'a>(objects: Vec<Object<'a>>, namespace: Option<&str>) -> Manifests<'a> {
    let Manifests { judged: mut found, mut others, mut problems } = Manifests::default();
    for object in objects {
        let kind = judge::workload(&object.api_version, &object.kind);
        if kind.is_none() && !judge::is_pod(&object.api_version, &object.kind) {
            match judge::no_longer_served(&object.api_version, &object.kind) {
                Some(why) => problems.push(object.problem("apiVersion", why)),
                None => *others.entry(object.kind.clone()).or_default() += 1,
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
        found.push(Manifest { object, json, kind, namespace: name });
    }
    Manifests { judged: found, others, problems }
}

/// Profiles, and the namespaces in which they are evaluated.
pub(super) struct Ground {
    pub accepted: Vec<Accepted>,
    pub tenants: Vec<Tenant>,
    pub version: Minor,
    /// The namespaces for which the answers of profiles are unknown, with the reason.
    pub unknown: BTreeMap<String, Problem>,
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
            // All missing permissions are reported together.
            let ((), here) = report::both(may_list, live::tenants(&client, &missing).await)?;
            tenants.extend(here);
            live::profiles(&client).await
        })?;
        found.into_iter().map(profiles::accept_live).collect::<Result<_, _>>().map_err(Failure::CouldNotRun)?
    } else {
        profiles::all(&files::sources(&config.profiles)?).map_err(Failure::fatal)?
    };
    if accepted.is_empty() {
        return Err(could_not_run("at least one profile is required, and the cluster has none"));
    }
    if !config.parameters.is_empty() {
        let given = |profile: &mut ToolSecurityProfile| give(profile, &config.parameters, names);
        accepted = changed(accepted, &config.parameters, given)?;
    }
    let mut unknown = BTreeMap::new();
    let known: BTreeSet<_> = tenants.iter().map(|one| one.name.clone()).collect();
    for name in names.difference(&known) {
        if args.live {
            report::note(&format!(
                "note: namespace {name} is not in the cluster: it is treated as if each profile selected it"
            ));
        }
        match invented(name, &accepted) {
            Ok(tenant) => tenants.push(tenant),
            Err(problem) => drop(unknown.insert(name.clone(), problem)),
        }
    }
    Ok(Ground { accepted, tenants, version, unknown })
}

/// Sets the value of a parameter in namespaces, like an override in the profile.
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

/// The profiles after the change, compiled and checked again.
fn changed(
    accepted: Vec<Accepted>,
    values: &BTreeMap<String, IntOrText>,
    change: impl Fn(&mut ToolSecurityProfile),
) -> Result<Vec<Accepted>, Failure> {
    for name in values.keys() {
        let declares = |one: &Accepted| one.profile.spec.parameters.iter().any(|parameter| parameter.name == *name);
        if !accepted.iter().any(declares) {
            return Err(could_not_run(format!("--param {name}: no profile has this parameter")));
        }
    }
    let again = |one: Accepted| {
        let mut profile = one.profile.clone();
        change(&mut profile);
        if profile == one.profile { Ok(one) } else { profiles::accept_live(profile) }
    };
    accepted.into_iter().map(again).collect::<Result<_, _>>().map_err(Failure::CouldNotRun)
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
