//! An expression that may cost too much.

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
    title: "An expression that may cost too much",
    why: "\
An expression may cost 1,000,000, and all of a policy 10,000,000 for one request; what costs more fails. This is an
estimate of the worst case: each list of an object is taken to have 16 elements and each text 100 bytes, every branch is
taken, and what is read costs what the API server charges for it. It is not a measurement, and the API server makes none
for policies. Comprehensions inside of comprehensions are what costs: compute the inner list once, as a variable, or
compare with a map.",
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
                let message =
                    format!("may cost {} of {EXPRESSION}, with lists of {} elements", estimate.cost, cost::LIST);
                found.add(&policy.item, &expression.path, message);
            }
        }
        if total > POLICY {
            let message = format!("may cost {total} of {POLICY} in all, with lists of {} elements", cost::LIST);
            found.add(&policy.item, "metadata.name", message);
        }
    }
}

/// What an expression may cost (apiserver `pkg/apis/cel/config.go`, `PerCallLimit`).
const EXPRESSION: u64 = 1_000_000;
/// What all expressions of a policy may cost together for one request (`RuntimeCELCostBudget`).
const POLICY: u64 = 10_000_000;
