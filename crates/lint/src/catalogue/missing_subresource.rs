//! A subresource by which the policy can be passed.

use palisade_manifest::Severity;

use crate::policy::ResourceRule;
use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "missing-subresource",
    severity: Severity::Warning,
    category: Category::Regret,
    title: "A subresource by which the policy can be passed",
    why: "\
What the expressions look at can also be changed through a subresource that the rules do not match: a container through
`pods/ephemeralcontainers`, its resources through `pods/resize`, the number of replicas through `deployments/scale`.
`resources: [\"*\"]` matches no subresource. Name it, or `*/*`.",
    bad: include_str!("missing_subresource.bad.yaml"),
    good: include_str!("missing_subresource.good.yaml"),
    check: |cluster, found| {
        for policy in &cluster.policies {
            let rules = policy.rules();
            let writes = |rule: &ResourceRule| rule.on("CREATE") || rule.on("UPDATE");
            for (group, resource, subresource, fields) in GAPS {
                let plain = rules.iter().find(|rule| writes(rule) && rule.covers(group, resource));
                let full = format!("{resource}/{subresource}");
                let covered = rules.iter().any(|rule| rule.on("UPDATE") && rule.covers(group, &full));
                let reads = fields.iter().any(|field| policy.reads(field));
                if let Some(rule) = plain.filter(|rule| !covered && reads && rule.names.is_empty()) {
                    let message =
                        format!("what is checked of {resource} can be changed through {full}, which is not matched");
                    let help = format!("add {full} to the resources, with operation UPDATE");
                    found.advise(&policy.item, &format!("{}.resources", rule.path()), message, &help);
                }
            }
        }
    },
};

/// Group, resource, subresource, and the fields that the subresource changes.
const GAPS: [(&str, &str, &str, &[&str]); 5] = [
    ("", "pods", "ephemeralcontainers", &["containers", "initContainers", "ephemeralContainers"]),
    ("", "pods", "resize", &["resources"]),
    ("apps", "deployments", "scale", &["replicas"]),
    ("apps", "statefulsets", "scale", &["replicas"]),
    ("apps", "replicasets", "scale", &["replicas"]),
];
