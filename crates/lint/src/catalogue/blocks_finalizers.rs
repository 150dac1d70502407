//! An update is denied of what is being deleted.

use palisade_manifest::Severity;

use super::denies;
use crate::policy::Role;
use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "blocks-finalizers",
    severity: Severity::Warning,
    category: Category::Regret,
    title: "An update is denied of what is being deleted",
    why: "\
An object that was there before the policy may violate it. Every update of it is denied then, also that which removes its
finalizer: it can never be deleted, nor the namespace that it is in. Let pass what changes nothing that is judged
(`object.spec == oldObject.spec`), or what is being deleted (`has(object.metadata.deletionTimestamp)`).",
    bad: include_str!("blocks_finalizers.bad.yaml"),
    good: include_str!("blocks_finalizers.good.yaml"),
    check: |cluster, found| {
    for policy in cluster.policies.iter().filter(|policy| denies(cluster, policy)) {
        let guarded = policy.mentions("deletionTimestamp") || policy.mentions("oldObject");
        let has_rules = policy.expressions.iter().any(|one| one.role == Role::Validation);
        if let Some(rule) = policy.rules().iter().find(|rule| rule.on("UPDATE"))
            && has_rules
            && !guarded
        {
            found.advise(
                &policy.item,
                &format!("{}.operations", rule.path()),
                "denies every update of an object that violates it, also one that removes a finalizer",
                "let pass has(object.metadata.deletionTimestamp), or what leaves the spec as it was",
            );
        }
    }
},
};
