//! A profile that frees tenants by an exemption.

use palisade_cel::Position;
use palisade_compiler::exempt_tenants;
use palisade_manifest::Severity;

use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "exempts-tenants",
    severity: Severity::Warning,
    category: Category::Regret,
    title: "A profile whose exemptions free tenants",
    why: "\
An exemption is about who sends a request. A pod of a DaemonSet, Job or ReplicaSet is not created by who wrote the workload,
but by a controller with a service account in `kube-system`. So an exemption of `daemon-set-controller` exempts whoever may
create a DaemonSet: a tenant writes one with a privileged container, and the profile does not judge its pods. The group
`system:serviceaccounts:kube-system` contains all of these controllers; `system:authenticated` and `system:serviceaccounts`
contain tenants themselves.

Exempt a user, group or service account that creates pods itself, and for nobody else. To run a DaemonSet of your own that the
profile forbids, run it in a namespace that the profile does not select (`excludeNamespaces`), or name its namespace and the
checks under `exceptions`.",
    bad: include_str!("exempts_tenants.bad.yaml"),
    good: include_str!("exempts_tenants.good.yaml"),
    check: |cluster, found| {
        for (item, spec) in &cluster.accepted {
            for risk in exempt_tenants(&spec.exemptions) {
                found.add_at(item, &risk.path, Position::NONE, risk.message, risk.help.as_deref());
            }
        }
    },
};
