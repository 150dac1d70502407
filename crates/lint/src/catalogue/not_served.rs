//! An API kind or version that is not served.

use std::collections::BTreeMap;

use palisade_cel::Minor;
use palisade_manifest::{Severity, nearest};
use serde_json::Value as Json;

use crate::{
    Category, Extension, Rule,
    cluster::{Cluster, MAX_OBJECT},
    discovery,
    finding::Findings,
    item::Item,
};

pub(super) static RULE: Rule = Rule {
    id: "not-served",
    severity: Severity::Error,
    category: Category::Rejected,
    precedes_extension: true,
    title: "An API kind or version that is not served",
    why: "\
The API server does not serve this `apiVersion` or `kind` and returns `no matches for kind`. The version was removed or is
not available yet, or a name is misspelt. ValidatingAdmissionPolicy is `admissionregistration.k8s.io/v1` in all supported
versions. MutatingAdmissionPolicy is `v1` from Kubernetes 1.36 on. In 1.34 and 1.35 it is `v1beta1`, if the cluster
administrator enabled it. CustomResourceDefinition is `apiextensions.k8s.io/v1`.

This rule checks all objects in the input, including kinds that no other rule checks. Groups and kinds that do not resemble
any built-in one are assumed to be defined by CustomResourceDefinitions elsewhere.",
    bad: include_str!("not_served.bad.yaml"),
    good: include_str!("not_served.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (item, _) in cluster.said.iter().filter(|(item, _)| !item.generated) {
        if let Some(unserved) = unserved(cluster, item.api_version(), &item.kind) {
            found.advise(item, unserved.path, unserved.message, &unserved.help);
        }
    }
    // Many objects are of few kinds.
    let mut known = BTreeMap::new();
    for object in &cluster.skipped {
        let of = (object.api_version.as_str(), object.kind.as_str());
        if known.len() >= MAX_KINDS && !known.contains_key(&of) {
            continue;
        }
        let unserved = known.entry(of).or_insert_with(|| unserved(cluster, of.0, of.1));
        let Some(unserved) = unserved else { continue };
        // Only its annotations are read.
        let json = if object.node.span.len() > MAX_OBJECT { Json::Null } else { object.json().unwrap_or_default() };
        let item = Item { object, generated: false, kind: object.kind.clone(), json };
        found.advise(&item, unserved.path, unserved.message.clone(), &unserved.help);
    }
}

/// Maximum number of kinds that are checked: more than a cluster has.
const MAX_KINDS: usize = 2_000;

/// The error in a kind.
struct Unserved {
    path: &'static str,
    message: String,
    help: String,
}

fn unserved(cluster: &Cluster<'_>, api_version: &str, kind: &str) -> Option<Unserved> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    if version.is_empty() || kind.is_empty() {
        return None;
    }
    let kinds = cluster.kinds();
    let minor = cluster.minor;
    let of = |path, message: String, help: String| Some(Unserved { path, message, help });
    if group == "admissionregistration.k8s.io" && kind.contains("AdmissionPolicy") {
        let served = match minor {
            _ if kind.starts_with("Validating") || minor >= Minor::V1_36 => "v1",
            _ if minor >= Minor::V1_34 => "v1beta1",
            _ => "v1alpha1",
        };
        let message = format!("Kubernetes {minor} does not serve {kind} of {version}");
        return if version == served { None } else { of("apiVersion", message, format!("write {group}/{served}")) };
    }
    if is_known(cluster, group, kind) {
        // The API server serves a version that is not stable where its admin turned it on.
        let served: Vec<_> = kinds.resources().iter().filter(|r| r.group == group && r.kind == kind).collect();
        if served.is_empty() || served.iter().any(|r| r.version == version) {
            return None;
        }
        let newest = served.iter().find(|r| r.by_default).or(served.first())?;
        let message = format!("Kubernetes {minor} does not serve {kind} of {version}");
        return of("apiVersion", message, format!("write {}", newest.api_version()));
    }
    if let Some((_, _, instead)) = MOVED.iter().find(|(from, moved, _)| *from == group && *moved == kind) {
        let help = match *instead {
            "" => "it has no replacement; palisade migrate converts PodSecurityPolicies to profiles".to_owned(),
            instead => format!("write {instead}"),
        };
        return of("apiVersion", format!("Kubernetes {minor} does not serve {kind} of {api_version}"), help);
    }
    let message = format!("Kubernetes {minor} does not serve {kind} of {api_version}");
    if is_group(cluster, group) {
        // Kinds that only lists and subresources have are not created.
        let mut subresources = kinds.resources().iter().flat_map(|r| &r.subresources);
        if kind.ends_with("List") || subresources.any(|one| one.group == group && one.kind == kind) {
            return None;
        }
        let of_group = known(cluster).filter(|one| one.group == group).map(|one| one.kind);
        if let Some(near) = nearest(kind, of_group, MAX_DISTANCE).filter(|_| kind.len() > SHORT) {
            return of("kind", message, format!("did you mean {near}?"));
        }
        let elsewhere = known(cluster).find(|one| one.kind == kind && one.by_default)?;
        let group = if elsewhere.group.is_empty() { String::new() } else { format!("{}/", elsewhere.group) };
        return of("apiVersion", message, format!("did you mean {group}{}?", elsewhere.version));
    }
    // A group that is like one that has such a kind; others are those of definitions elsewhere.
    let groups = known(cluster).filter(|one| nearest(kind, [one.kind], MAX_DISTANCE).is_some()).map(|one| one.group);
    let near = nearest(group, groups, MAX_DISTANCE).filter(|_| group.len() > SHORT)?;
    of("apiVersion", message, format!("did you mean {near}?"))
}

/// Maximum number of letters by which a misspelt name may differ.
const MAX_DISTANCE: usize = 2;
/// Names up to this length resemble too many others.
const SHORT: usize = 4;

/// A kind that is built in, defined here, or added by the extension.
struct Known<'k> {
    group: &'k str,
    version: &'k str,
    kind: &'k str,
    by_default: bool,
}

fn known<'c>(cluster: &'c Cluster<'_>) -> impl Iterator<Item = Known<'c>> {
    let served = cluster.kinds().resources().iter();
    let served =
        served.map(|r| Known { group: &r.group, version: &r.version, kind: &r.kind, by_default: r.by_default });
    let added = cluster.extension.map_or(&[][..], Extension::kinds).iter();
    served.chain(added.map(|one| Known { group: one.group, version: one.version, kind: one.kind, by_default: true }))
}

fn is_known(cluster: &Cluster<'_>, group: &str, kind: &str) -> bool {
    known(cluster).any(|one| one.group == group && one.kind == kind)
}

fn is_group(cluster: &Cluster<'_>, group: &str) -> bool {
    let added = cluster.extension.map_or(&[][..], Extension::kinds);
    added.iter().any(|one| one.group == group) || discovery::has_group(cluster.kinds(), group)
}

/// Kinds that were moved to another group, or removed, by group and kind; and what to write instead
/// (<https://kubernetes.io/docs/reference/using-api/deprecation-guide/>).
const MOVED: &[(&str, &str, &str)] = &[
    ("extensions", "DaemonSet", "apps/v1"),
    ("extensions", "Deployment", "apps/v1"),
    ("extensions", "ReplicaSet", "apps/v1"),
    ("extensions", "Ingress", "networking.k8s.io/v1"),
    ("extensions", "NetworkPolicy", "networking.k8s.io/v1"),
    ("extensions", "PodSecurityPolicy", ""),
    ("policy", "PodSecurityPolicy", ""),
];
