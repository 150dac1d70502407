//! Something that cannot be judged offline.

use palisade_apiserver::create::Refused;
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "no-verdict",
    severity: Severity::Info,
    category: Category::Rejected,
    title: "Something that cannot be judged offline",
    why: "\
Whether the API server takes it is not known here, and why is said: an expression uses what only the API server's own
engine has, such as messages of protocol buffers. Silence it once `kubectl apply --dry-run=server` agreed.",
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
