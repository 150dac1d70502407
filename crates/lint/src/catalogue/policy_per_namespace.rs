//! A copy of the same policy for each namespace.

use std::collections::BTreeMap;

use palisade_manifest::Severity;
use serde_json::Value as Json;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Policy};

pub(super) static RULE: Rule = Rule {
    id: "policy-per-namespace",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A copy of the same policy for each namespace",
    why: "\
Several policies differ only in their constants, and each is for one namespace. The API server matches each request against
all of them, and each API server compiles every one. Use one policy with a `paramKind` and a parameter object in each
namespace: its cost does not grow with the number of namespaces.",
    bad: include_str!("policy_per_namespace.bad.yaml"),
    good: include_str!("policy_per_namespace.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    let mut shapes = BTreeMap::<String, Vec<&Policy<'_>>>::new();
    for policy in cluster.policies.iter().filter(|policy| namespace(policy).is_some()) {
        shapes.entry(shape(policy)).or_default().push(policy);
    }
    for policies in shapes.into_values().filter(|policies| policies.len() >= FEWEST) {
        let message = format!("is one of {} policies that differ only in namespace and constants", policies.len());
        found.advise(&policies[0].item, "metadata.name", message, "merge them into one policy with a paramKind");
    }
}

/// Two may be a coincidence.
const FEWEST: usize = 3;

/// The one namespace that a policy is for.
fn namespace<'p>(policy: &'p Policy<'_>) -> Option<&'p str> {
    let selector = &policy.spec()["matchConstraints"]["namespaceSelector"];
    let by_label = selector["matchLabels"]["kubernetes.io/metadata.name"].as_str();
    let requirement = selector["matchExpressions"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["key"] == "kubernetes.io/metadata.name" && one["operator"] == "In"));
    let listed = requirement.and_then(|one| one["values"].as_array()).filter(|values| values.len() == 1);
    by_label.or_else(|| listed.and_then(|values| values[0].as_str()))
}

/// A policy without its constants.
fn shape(policy: &Policy<'_>) -> String {
    let mut shape = policy.spec()["matchConstraints"]["resourceRules"].to_string();
    for expression in &policy.expressions {
        shape.push('\n');
        shape.push_str(expression.path.as_str());
        // Quoted strings and digits are constants.
        for (index, part) in expression.source.split(['\'', '"']).enumerate() {
            if index % 2 == 0 {
                shape.extend(part.chars().filter(|c| !c.is_ascii_digit()));
            }
        }
    }
    for message in policy.spec()["validations"].as_array().into_iter().flatten() {
        shape.push_str(if matches!(message["message"], Json::Null) { "-" } else { "m" });
    }
    shape
}
