//! A parameter kind that is not defined.

use palisade_cel::schema::Kind;
use palisade_manifest::Severity;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "unresolvable-param-kind",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A parameter kind that is not defined",
    why: "\
`paramKind` is neither built in nor defined by a CRD in these files. Until the cluster has the CRD, the policy fails for
every request that it matches, and `failurePolicy: Fail` denies them all. Lint the CRD together with the policy. If the CRD
is installed separately, silence the finding.",
    bad: include_str!("unresolvable_param_kind.bad.yaml"),
    good: include_str!("unresolvable_param_kind.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    for policy in &cluster.policies {
        let Some((api_version, kind)) = policy.param_kind() else { continue };
        let known = Kind::parse(&format!("{api_version}/{kind}")).is_some_and(|kind| cluster.schemas.has(&kind));
        if !known {
            found.advise(
                &policy.item,
                "spec.paramKind.kind",
                format!("no CRD in these files defines {kind} of {api_version}, and it is not built in"),
                "lint the CRD with the policy",
            );
        }
    }
}
