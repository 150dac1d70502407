//! A resource without a known schema.

use std::collections::BTreeMap;

use palisade_cel::{
    ast::{Expr, Literal, Node},
    schema::Kind,
};
use palisade_manifest::Severity;

use crate::{
    Category, Rule,
    cluster::Cluster,
    discovery,
    finding::{Findings, Found},
    policy::{Policy, ResourceRule},
    tree,
};

pub(super) static RULE: Rule = Rule {
    id: "types-not-checked",
    severity: Severity::Info,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A resource without a known schema",
    why: "\
The resource is neither built in nor defined by a CustomResourceDefinition in these files. Palisade then cannot check the
fields and types that the policy uses, and finds no misspelt field. Lint the CustomResourceDefinition together with the
policy.

A policy that reads only `dyn(object)` and the metadata of every object needs no schema. The API server does not check the
fields of `dyn(object)` for any kind.

The finding is a warning if the API group is built in and the API server does not serve the resource, or not in this
version: the rule does not match it. If the rule also names a version that is served, the finding is a note.",
    bad: include_str!("types_not_checked.bad.yaml"),
    good: include_str!("types_not_checked.good.yaml"),
};

/// The reason why there is no schema.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reason {
    /// A built-in group has no such resource.
    NoResource,
    /// Another built-in group has it.
    OtherGroup(String),
    /// The API server serves the resource in other versions only, and none that the rule names.
    NotServed,
    /// The same, and the rule names a version that is served.
    Superseded,
    /// A CustomResourceDefinition elsewhere may define it.
    Unknown,
}

/// Groups that Kubernetes had, and that no supported version serves.
const FORMER: [&str; 3] = ["auditregistration.k8s.io", "extensions", "settings.k8s.io"];

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        let is_typed = reads_types(policy);
        // One finding for each rule: a rule can name many resources.
        let mut unknown = BTreeMap::<_, Vec<String>>::new();
        for rule in policy.rules() {
            for (group, version, resource) in named(&rule) {
                let found = reason(cluster, &rule, (group, version, resource));
                if let Some(reason) = found.filter(|reason| is_typed || *reason != Reason::Unknown) {
                    unknown.entry((rule.path(), reason)).or_default().push(readable(group, version, resource));
                }
            }
        }
        for ((path, reason), names) in unknown {
            let (names, minor) = (names.join(", "), cluster.minor);
            let (message, severity, help) = match reason {
                Reason::NoResource => (
                    format!("Kubernetes {minor} has no resource {names}: the rule does not match it"),
                    Severity::Warning,
                    "write its plural in lower case, such as pods".to_owned(),
                ),
                Reason::OtherGroup(group) => (
                    format!("Kubernetes {minor} has no resource {names}: the rule does not match it"),
                    Severity::Warning,
                    format!("it is in the API group {group:?}"),
                ),
                Reason::NotServed => (
                    format!("Kubernetes {minor} does not serve {names}: the rule does not match it"),
                    Severity::Warning,
                    "add the version that is served".to_owned(),
                ),
                Reason::Superseded => (
                    format!("Kubernetes {minor} does not serve {names}: only older clusters need this version"),
                    Severity::Info,
                    "remove the version if no such cluster has the policy".to_owned(),
                ),
                Reason::Unknown => (
                    format!("no schema for {names}: types were not checked"),
                    Severity::Info,
                    "lint the CustomResourceDefinition with the policy".to_owned(),
                ),
            };
            let (severity, help) = (Some(severity), Some(help));
            let path = format!("{path}.resources");
            found.put(&policy.item, Found { path, message, help, severity, ..Found::default() });
        }
    }
}

/// Whether an expression of a policy has a type that depends on the schema of the matched resource.
fn reads_types(policy: &Policy<'_>) -> bool {
    policy.expressions.iter().any(|expression| needs_schema(&expression.ast.root))
}

/// Fields of `metadata` that every object has, with the same types.
const METADATA: [&str; 13] = [
    "annotations",
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "finalizers",
    "generateName",
    "generation",
    "labels",
    "name",
    "namespace",
    "ownerReferences",
    "resourceVersion",
    "uid",
];

fn needs_schema(node: &Node) -> bool {
    let is_object =
        |node: &Node| matches!(tree::chain(node), Some(("object" | "oldObject", fields)) if fields.is_empty());
    if let Some(("object" | "oldObject", fields)) = tree::asking_chain(node) {
        return match fields[..] {
            ["apiVersion" | "kind"] => false,
            ["metadata", field, ..] => !METADATA.contains(&field),
            _ => true,
        };
    }
    match &node.expr {
        Expr::Call { function, args, .. } if &**function == "dyn" => {
            args.iter().any(|arg| !is_object(arg) && needs_schema(arg))
        }
        // Whether there is an object.
        Expr::Call { function, args, .. } if matches!(&**function, "_==_" | "_!=_") => {
            let is_null = |node: &Node| matches!(node.expr, Expr::Literal(Literal::Null));
            let plain = |node: &Node| is_object(node) || is_null(node);
            !(args.iter().all(plain) && args.iter().any(is_null)) && args.iter().any(needs_schema)
        }
        _ => node.children().any(needs_schema),
    }
}

/// The resources of a rule that are no wildcards, as group, version and plural.
fn named(rule: &ResourceRule) -> impl Iterator<Item = (&str, &str, &str)> {
    fn plain(names: &[String]) -> impl Iterator<Item = &str> {
        names.iter().map(String::as_str).filter(|name| !name.contains('*'))
    }
    plain(&rule.groups).flat_map(move |group| {
        let resources = plain(&rule.resources).filter(|name| !name.contains('/'));
        resources.flat_map(move |resource| plain(&rule.versions).map(move |version| (group, version, resource)))
    })
}

/// The reason why there is no schema of a resource, if there is none.
fn reason(
    cluster: &Cluster<'_>,
    rule: &ResourceRule,
    (group, version, resource): (&str, &str, &str),
) -> Option<Reason> {
    let kinds = cluster.kinds();
    let has_schema = |kind: &str| {
        let (group, version, kind) = (group.to_owned(), version.to_owned(), kind.to_owned());
        cluster.schemas.has(&Kind { group, version, kind })
    };
    if kinds.by_plural(group, version, resource).is_some_and(|known| has_schema(&known.kind)) {
        return None;
    }
    if cluster.crds.iter().any(|crd| crd.json["spec"]["group"] == *group) {
        return Some(Reason::Unknown);
    }
    let mut served = discovery::versions(kinds, group, resource).map(|one| &*one.version).peekable();
    Some(if served.peek().is_some() {
        let superseded = served.any(|one| rule.versions.iter().any(|named| named == "*" || named == one));
        if superseded { Reason::Superseded } else { Reason::NotServed }
    } else if discovery::has_group(kinds, group) {
        match kinds.resources().iter().find(|one| one.by_default && one.plural == resource) {
            Some(other) => Reason::OtherGroup(other.group.clone()),
            None => Reason::NoResource,
        }
    } else if FORMER.contains(&group) {
        Reason::NotServed
    } else {
        Reason::Unknown
    })
}

/// A resource for people: `apps/v1 deployments`.
fn readable(group: &str, version: &str, resource: &str) -> String {
    if group.is_empty() { format!("{version} {resource}") } else { format!("{group}/{version} {resource}") }
}
