//! An object without a verdict offline.

use palisade_admission::create::Refused;
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "no-verdict",
    severity: Severity::Info,
    category: Category::Unknown,
    precedes_extension: false,
    title: "An object that cannot be evaluated offline",
    why: "\
Palisade cannot tell offline whether the API server accepts the object; the message gives the reason. For example, an
expression uses a feature that only the CEL engine of the API server has, such as protocol buffer messages. Test the object
with `kubectl apply --dry-run=server`. If the API server accepts it, silence the finding.",
    bad: include_str!("no_verdict.bad.yaml"),
    good: include_str!("no_verdict.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for (item, said) in cluster.said.iter().chain(&cluster.said_of_params) {
        if let Err(Refused::NoVerdict(why)) = said {
            found.add(item, "metadata.name", why);
        }
    }
}
