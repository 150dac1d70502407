//! Authorizer checks that exceed the cost limit.

use palisade_cel::{
    Position,
    ast::{Expr, Node},
};
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "too-many-authorizer-checks",
    severity: Severity::Error,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "Authorizer checks that exceed the cost limit",
    why: "\
An authorizer check costs 350,000, and the limit of an expression is 1,000,000. The third check in an expression therefore
always fails. In a comprehension, a single check is too much. Move each check to a separate variable: the limit applies to
each variable separately.",
    bad: include_str!("too_many_authorizer_checks.bad.yaml"),
    good: include_str!("too_many_authorizer_checks.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        for expression in &policy.expressions {
            let nodes: Vec<_> = expression.ast.root.descendants().collect();
            let is_check = |node: &Node| matches!(&node.expr, Expr::Call { function, target: Some(_), .. } if &**function == "check");
            let checks: Vec<_> = nodes.iter().filter(|node| is_check(node)).collect();
            let looped = nodes.iter().any(|node| match &node.expr {
                Expr::Comprehension(of) => of.step.descendants().any(is_check),
                _ => false,
            });
            if checks.len() > 2 || looped {
                let at =
                    checks.get(2).or(checks.first()).map_or(Position::NONE, |node| expression.ast.position(node.id));
                let what = if looped { "an authorizer check in a comprehension" } else { "a third authorizer check" };
                let message = format!("{what} exceeds the cost limit of an expression");
                found.add_at(
                    &policy.item,
                    &expression.path,
                    at,
                    message,
                    Some("move each check to a separate variable"),
                );
            }
        }
    }
}
