//! A resource without a known schema.

use std::collections::BTreeMap;

use palisade_cel::schema::Kind;
use palisade_manifest::Severity;

use crate::{
    Category, Rule,
    cluster::Cluster,
    discovery,
    finding::{Findings, Found},
};

pub(super) static RULE: Rule = Rule {
    id: "types-not-checked",
    severity: Severity::Info,
    category: Category::Dangerous,
    title: "A resource without a known schema",
    why: "\
The resource is neither built in nor defined by a CustomResourceDefinition in these files. Palisade then cannot check the
fields and types that the policy uses, and finds no misspelt field. Lint the CustomResourceDefinition together with the
policy.

The finding is a warning if the API group is built in and has no such resource: the rule does not match anything.",
    bad: include_str!("types_not_checked.bad.yaml"),
    good: include_str!("types_not_checked.good.yaml"),
};

/// Whether a name is a wildcard.
fn is_pattern(name: &str) -> bool {
    name.contains('*')
}

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    let kinds = cluster.kinds();
    for policy in &cluster.policies {
        // By the rule, since one rule names many.
        let mut unknown = BTreeMap::<_, Vec<String>>::new();
        for rule in policy.rules() {
            for group in rule.groups.iter().filter(|group| !is_pattern(group)) {
                for resource in rule.resources.iter().filter(|name| !is_pattern(name) && !name.contains('/')) {
                    let defined = cluster.crds.iter().any(|crd| crd.json["spec"]["group"] == **group);
                    let missing = !defined
                        && discovery::has_group(kinds, group)
                        && discovery::versions(kinds, group, resource).next().is_none();
                    for version in rule.versions.iter().filter(|version| !is_pattern(version)) {
                        let of = |kind: &str| {
                            let (group, version, kind) = (group.clone(), version.clone(), kind.to_owned());
                            cluster.schemas.has(&Kind { group, version, kind })
                        };
                        if kinds.by_plural(group, version, resource).is_none_or(|known| !of(&known.kind)) {
                            let name = readable(group, version, resource);
                            unknown.entry((rule.path(), missing)).or_default().push(name);
                        }
                    }
                }
            }
        }
        for ((path, missing), names) in unknown {
            let names = names.join(", ");
            let (message, severity, help) = if missing {
                let message =
                    format!("Kubernetes {} has no resource {names}: the rule does not match it", cluster.minor);
                (message, Severity::Warning, "write its plural in lower case, such as pods")
            } else {
                let message = format!("no schema for {names}: types were not checked");
                (message, Severity::Info, "lint the CustomResourceDefinition with the policy")
            };
            let (severity, help) = (Some(severity), Some(help.to_owned()));
            let path = format!("{path}.resources");
            found.put(&policy.item, Found { path, message, help, severity, ..Found::default() });
        }
    }
}

/// A resource for people: `apps/v1 deployments`.
fn readable(group: &str, version: &str, resource: &str) -> String {
    if group.is_empty() { format!("{version} {resource}") } else { format!("{group}/{version} {resource}") }
}
