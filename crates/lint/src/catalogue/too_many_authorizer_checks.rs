//! More checks of an authorizer than an expression can pay.

use palisade_cel::{
    Position,
    ast::{Expr, Node},
};
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, tree};

pub(super) static RULE: Rule = Rule {
    id: "too-many-authorizer-checks",
    severity: Severity::Error,
    category: Category::Dangerous,
    title: "More checks of an authorizer than an expression can pay",
    why: "\
A check of an authorizer costs 350,000, and an expression may cost 1,000,000: the third check fails, whatever it says. In
a comprehension one is too much already. Put checks into variables of their own: each has the whole limit.",
    bad: include_str!("too_many_authorizer_checks.bad.yaml"),
    good: include_str!("too_many_authorizer_checks.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        for expression in &policy.expressions {
            let nodes = tree::nodes(&expression.ast.root);
            let is_check = |node: &Node| matches!(&node.expr, Expr::Call { function, target: Some(_), .. } if &**function == "check");
            let checks: Vec<_> = nodes.iter().filter(|node| is_check(node)).collect();
            let looped = nodes.iter().any(|node| match &node.expr {
                Expr::Comprehension(of) => tree::nodes(&of.step).into_iter().any(is_check),
                _ => false,
            });
            if checks.len() > 2 || looped {
                let at =
                    checks.get(2).or(checks.first()).map_or(Position::NONE, |node| expression.ast.position(node.id));
                let what = if looped { "in a comprehension" } else { "a third one" };
                let message = format!("{what}, a check of the authorizer exceeds what an expression may cost");
                found.add_at(
                    &policy.item,
                    &expression.path,
                    at,
                    message,
                    Some("put checks into variables of their own"),
                );
            }
        }
    }
}
