//! The requests that checks of objects evaluate, and CEL that recognises them.

use std::collections::BTreeMap;

use palisade_api::names::Shape;
use palisade_checks::{Kinds, ObjectFinding, ObjectRule, cel};

use crate::{
    LoweredObject,
    matching::{EvaluatedResource, METADATA_BY_STATUS, STATUS},
    reads::Reads,
};

/// The variable with the resource of a request, as kubectl writes it: `ingresses.networking.k8s.io`.
pub(crate) const RESOURCE: &str = "resource";

/// The requests that a check of the catalogue evaluates: for its kinds, and for those that the settings name.
pub(crate) fn resources_of(lowered: &LoweredObject) -> Vec<EvaluatedResource> {
    let named = lowered.rule.all().map(|finding| &finding.of).filter(|kinds| matches!(kinds, Kinds::Named(_)));
    let mut all: Vec<_> = [Kinds::OfCheck(lowered.check.kinds)].iter().chain(named).flat_map(of_kinds).collect();
    all.sort();
    all.dedup();
    all
}

/// Updates by the subresource `status` of the kinds whose metadata a rule reads, if they can change it. The settings can
/// name any kind; a subresource that a kind does not have matches no request.
pub(crate) fn by_status(rule: &ObjectRule) -> Vec<EvaluatedResource> {
    let reads = |finding: &&ObjectFinding| Reads::of(texts(finding), Shape::Objects).some_metadata();
    let can_change = |kinds: &Kinds, one: &EvaluatedResource| {
        matches!(kinds, Kinds::Named(_)) || METADATA_BY_STATUS.contains(&(one.group.as_str(), one.resource.as_str()))
    };
    let mut found = Vec::new();
    for finding in rule.findings.iter().filter(reads) {
        let updated = |one: &EvaluatedResource| one.is_updated() && !one.resource.contains('/');
        let resources = of_kinds(&finding.of).into_iter().filter(|one| updated(one) && can_change(&finding.of, one));
        found.extend(resources.map(|one| EvaluatedResource {
            resource: status_of(&one.resource),
            operations: ["UPDATE"].into(),
            ..one
        }));
    }
    found.sort();
    found.dedup();
    found
}

/// The expressions of a finding.
pub(crate) fn texts(finding: &ObjectFinding) -> [&str; 2] {
    [&finding.violated, &finding.says]
}

/// The subresource `status` of a resource.
fn status_of(resource: &str) -> String {
    format!("{resource}/{STATUS}")
}

/// The requests for these kinds.
fn of_kinds(kinds: &Kinds) -> Vec<EvaluatedResource> {
    match kinds {
        Kinds::OfCheck(kinds) => kinds.iter().map(EvaluatedResource::from).collect(),
        Kinds::Named(named) => named.iter().flat_map(EvaluatedResource::of).collect(),
    }
}

/// CEL of type bool: whether a request is for one of these resources.
pub(crate) fn is_of(named: &[String]) -> String {
    match named {
        [one] => format!("variables.{RESOURCE} == {}", cel::quote(one)),
        all => format!("variables.{RESOURCE} in {}", cel::list(all)),
    }
}

/// The same for kinds of a rule, with the operations that the settings name, and the subresource `status` of some of them.
pub(crate) fn is_of_any(kinds: &Kinds, by_status: &[EvaluatedResource]) -> String {
    let mut by_operation = BTreeMap::<_, Vec<String>>::new();
    for one in of_kinds(kinds) {
        // Other requests for kinds of a check do not reach the rule.
        let only = match one.operations.iter().collect::<Vec<_>>()[..] {
            [only] if matches!(kinds, Kinds::Named(_)) => Some(*only),
            _ => None,
        };
        let status = by_status.iter().find(|of| of.group == one.group && of.resource == status_of(&one.resource));
        by_operation.entry(only).or_default().push(named(&one.group, &one.resource));
        if let Some(of) = status.filter(|_| one.is_updated()) {
            by_operation.entry(None).or_default().push(named(&of.group, &of.resource));
        }
    }
    let terms = by_operation.iter().map(|(only, named)| match only {
        Some(only) => format!("({} && request.operation == '{only}')", is_of(named)),
        None => is_of(named),
    });
    cel::any(&terms.collect::<Vec<_>>())
}

/// A resource as kubectl writes it.
pub(crate) fn named(group: &str, resource: &str) -> String {
    if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
}
