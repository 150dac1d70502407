//! A validation that denies no object, by a proof for all objects.

use palisade_manifest::Severity;

use super::proofs::Questions;
use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Role, tree};

pub(super) static RULE: Rule = Rule {
    id: "never-denies",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A validation that denies no object",
    why: "\
The validation is true for every object of the matched kinds, on creation and update, whatever their fields, parameters and
users are. Often an operator is the wrong one: `seconds >= 10 || seconds <= 300` is always true. Or the match conditions exclude
each object that the validation would deny.

The finding is proved: the expressions become formulas, a search finds no object for which the validation is false or fails,
and the steps of the search are checked. There is no finding if an expression is not understood, or the search takes too many
steps. Policies that also match deletions, subresources or custom resources, or have parameters of such a kind, are not examined.",
    bad: include_str!("never_denies.bad.yaml"),
    good: include_str!("never_denies.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        let Some(questions) = Questions::about(cluster, policy) else { continue };
        // If the match conditions exclude everything, that is the finding.
        if questions.never_match() {
            continue;
        }
        for expression in policy.expressions.iter().filter(|one| one.role == Role::Validation) {
            if tree::constant(&expression.ast.root).is_none() && questions.never_denies(&expression.source) {
                found.add(&policy.item, &expression.path, "is true for every object");
            }
        }
    }
}
