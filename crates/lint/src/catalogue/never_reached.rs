//! A part of an expression that is never reached.

use palisade_cel::ast::{Expr, Node};
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, policy::Role, tree};

pub(super) static RULE: Rule = Rule {
    id: "never-reached",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A part of an expression that is never reached",
    why: "\
An earlier condition already determines the result. If a match condition is always false, the policy has no effect. A
validation that is always false denies every matched request; this may be intended and is not reported.",
    bad: include_str!("never_reached.bad.yaml"),
    good: include_str!("never_reached.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        for expression in &policy.expressions {
            let root = &expression.ast.root;
            if tree::constant(root).is_some() {
                if expression.role == Role::Condition && tree::constant(root) == Some(false) {
                    found.add(&policy.item, &expression.path, "is always false: the policy has no effect");
                }
                continue;
            }
            for node in root.descendants() {
                if let Some(unreached) = unreached(node) {
                    let at = expression.ast.position(unreached.id);
                    found.add_at(&policy.item, &expression.path, at, "is never reached", None);
                }
            }
        }
    }
}

/// The part that a node never evaluates.
fn unreached(node: &Node) -> Option<&Node> {
    let Expr::Call { function, args, .. } = &node.expr else { return None };
    let first = tree::constant(args.first()?)?;
    match (&**function, first) {
        ("_&&_" | "_?_:_", false) | ("_||_", true) => args.get(1),
        // `filter(x, true)` keeps all elements. The other branch of its expansion is not part of the source.
        ("_?_:_", true) => args.get(2).filter(|node| !is_accumulator(node)),
        _ => None,
    }
}

/// Whether it is the accumulator variable of a macro, which expressions cannot name.
fn is_accumulator(node: &Node) -> bool {
    matches!(&node.expr, Expr::Ident(name) if name.starts_with('@') || &**name == "__result__")
}
