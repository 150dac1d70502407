//! Two objects with the same name.

use std::{collections::BTreeMap, sync::Arc};

use palisade_manifest::Severity;

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::{Findings, Found},
};

pub(super) static RULE: Rule = Rule {
    id: "duplicate-name",
    severity: Severity::Error,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "Two objects with the same name",
    why: "\
Two objects in these files have the same kind and name. In the cluster they are one object: the one that is applied last
overwrites the other. The finding is a note if both objects are equal.",
    bad: include_str!("duplicate_name.bad.yaml"),
    good: include_str!("duplicate_name.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    let mut seen = BTreeMap::new();
    let said = cluster.said.iter().map(|(item, _)| item);
    for item in said.chain(&cluster.others) {
        let group = item.api_version().split_once('/').map_or("", |(group, _)| group).to_owned();
        let namespace = item.json["metadata"]["namespace"].as_str().unwrap_or_default().to_owned();
        if item.name().is_empty() {
            continue;
        }
        let key = (group, item.kind.clone(), namespace, item.name().to_owned());
        let original = *seen.entry(key).or_insert(item);
        let first = original.object;
        if !std::ptr::eq(first, item.object) {
            let (line, _) = first.source.position(first.place("metadata.name").start);
            let file = if Arc::ptr_eq(first.source, item.object.source) {
                String::new()
            } else {
                format!("{}, ", first.source.name())
            };
            let (kind, name) = (&item.kind, item.name());
            let equal = original.json == item.json;
            let which = if equal { "a copy of the" } else { "a second" };
            let message = format!("{which} {kind} with the name {name:?}; the first one is in {file}line {line}");
            let severity = equal.then_some(Severity::Info);
            found.put(item, Found { path: "metadata.name".to_owned(), message, severity, ..Found::default() });
        }
    }
}
