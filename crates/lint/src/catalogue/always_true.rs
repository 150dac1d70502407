//! An expression that is always true.

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Role, tree};

pub(super) static RULE: Rule = Rule {
    id: "always-true",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "An expression that is always true",
    why: "\
The result does not depend on the request. A validation that is always true denies no request, and a match condition that is
always true excludes none.",
    bad: include_str!("always_true.bad.yaml"),
    good: include_str!("always_true.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        for expression in &policy.expressions {
            let judged = matches!(expression.role, Role::Validation | Role::Condition);
            if judged && tree::constant(&expression.ast.root) == Some(true) {
                found.add(&policy.item, &expression.path, "is always true");
            }
        }
    }
}
