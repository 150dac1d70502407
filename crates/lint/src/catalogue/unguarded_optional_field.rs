//! An optional field that is read without a check.

use std::collections::{BTreeMap, BTreeSet};

use palisade_cel::{Environment, Position, ast::Expr, schema::Kind, types::Type};
use palisade_manifest::Severity;

use super::denies;
use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::{Findings, Found},
    guards::{Guards, Names},
    policy::{Expression, Policy, Role},
    reads, tree,
};

pub(super) static RULE: Rule = Rule {
    id: "unguarded-optional-field",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "An optional field that is read without a check",
    why: "\
The field is optional in the schema. If an object does not have it, reading it fails with `no such key`, and
`failurePolicy: Fail` then denies the request with a message that does not help the user. This also applies inside `has()`:
`has(a.b.c)` checks only `c`. Check first (`has(a.b) && a.b.c`), or read with `a.?b.?c.orValue(...)`.

The rule does not report fields that the API server always sets or requires. It also ignores fields that are checked by a
match condition, by an earlier validation, or by a variable that the expression reads. A comparison with a discriminator
counts as a check of the fields next to it (`spec.type == 'ExternalName' && spec.externalName ...`).",
    bad: include_str!("unguarded_optional_field.bad.yaml"),
    good: include_str!("unguarded_optional_field.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| denies(cluster, policy)) {
        let Some(check) = cluster.type_check(policy) else { continue };
        let all = check.environments().count();
        let names = Names::of(policy);
        let judged = |one: &&Expression| !matches!(one.role, Role::Message | Role::Annotation);
        // Parameters are the same for all expressions.
        let mut reported = BTreeSet::new();
        for expression in policy.expressions.iter().filter(judged) {
            let guards = Guards::of(policy, expression);
            // What is read of several kinds is read once.
            let mut read = BTreeMap::<String, (Position, BTreeSet<&Kind>)>::new();
            for (kind, environment) in check.environments() {
                for (position, field) in unguarded(cluster, policy, expression, kind, environment, &names, &guards) {
                    let (first, kinds) = read.entry(field).or_insert((position, BTreeSet::new()));
                    *first = position.min(*first);
                    kinds.insert(kind);
                }
            }
            for (field, (position, kinds)) in &read {
                let longer = |other: &str| other.strip_prefix(field).is_some_and(|rest| rest.starts_with('.'));
                let is_param = field.starts_with("params.");
                // A check of the longer path covers the shorter one.
                if read.keys().any(|other| longer(other)) || is_param && !reported.insert(field.clone()) {
                    continue;
                }
                let of_object = !is_param && all > 1;
                let named: Vec<_> = kinds.iter().filter(|_| of_object).map(|kind| super::readable(kind)).collect();
                let of = super::named(&named, named.len() == all);
                found.put(
                    &policy.item,
                    Found {
                        path: expression.path.clone(),
                        position: *position,
                        message: format!("{field} is optional: reading it fails if it is not set{of}"),
                        help: Some("check with has() first, or read with .? and orValue()".to_owned()),
                        severity: None,
                        kinds: named,
                    },
                );
            }
        }
    }
}

/// The optional fields of a kind that an expression reads without a check, as they are written.
fn unguarded(
    cluster: &Cluster<'_>,
    policy: &Policy<'_>,
    expression: &Expression,
    kind: &Kind,
    environment: &Environment,
    names: &Names<'_>,
    guards: &Guards,
) -> Vec<(Position, String)> {
    let Ok(checked) = environment.check(&expression.source) else { return vec![] };
    let kinds = [Some(kind.clone()), param_kind(policy)];
    let mut found = Vec::new();
    for node in checked.ast.root.descendants().filter(|node| reads::demands(node)) {
        let Expr::Select { operand, field, .. } = &node.expr else { continue };
        let Type::Object(path) = checked.type_of(operand.id) else { continue };
        let (Some(of), Some((root, fields))) = (names.written(operand), tree::chain(node)) else { continue };
        if guards.cover(&of, field) {
            continue;
        }
        let struct_of = path.split('.').next().unwrap_or_default();
        // Types of parameters have a number if both are of one kind.
        let kind = kinds.iter().flatten().find(|kind| kind.kind == struct_of.trim_end_matches('1'));
        if kind.and_then(|kind| cluster.always_has(kind, path, field)) == Some(false) {
            let written = fields.iter().fold(root.to_owned(), |name, field| format!("{name}.{field}"));
            found.push((expression.ast.position(node.id), written));
        }
    }
    found
}

fn param_kind(policy: &Policy<'_>) -> Option<Kind> {
    let (api_version, kind) = policy.param_kind()?;
    Kind::parse(&format!("{api_version}/{kind}"))
}
