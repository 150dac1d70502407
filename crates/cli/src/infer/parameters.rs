//! Parameters by data: a label, an annotation or the name of a namespace that equals the ids or the paths that its pods
//! use.

use std::collections::{BTreeMap, BTreeSet};

use palisade_checks::defaults::CONTAINER_LISTS;
use palisade_kube_json::json::set;
use serde::Serialize;
use serde_json::{Value as Json, json};

use crate::{
    namespaces::Tenant,
    proposal::{self, Case, Place},
};

/// A source counts if it equals this share of the values, in percent.
const SHARE: usize = 95;
/// A source counts if this number of namespaces have different values.
const NAMESPACES: usize = 3;

/// The largest length of the part of a key in the name of a parameter.
const MAX_NAME: usize = 48;

/// A parameter that the namespaces have.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Inferred {
    /// Its name.
    pub name: String,
    /// Its declaration in a profile.
    #[serde(skip)]
    pub declaration: Json,
    /// The source, in words.
    pub source: String,
    /// The settings that use it.
    pub settings: Vec<Explained>,
}

/// A setting with a parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Explained {
    /// The path below `spec`.
    pub path: &'static str,
    /// The value there, or the one to add to the list there.
    pub value: Json,
    /// The number of pairs of a namespace and a value of it.
    pub pairs: usize,
    /// The number of pairs that the parameter equals.
    pub equal: usize,
}

/// The source of a value.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Source {
    Annotation(String),
    Label(String),
    /// The name without this prefix.
    Name(String),
}

impl Source {
    fn value<'a>(&self, tenant: &'a Tenant) -> Option<&'a str> {
        let found = match self {
            Self::Annotation(key) => tenant.annotations.get(key)?,
            Self::Label(key) => tenant.labels.get(key)?,
            Self::Name(prefix) => tenant.name.strip_prefix(prefix.as_str())?,
        };
        Some(found.trim()).filter(|text| !text.is_empty())
    }

    fn in_words(&self) -> String {
        match self {
            Self::Annotation(key) => format!("annotation {key}"),
            Self::Label(key) => format!("label {key}"),
            Self::Name(prefix) if prefix.is_empty() => "the name of the namespace".to_owned(),
            Self::Name(prefix) => format!("the name of the namespace without {prefix}"),
        }
    }

    /// The declaration of the parameter in a profile.
    fn declaration(&self, name: &str, is_id: bool) -> Json {
        let source = match self {
            Self::Annotation(key) => json!({"namespaceAnnotation": key}),
            Self::Label(key) => json!({"namespaceLabel": key}),
            Self::Name(prefix) => json!({"namespaceNameTrimPrefix": prefix}),
        };
        if is_id {
            // 0 is root.
            json!({"name": name, "type": "Integer", "sources": [source], "minimum": 1})
        } else {
            json!({"name": name, "type": "String", "sources": [source]})
        }
    }

    /// The name of the parameter.
    fn parameter(&self) -> String {
        let key = match self {
            Self::Annotation(key) | Self::Label(key) => key.rsplit('/').next().unwrap_or_default(),
            Self::Name(_) => "tenant",
        };
        let mut name = String::new();
        for part in key.split(|c: char| !c.is_ascii_alphanumeric()) {
            let (first, rest) = part.split_at(part.len().min(1));
            let first = if name.is_empty() { first.to_ascii_lowercase() } else { first.to_ascii_uppercase() };
            name.extend([&*first, rest]);
        }
        // A name has at most 63 characters, and may get a number.
        name.truncate(MAX_NAME);
        if name.starts_with(|c: char| c.is_ascii_lowercase()) { name } else { format!("value{name}") }
    }
}

/// The order of the two types of parameters from one source.
const IS_ID: u8 = 0;
const IS_PART: u8 = 1;

/// A setting of ids.
struct Ids {
    /// Its path.
    path: &'static str,
    /// The field of a security context.
    field: &'static str,
    /// Whether only pods have the field.
    of_pod: bool,
    /// The rule. MustRunAs sets the id in pods without one.
    rule: &'static str,
}

const IDS: [Ids; 3] = [
    Ids { path: "users.runAsUser", field: "runAsUser", of_pod: false, rule: "MustRunAs" },
    Ids { path: "users.runAsGroup", field: "runAsGroup", of_pod: false, rule: "MayRunAs" },
    Ids { path: "users.fsGroup", field: "fsGroup", of_pod: true, rule: "MayRunAs" },
];

/// Namespaces, each with a value that one of its pods has.
#[derive(Default)]
struct Values<'a> {
    pairs: BTreeSet<(&'a str, String)>,
    /// The workloads that have one.
    workloads: BTreeSet<&'a Place>,
    /// Whether one of them writes to the path.
    is_written: bool,
}

