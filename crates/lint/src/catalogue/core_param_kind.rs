//! Parameters in a `ConfigMap` or another built-in kind.

use palisade_cel::schema::Kind;
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "core-param-kind",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "Parameters in a ConfigMap or another built-in kind",
    why: "\
When the last bound policy with a built-in `paramKind` is deleted, the API server stops watching that kind, and every later
policy with it finds no parameters until the server restarts
([kubernetes#130887](https://github.com/kubernetes/kubernetes/issues/130887)). Also, a ConfigMap has no schema: all its
values are strings. Define a CRD for the parameters.",
    bad: include_str!("core_param_kind.bad.yaml"),
    good: include_str!("core_param_kind.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        let Some((api_version, kind)) = policy.param_kind() else { continue };
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let defined = cluster.crds.iter().any(|crd| crd.json["spec"]["group"] == *group);
        let built_in = !defined
            && (!group.contains('.') || group.ends_with(".k8s.io"))
            && Kind::parse(&format!("{api_version}/{kind}")).is_some_and(|kind| cluster.schemas.has(&kind));
        if built_in {
            let message = format!("reads its parameters from {kind}, a built-in kind");
            found.advise(&policy.item, "spec.paramKind.kind", message, "define a custom kind with a CRD");
        }
    }
}
