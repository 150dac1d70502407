//! An unused variable.

use std::collections::BTreeSet;

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Role, tree};

pub(super) static RULE: Rule = Rule {
    id: "unused-variable",
    severity: Severity::Info,
    category: Category::Useless,
    precedes_extension: false,
    title: "An unused variable",
    why: "\
No other expression reads this variable. It has no cost, because variables are evaluated only when they are read. An
expression may read another variable by mistake.",
    bad: include_str!("unused_variable.bad.yaml"),
    good: include_str!("unused_variable.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        let read: BTreeSet<_> = policy.nodes().filter_map(|(_, node)| tree::variable(node)).collect();
        for expression in &policy.expressions {
            if let Role::Variable(name) = &expression.role
                && !read.contains(name.as_str())
            {
                found.add(&policy.item, &expression.path, format!("variables.{name} is not used"));
            }
        }
    }
}
