//! A validation that no object passes, by a proof for all objects.

use palisade_manifest::Severity;

use super::proofs::Questions;
use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Role, tree};

pub(super) static RULE: Rule = Rule {
    id: "always-denies",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A validation that no object passes",
    why: "\
The validation is false or fails for every object of the matched kinds, on creation and update, whatever their fields,
parameters and users are. Often an operator is the wrong one: `type == 'NodePort' && type == 'LoadBalancer'` is never true.

The finding is proved, like those of never-denies, and for the same policies. A constant such as `false`
may be intended and is not reported.",
    bad: include_str!("always_denies.bad.yaml"),
    good: include_str!("always_denies.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        let Some(questions) = Questions::about(cluster, policy) else { continue };
        for expression in policy.expressions.iter().filter(|one| one.role == Role::Validation) {
            if tree::constant(&expression.ast.root).is_none() && questions.always_denies(&expression.source) {
                found.add(&policy.item, &expression.path, "is true for no object");
            }
        }
    }
}
