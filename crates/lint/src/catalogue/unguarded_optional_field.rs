//! A field is read that may not be there.

use std::collections::BTreeSet;

use palisade_cel::{
    Environment,
    ast::{Expr, Literal, Node},
    schema::Kind,
    types::Type,
};
use palisade_manifest::Severity;

use super::denies;
use crate::{Category, Rule};
use crate::{
    cluster::Cluster,
    policy::{Expression, Policy, Role},
    tree,
};

pub(super) static RULE: Rule = Rule {
    id: "unguarded-optional-field",
    severity: Severity::Warning,
    category: Category::Regret,
    title: "A field is read that may not be there",
    why: "\
By its schema an object need not have this field. Reading it from an object without it fails: `no such key`, which denies
with `failurePolicy: Fail` and a message that helps nobody. That is so inside of `has()`, too: `has(a.b.c)` asks for `c`
only. Ask first (`has(a.b) && a.b.c`), or read with `a.?b.?c.orValue(...)`. Fields that the API server always fills in are
not reported.",
    bad: include_str!("unguarded_optional_field.bad.yaml"),
    good: include_str!("unguarded_optional_field.good.yaml"),
    check: |cluster, found| {
    for policy in cluster.policies.iter().filter(|policy| denies(cluster, policy)) {
        let Some(check) = policy.check(cluster) else { continue };
        let conditions = policy.expressions.iter().filter(|one| one.role == Role::Condition);
        let asked_before: BTreeSet<String> = conditions.flat_map(|one| asked(&one.ast.root)).collect();
        let judged = |one: &&Expression| !matches!(one.role, Role::Message | Role::Annotation);
        for expression in policy.expressions.iter().filter(judged) {
            for (kind, environment) in check.environments() {
                let kinds = [Some(kind.clone()), param_kind(policy)];
                for (node, field) in unguarded(cluster, expression, environment, &kinds, &asked_before) {
                    let at = expression.ast.position(node);
                    let message = format!("{field} may not be there ({kind}): reading it fails then");
                    let help = "ask with has() first, or read with .? and orValue()";
                    found.add_at(&policy.item, &expression.path, at, message, Some(help));
                }
            }
        }
    }
},
};

/// Fields that the API server fills in, or without which it takes no object, though schemas do not say so.
const ALWAYS: [&str; 27] = [
    "apiVersion",
    "creationTimestamp",
    "dnsPolicy",
    "enableServiceLinks",
    "generation",
    "image",
    "imagePullPolicy",
    "kind",
    "labelSelector",
    "metadata",
    "name",
    "namespace",
    "replicas",
    "resourceVersion",
    "resources",
    "restartPolicy",
    "revisionHistoryLimit",
    "rules",
    "schedulerName",
    "selector",
    "spec",
    "strategy",
    "template",
    "terminationGracePeriodSeconds",
    "type",
    "uid",
    "updateStrategy",
];

fn param_kind(policy: &Policy<'_>) -> Option<Kind> {
    let (api_version, kind) = policy.param_kind()?;
    Kind::parse(&format!("{api_version}/{kind}"))
}

/// The nodes of an expression that read what may not be there, with the name of what they read.
fn unguarded(
    cluster: &Cluster<'_>,
    expression: &Expression,
    environment: &Environment,
    kinds: &[Option<Kind>; 2],
    asked_before: &BTreeSet<String>,
) -> Vec<(palisade_cel::ast::NodeId, String)> {
    let Ok(checked) = environment.check(&expression.source) else { return vec![] };
    let asked = asked(&checked.ast.root);
    let mut found = Vec::new();
    for node in tree::nodes(&checked.ast.root) {
        let Expr::Select { operand, field, test: false } = &node.expr else { continue };
        let Type::Object(path) = checked.type_of(operand.id) else { continue };
        let Some(name) = written(node) else { continue };
        if ALWAYS.contains(&&**field) || asked.contains(&name) || asked_before.contains(&name) {
            continue;
        }
        let root = path.split('.').next().unwrap_or_default();
        // Types of parameters have a number if both are of one kind.
        let kind = kinds.iter().flatten().find(|kind| kind.kind == root.trim_end_matches('1'));
        if kind.and_then(|kind| cluster.schemas.is_required(kind, path, field)) == Some(false) {
            found.push((node.id, name));
        }
    }
    found
}

/// What an expression asks for: `has(a.b)`, `'b' in a`, `a.?b`.
fn asked(root: &Node) -> BTreeSet<String> {
    let asks = |node: &&Node| match &node.expr {
        Expr::Select { test, .. } => *test,
        Expr::Call { function, .. } => matches!(&**function, "@in" | "_?._" | "_[?_]"),
        _ => false,
    };
    let name = |node: &Node| match &node.expr {
        Expr::Call { function, args, .. } if &**function == "@in" => match &args.first()?.expr {
            Expr::Literal(Literal::String(key)) => Some(format!("{}.{key}", written(args.get(1)?)?)),
            _ => None,
        },
        Expr::Call { args, .. } => Some(format!("{}.{}", written(args.first()?)?, tree::field(node)?)),
        _ => written(node),
    };
    tree::nodes(root).into_iter().filter(asks).filter_map(name).collect()
}

/// What a node reads, as it is written.
fn written(node: &Node) -> Option<String> {
    let (root, fields) = tree::chain(node)?;
    Some(fields.iter().fold(root.to_owned(), |name, field| format!("{name}.{field}")))
}
