//! Match conditions that exclude every object, by a proof for all objects.

use palisade_manifest::Severity;

use super::proofs::Questions;
use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Role, tree};

pub(super) static RULE: Rule = Rule {
    id: "never-matches",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "Match conditions that exclude every object",
    why: "\
For every object of the matched kinds, on creation and update, at least one match condition is false: the policy has no
effect. Match conditions are combined with `&&`. Two conditions for two kinds of objects exclude both kinds.

The finding is proved, like those of never-denies, and for the same policies.",
    bad: include_str!("never_matches.bad.yaml"),
    good: include_str!("never_matches.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        let conditions: Vec<_> = policy.expressions.iter().filter(|one| one.role == Role::Condition).collect();
        // never-reached reports a condition that is false.
        if conditions.iter().any(|one| tree::constant(&one.ast.root) == Some(false)) {
            continue;
        }
        let Some(last) = conditions.last() else { continue };
        if Questions::about(cluster, policy).is_some_and(|questions| questions.never_match()) {
            let with = if conditions.len() > 1 { ", together with the other match conditions," } else { "" };
            found.add(&policy.item, &last.path, format!("excludes{with} every object: the policy has no effect"));
        }
    }
}
