//! A mistake of types.

use palisade_manifest::Severity;

use crate::policy::Role;
use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "type-check",
    severity: Severity::Warning,
    category: Category::Warned,
    title: "A mistake of types",
    why: "\
The API server takes the policy, and then writes this to `status.typeChecking`: an expression does not fit the schema of
a kind that the policy matches. It will fail when an object of that kind comes, which denies with `failurePolicy: Fail`.
A policy for several kinds that have different fields is better made one for each, or reads with `dyn(object)`.",
    bad: include_str!("type_check.bad.yaml"),
    good: include_str!("type_check.good.yaml"),
    check: |cluster, found| {
        for policy in cluster.policies.iter().filter(|policy| policy.item.kind.starts_with("Validating")) {
            let Some(check) = policy.check(cluster) else { continue };
            let checked = |role: &Role| matches!(role, Role::Validation | Role::Message);
            for expression in policy.expressions.iter().filter(|expression| checked(&expression.role)) {
                for (kind, issues) in check.issues(&expression.source) {
                    for issue in issues {
                        let message = format!("{} ({kind})", issue.message);
                        found.add_at(&policy.item, &expression.path, issue.position, message, issue.help.as_deref());
                    }
                }
            }
        }
    },
};
