//! An expression that may exceed the cost limit.

use palisade_manifest::Severity;

use crate::{
    Category, Rule,
    cluster::Cluster,
    cost::{self, Sizes},
    finding::Findings,
    policy::Role,
};

pub(super) static RULE: Rule = Rule {
    id: "near-cost-limit",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "An expression that may exceed the cost limit",
    why: "\
For one request, the cost limit of an expression is 1,000,000, and the limit of all expressions of a policy together is
10,000,000. Evaluation fails above the limit. The finding is an estimate of the worst case, not a measurement: each list of
an object has 16 elements, each string has 100 bytes, every branch is taken, and each operation has the cost that the API
server charges. The API server makes no such estimate for policies. Nested comprehensions are usually the cause: compute the
inner list once in a variable, or use a map.",
    bad: include_str!("near_cost_limit.bad.yaml"),
    good: include_str!("near_cost_limit.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        let mut sizes = Sizes::new();
        let mut total = 0_u64;
        for expression in &policy.expressions {
            let estimate = cost::estimate(&expression.ast.root, &sizes);
            if let Role::Variable(name) = &expression.role {
                sizes.insert(name.clone(), estimate.size);
            }
            total = total.saturating_add(estimate.cost);
            if estimate.cost > EXPRESSION {
                let message = format!(
                    "may cost {} of at most {EXPRESSION}, with lists of {} elements",
                    estimate.cost,
                    cost::LIST
                );
                found.add(&policy.item, &expression.path, message);
            }
        }
        if total > POLICY {
            let message =
                format!("may cost {total} of at most {POLICY} in total, with lists of {} elements", cost::LIST);
            found.add(&policy.item, "metadata.name", message);
        }
    }
}

/// The cost limit of an expression (apiserver `pkg/apis/cel/config.go`, `PerCallLimit`).
const EXPRESSION: u64 = 1_000_000;
/// The cost limit of all expressions of a policy together, for one request (`RuntimeCELCostBudget`).
const POLICY: u64 = 10_000_000;
