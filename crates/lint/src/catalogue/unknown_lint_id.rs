//! A lint-ignore annotation with an unknown rule.

use palisade_manifest::Severity;

use crate::{
    Category, Rule,
    cluster::Cluster,
    finding::Findings,
    silence::{self, IGNORE_ANNOTATION},
};

pub(super) static RULE: Rule = Rule {
    id: "unknown-lint-id",
    severity: Severity::Warning,
    category: Category::Useless,
    precedes_extension: false,
    title: "A lint-ignore annotation with an unknown rule",
    why: "\
The annotation `toolsecurity.dev/lint-ignore` names a rule that does not exist, so it silences nothing.",
    bad: include_str!("unknown_lint_id.bad.yaml"),
    good: include_str!("unknown_lint_id.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (item, _) in cluster.said.iter().filter(|(item, _)| !item.generated) {
        let annotation = item.json["metadata"]["annotations"][IGNORE_ANNOTATION].as_str().unwrap_or_default();
        let known: Vec<_> = super::all(cluster.extension).iter().map(|rule| rule.id).collect();
        for id in silence::ids(annotation).filter(|id| *id != "*" && !known.contains(id)) {
            let message = format!("no rule has the id {id:?}");
            let help = palisade_manifest::suggestion(id, &known);
            found.advise(item, &format!("metadata.annotations.{IGNORE_ANNOTATION}"), message, &help);
        }
    }
}
