//! Input that is not a valid object.

use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings, item::Item};

pub(super) static RULE: Rule = Rule {
    id: "unreadable-object",
    severity: Severity::Error,
    category: Category::Rejected,
    precedes_extension: true,
    title: "Input that is not a valid object",
    why: "\
The file is not YAML or JSON, or an object in it has a field of the wrong type or a duplicate key. A Helm template is not
YAML until it is rendered: `helm template . | palisade lint -`.",
    bad: include_str!("unreadable_object.bad.yaml"),
    good: include_str!("unreadable_object.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (object, mistake) in &cluster.unreadable {
        let item = Item { object, generated: false, kind: object.kind.clone(), json: serde_json::Value::Null };
        let place = mistake.problem.place().map_or(0..0, |(_, place)| place);
        found.add_place(&item, place, mistake.problem.message(), mistake.problem.advice());
    }
}