/// The parameters with which settings become stricter, in these namespaces.
pub(super) fn infer(workloads: &BTreeMap<Place, Vec<Case>>, tenants: &[Tenant]) -> Vec<Inferred> {
    let tenants: BTreeMap<_, _> = tenants.iter().map(|one| (one.name.as_str(), one)).collect();
    let sources = sources(&tenants);
    let (mut ids, mut paths) = (BTreeMap::<_, Values<'_>>::new(), BTreeMap::<_, Values<'_>>::new());
    for (place, cases) in workloads {
        for pod in cases.iter().map(Case::pod) {
            for Ids { path, field, of_pod, .. } in IDS {
                let containers = CONTAINER_LISTS.iter().filter(|_| !of_pod).flat_map(|list| items(&pod["spec"][*list]));
                let contexts = [&pod["spec"]].into_iter().chain(containers).map(|one| &one["securityContext"]);
                for id in contexts.filter_map(|one| one[field].as_i64()) {
                    ids.entry(path).or_default().add(place, id.to_string());
                }
            }
            for volume in items(&pod["spec"]["volumes"]) {
                // A pod must supply neither a pattern nor a path that a profile cannot have.
                let Some(Ok(path)) = volume["hostPath"]["path"].as_str().map(proposal::text) else { continue };
                let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
                if !path.starts_with('/') || parts.iter().any(|part| [".", ".."].contains(part)) {
                    continue;
                }
                for (index, part) in parts.iter().enumerate().skip(1) {
                    let values = paths.entry(format!("/{}", parts[..index].join("/"))).or_default();
                    values.is_written |= proposal::is_written(&pod, volume);
                    values.add(place, (*part).to_owned());
                }
            }
        }
    }
    let mut found = BTreeMap::<_, Vec<Explained>>::new();
    for Ids { path, rule, .. } in IDS {
        let Some(values) = ids.get(path) else { continue };
        let is_usual = values.workloads.len() * 100 >= workloads.len() * SHARE;
        if rule == "MustRunAs" && !is_usual {
            continue;
        }
        if let Some((source, equal)) = best(&sources, values, &tenants, true) {
            let id = format!("${}", sources[source]);
            let value = json!({"rule": rule, "ranges": [{"min": id, "max": id}]});
            let pairs = values.pairs.len();
            found.entry((source, IS_ID)).or_default().push(Explained { path, value, pairs, equal });
        }
    }
    for (above, values) in &paths {
        let Some((source, equal)) = best(&sources, values, &tenants, false) else { continue };
        if proposal::is_of_the_node(above, values.is_written) {
            continue;
        }
        let mut value = json!({"pathPrefix": format!("{above}/${}", sources[source])});
        if !values.is_written {
            set(&mut value, &["readOnly"], true);
        }
        let (path, pairs) = ("volumes.hostPaths", values.pairs.len());
        found.entry((source, IS_PART)).or_default().push(Explained { path, value, pairs, equal });
    }
    let mut inferred: Vec<Inferred> = Vec::new();
    for ((source, kind), settings) in found {
        // One parameter has one type: an id comes first.
        if inferred.iter().all(|one| one.name != sources[source]) {
            inferred.push(Inferred {
                name: sources[source].clone(),
                declaration: source.declaration(&sources[source], kind == IS_ID),
                source: source.in_words(),
                settings,
            });
        }
    }
    inferred
}

impl<'a> Values<'a> {
    fn add(&mut self, place: &'a Place, value: String) {
        self.pairs.insert((&place.0, value));
        self.workloads.insert(place);
    }
}

/// The sources that each namespace has, with names of parameters.
fn sources(tenants: &BTreeMap<&str, &Tenant>) -> BTreeMap<Source, String> {
    let Some(first) = tenants.values().next() else { return BTreeMap::new() };
    let mut found: Vec<_> = first.annotations.keys().cloned().map(Source::Annotation).collect();
    // It has the name.
    let labels = first.labels.keys().filter(|key| *key != "kubernetes.io/metadata.name");
    found.extend(labels.cloned().map(Source::Label));
    let common = |one: &str| one.bytes().zip(first.name.bytes()).take_while(|(a, b)| a == b).count();
    let length = tenants.keys().map(|name| common(name)).min().unwrap_or_default();
    let prefix = first.name.get(..length).and_then(|common| common.rfind('-')).map_or("", |end| &first.name[..=end]);
    found.push(Source::Name(prefix.to_owned()));
    found.retain(|source| tenants.values().all(|tenant| source.value(tenant).is_some()));
    let mut names = BTreeSet::new();
    let named = |source: Source| {
        let name = source.parameter();
        let numbered = (2..).map(|number| format!("{name}{number}"));
        let name = [name.clone()].into_iter().chain(numbered).find(|name| names.insert(name.clone()));
        (source, name.unwrap_or_default())
    };
    found.into_iter().map(named).collect()
}

/// The source that equals the most values, with their number, if they are enough.
fn best<'s>(
    sources: &'s BTreeMap<Source, String>,
    values: &Values<'_>,
    tenants: &BTreeMap<&str, &Tenant>,
    is_id: bool,
) -> Option<(&'s Source, usize)> {
    // A namespace with another value would be denied everything.
    let is_valid = |text: &str| {
        if is_id {
            text.parse::<i64>().is_ok_and(|id| id > 0)
        } else {
            !text.contains('/') && ![".", ".."].contains(&text)
        }
    };
    let fits = |source: &&Source| tenants.values().all(|tenant| source.value(tenant).is_some_and(is_valid));
    let rated = sources.keys().filter(fits).filter_map(|source| {
        let equal = values.pairs.iter().filter(|(namespace, value)| {
            tenants.get(namespace).and_then(|tenant| source.value(tenant)) == Some(value.as_str())
        });
        let different: BTreeSet<_> = equal.clone().map(|(_, value)| value).collect();
        let count = equal.count();
        (different.len() >= NAMESPACES && count * 100 >= values.pairs.len() * SHARE).then_some((source, count))
    });
    rated.min_by_key(|(source, count)| (std::cmp::Reverse(*count), *source))
}

fn items(list: &Json) -> impl Iterator<Item = &Json> {
    list.as_array().into_iter().flatten()
}
