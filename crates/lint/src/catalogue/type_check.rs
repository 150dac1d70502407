//! A type error.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
};

use palisade_cel::{
    Issue, IssueKind, Position,
    ast::NodeId,
    schema::{Kind, TypeCheck},
};
use palisade_manifest::Severity;

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::{Findings, Found},
    policy::{Expression, Policy, Role},
    reads,
};

pub(super) static RULE: Rule = Rule {
    id: "type-check",
    severity: Severity::Warning,
    category: Category::Warned,
    precedes_extension: false,
    title: "A type error",
    why: "\
The API server accepts the policy, and then writes this message to `status.typeChecking`: an expression does not fit the
schema of a kind that the policy matches. The expression may fail for an object of that kind, and `failurePolicy: Fail` then
denies the request. If the matched kinds have different fields, write one policy for each kind, or read with `dyn(object)`.

The finding is an error if the expression always reads a field that none of the matched kinds has: then it fails for every
request. The rule also checks variables and match conditions, where the API server does no type checking.",
    bad: include_str!("type_check.bad.yaml"),
    good: include_str!("type_check.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in cluster.policies.iter().filter(|policy| policy.item.kind.starts_with("Validating")) {
        let Some(check) = cluster.type_check(policy) else { continue };
        let certain = if is_checked_whole(cluster, policy, check) { reads::certain(policy) } else { BTreeSet::new() };
        for expression in policy.expressions.iter().filter(|one| one.role != Role::Annotation) {
            for mistake in mistakes(check, expression) {
                let always = mistake.is_everywhere(check, expression, &certain);
                if always || matches!(expression.role, Role::Validation | Role::Message) {
                    found.put(&policy.item, mistake.found(policy, check, expression, always));
                }
            }
        }
    }
}

/// The message for an expression, for all kinds of objects with the same error.
struct Mistake {
    issue: Issue,
    /// Other messages about the same kinds.
    others: BTreeSet<String>,
    /// The positions in the expression, in order.
    positions: BTreeSet<Position>,
    kinds: BTreeSet<Kind>,
}

/// Maximum number of further messages in a finding.
const MAX_OTHERS: usize = 3;

/// The errors of an expression. An error that several kinds or positions share is reported once.
fn mistakes(check: &TypeCheck, expression: &Expression) -> Vec<Mistake> {
    let mut found = BTreeMap::<String, Mistake>::new();
    for (kind, issues) in check.issues(&expression.source) {
        for issue in issues {
            // Types of objects are called by their kinds.
            let said = issue.message.replace(&kind.kind, "");
            let mistake = found.entry(said).or_insert_with(|| Mistake {
                issue: issue.clone(),
                others: BTreeSet::new(),
                positions: BTreeSet::new(),
                kinds: BTreeSet::new(),
            });
            mistake.positions.insert(issue.position);
            mistake.kinds.insert(kind.clone());
        }
    }
    let mut found: Vec<_> = found.into_values().collect();
    found.sort_by_key(|mistake| mistake.positions.first().copied());
    let mut merged: Vec<Mistake> = Vec::new();
    for mistake in found {
        // An expression for other kinds has several fields that these kinds have not.
        match merged.iter_mut().find(|other| other.kinds == mistake.kinds) {
            Some(other) => {
                other.others.insert(mistake.issue.message);
                other.positions.extend(mistake.positions);
            }
            None => merged.push(mistake),
        }
    }
    merged
}

impl Mistake {
    /// Whether every request fails because of it.
    fn is_everywhere(&self, check: &TypeCheck, of: &Expression, certain: &BTreeSet<(&str, NodeId)>) -> bool {
        let reads = || of.ast.root.descendants().filter(|node| reads::demands(node));
        self.issue.kind == IssueKind::UndefinedField
            && self.kinds.len() == check.environments().count()
            && reads().any(|node| {
                self.positions.contains(&of.ast.position(node.id)) && certain.contains(&(of.path.as_str(), node.id))
            })
    }

    fn found(self, policy: &Policy<'_>, check: &TypeCheck, of: &Expression, always: bool) -> Found {
        let mut message = self.issue.message;
        let others = self.others.len();
        for other in self.others.into_iter().take(MAX_OTHERS) {
            message.push_str("; ");
            message.push_str(&other);
        }
        if others > MAX_OTHERS {
            message.push_str("; and others");
        }
        let more = self.positions.len() - 1;
        if more > 0 {
            let _ = write!(message, ", here and at {more} more place{}", if more == 1 { "" } else { "s" });
        }
        if always {
            let hidden = ": it fails for every request; failurePolicy: Ignore hides this";
            message.push_str(if policy.fails_closed() { ": every request fails" } else { hidden });
        }
        let all = self.kinds.len() == check.environments().count() && self.kinds.len() > 1;
        let kinds: Vec<_> = self.kinds.iter().map(super::readable).collect();
        message.push_str(&super::named(&kinds, all));
        let help = if kinds.len() < check.environments().count() {
            Some("write one policy for each kind, or read with dyn(object)".to_owned())
        } else {
            self.issue.help
        };
        Found {
            path: of.path.clone(),
            position: self.positions.first().copied().unwrap_or(Position::NONE),
            message,
            help,
            severity: always.then_some(Severity::Error),
            kinds,
        }
    }
}

/// Whether all kinds that the policy matches are checked, and no object can have fields outside its schema.
fn is_checked_whole(cluster: &Cluster<'_>, policy: &Policy<'_>, check: &TypeCheck) -> bool {
    let kinds = cluster.kinds();
    let checked: BTreeSet<&Kind> = check.environments().map(|(kind, _)| kind).collect();
    let is_checked = |group: &str, version: &str, resource: &str| {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        kinds.by_plural(group, version, plural).is_some_and(|resource| {
            let kind = Kind { group: group.to_owned(), version: version.to_owned(), kind: resource.kind.clone() };
            let same = subresource.is_empty()
                || resource.subresource(subresource).is_some_and(|subresource| subresource.kind == resource.kind);
            same && checked.contains(&kind)
        })
    };
    !checked.is_empty()
        && !checked.iter().any(|kind| cluster.schemas.of_kind(kind).is_some_and(keeps_unknown))
        && policy.rules().iter().all(|rule| {
            rule.groups.iter().all(|group| {
                rule.versions
                    .iter()
                    .all(|version| rule.resources.iter().all(|resource| is_checked(group, version, resource)))
            })
        })
}

/// Whether a schema allows objects to have fields that it does not specify.
fn keeps_unknown(schema: &serde_json::Value) -> bool {
    match schema {
        serde_json::Value::Object(fields) => {
            fields.get("x-kubernetes-preserve-unknown-fields").is_some_and(|keeps| *keeps == true)
                || fields.values().any(keeps_unknown)
        }
        serde_json::Value::Array(elements) => elements.iter().any(keeps_unknown),
        _ => false,
    }
}
