//! Kinds of other objects than pods and workloads that profiles evaluate.

use palisade_admission::{objects::Kinds, requests::Cluster};
use palisade_api::{ObjectKind, objects};
use serde_json::{Value as Json, json};

use crate::profiles::Accepted;

/// The kinds of some profiles.
#[derive(Clone, Debug, Default)]
pub struct ObjectKinds {
    all: Vec<ObjectKind>,
    listed: Vec<ObjectKind>,
}

impl ObjectKinds {
    /// Those that one of the profiles evaluates.
    pub fn of<'a>(accepted: impl IntoIterator<Item = &'a Accepted>) -> Self {
        let mut kinds = Self::default();
        for Accepted { checked, .. } in accepted {
            kinds.all.extend(checked.object_kinds());
            kinds.listed.extend(checked.listed_kinds());
        }
        kinds
    }

    /// All of them. Several profiles may evaluate one kind.
    pub fn all(&self) -> &[ObjectKind] {
        &self.all
    }

    /// Those whose objects are listed in a cluster: not Secrets, unless a custom check names them.
    pub fn listed(&self) -> &[ObjectKind] {
        &self.listed
    }

    /// The kind of an object, if profiles evaluate it. The API server converts requests in other versions.
    pub fn find(&self, known: &Kinds, api_version: &str, kind: &str) -> Option<&ObjectKind> {
        let group = group(api_version);
        let resource = known.by_kind(api_version, kind);
        if resource.is_some_and(|resource| !resource.namespaced) {
            return None;
        }
        let plural = match resource {
            Some(resource) => resource.plural.clone(),
            None => plural_of_check(group, kind).map_or_else(|| usual_plural(kind), str::to_owned),
        };
        self.all.iter().find(|one| one.group == group && one.resource == plural)
    }

    /// Defines the kind of an object without a schema, if profiles evaluate it and a cluster does not have it: its
    /// CustomResourceDefinition is not known.
    ///
    /// # Errors
    /// The cluster rejects the definition.
    pub fn define(&self, cluster: &mut Cluster, api_version: &str, kind: &str) -> Result<(), String> {
        let known = cluster.kinds();
        let group = group(api_version);
        let is_served = known.by_kind(api_version, kind).is_some();
        if is_served || group.is_empty() || known.resources().iter().any(|one| one.group == group && one.kind == kind) {
            return Ok(());
        }
        let Some(found) = self.find(known, api_version, kind) else { return Ok(()) };
        let definition = definition(found, api_version, kind);
        cluster.apply(definition).map(drop).map_err(|refused| crate::offline::text(&refused))
    }
}

fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// A definition without a schema: all fields are kept, and none has a default.
fn definition(of: &ObjectKind, api_version: &str, kind: &str) -> Json {
    let mut versions = of.versions.clone();
    let version = api_version.split_once('/').map_or(api_version, |(_, version)| version).to_owned();
    if !versions.contains(&version) {
        versions.push(version);
    }
    let versions = versions.iter().enumerate().map(|(index, name)| {
        json!({
            "name": name, "served": true, "storage": index == 0,
            "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
        })
    });
    let ObjectKind { group, resource, .. } = of;
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {
            "name": format!("{resource}.{group}"),
            // Only groups of Kubernetes need it.
            "annotations": {"api-approved.kubernetes.io": "unapproved, offline"},
        },
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {
                "plural": resource, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
            },
            "versions": versions.collect::<Vec<_>>(),
        },
    })
}

/// The plural name of a kind that a built-in check evaluates: that of Gateway is not the usual one.
fn plural_of_check(group: &str, kind: &str) -> Option<&'static str> {
    let mut kinds = objects::ALL.iter().flat_map(|check| check.kinds);
    kinds.find(|of| (of.group, of.kind, of.subresource) == (group, kind, "")).map(|of| of.resource)
}

/// The plural name of most kinds (`UnsafeGuessKindToResource` in apimachinery `pkg/api/meta/restmapper.go`).
fn usual_plural(kind: &str) -> String {
    let name = kind.to_lowercase();
    match name.as_bytes().last() {
        Some(b's') => format!("{name}es"),
        Some(b'y') => format!("{}ies", name.trim_end_matches('y')),
        _ => format!("{name}s"),
    }
}

#[cfg(test)]
mod tests {
    use palisade_cel::Minor;

    use super::*;

    fn kinds() -> ObjectKinds {
        let of = |group: &str, resource: &str| ObjectKind {
            group: group.to_owned(),
            versions: vec!["v1".to_owned()],
            resource: resource.to_owned(),
            subresources: Vec::new(),
            operations: Vec::new(),
        };
        let all = vec![
            of("networking.k8s.io", "ingresses"),
            of("example.org", "policies"),
            of("", "services"),
            of("gateway.networking.k8s.io", "gateways"),
        ];
        ObjectKinds { listed: all.clone(), all }
    }

    #[test]
    fn objects_of_evaluated_kinds_are_found_in_each_version() {
        let (kinds, known) = (kinds(), Kinds::builtin(Minor::DEFAULT));
        for (api_version, kind, expected) in [
            ("networking.k8s.io/v1", "Ingress", Some("ingresses")),
            ("example.org/v1", "Policy", Some("policies")),
            ("example.org/v2", "Policy", Some("policies")),
            ("example.com/v1", "Policy", None),
            ("v1", "Service", Some("services")),
            ("gateway.networking.k8s.io/v1beta1", "Gateway", Some("gateways")),
            ("v1", "Namespace", None),
            ("v1", "ConfigMap", None),
        ] {
            let found = kinds.find(&known, api_version, kind).map(|one| one.resource.as_str());
            assert_eq!(found, expected, "{api_version} {kind}");
        }
    }

    #[test]
    fn only_unknown_kinds_are_defined() {
        let (kinds, mut cluster) = (kinds(), palisade_gate::cluster(Minor::DEFAULT));
        for (api_version, kind, is_served) in [
            ("example.org/v2", "Policy", true),
            ("example.org/v1", "Policy", true),
            ("example.com/v1", "Policy", false),
            // No API server serves this version, which is no reason to define it.
            ("networking.k8s.io/v1beta1", "Ingress", false),
        ] {
            kinds.define(&mut cluster, api_version, kind).unwrap_or_else(|why| panic!("{why}"));
            assert_eq!(cluster.kinds().by_kind(api_version, kind).is_some(), is_served, "{api_version} {kind}");
        }
    }
}
