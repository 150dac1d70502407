//! An object that is null for a matched operation.

use palisade_manifest::Severity;

use super::denies;
use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::Findings,
    policy::{Expression, Role},
    tree,
};

pub(super) static RULE: Rule = Rule {
    id: "null-object",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "An object that is null for a matched operation",
    why: "\
`object` is null on `DELETE`, and `oldObject` is null on `CREATE`. Reading a field of null fails, and `failurePolicy: Fail`
then denies the request. Do not match the operation, or check `request.operation` first.",
    bad: include_str!("null_object.bad.yaml"),
    good: include_str!("null_object.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| denies(cluster, policy)) {
        let rules = policy.rules();
        for (operation, object) in [("DELETE", "object"), ("CREATE", "oldObject")] {
            let Some(rule) = rules.iter().find(|rule| rule.on(operation)) else { continue };
            let guards = ["request.operation".to_owned(), format!("{object} == null"), format!("{object} != null")];
            if guards.iter().any(|guard| policy.mentions(guard)) {
                continue;
            }
            let reads = |expression: &&Expression| {
                matches!(expression.role, Role::Validation | Role::Variable(_) | Role::Condition)
                    && expression.ast.root.descendants().any(|node| {
                        tree::chain(node).is_some_and(|(root, fields)| root == object && !fields.is_empty())
                    })
            };
            if let Some(expression) = policy.expressions.iter().find(reads) {
                let message = format!("reads {object}, which is null on {operation}; {} matches it", rule.path());
                let help = "check request.operation first, or do not match the operation";
                found.advise(&policy.item, &expression.path, message, help);
            }
        }
    }
}
