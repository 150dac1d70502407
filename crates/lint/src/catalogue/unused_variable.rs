//! A variable that nothing reads.

use std::collections::BTreeSet;

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Role, tree};

pub(super) static RULE: Rule = Rule {
    id: "unused-variable",
    severity: Severity::Info,
    category: Category::Dangerous,
    title: "A variable that nothing reads",
    why: "\
No other expression reads this variable. It costs nothing, for variables are evaluated when they are read; but it may be
the one that should have been read instead of another.",
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
                found.add(&policy.item, &expression.path, format!("nothing reads variables.{name}"));
            }
        }
    }
}
