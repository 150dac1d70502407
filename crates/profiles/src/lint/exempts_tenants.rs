//! The rule about exemptions that free tenants from a profile.

use palisade_api::ToolSecurityProfileSpec;
use palisade_compiler::exempt_tenants;
use palisade_lint::{Category, ExtensionFinding, Rule};
use palisade_manifest::Severity;

pub(super) static RULE: Rule = Rule::plugged(
    "exempts-tenants",
    Severity::Warning,
    Category::Dangerous,
    "A profile whose exemptions free tenants",
    "\
An exemption is about who sends a request. A pod of a DaemonSet, Job or ReplicaSet is not created by who wrote the workload,
but by a controller with a service account in `kube-system`. So an exemption of `daemon-set-controller` exempts whoever may
create a DaemonSet: a tenant writes one with a privileged container, and the profile does not judge its pods. The group
`system:serviceaccounts:kube-system` contains all of these controllers; `system:authenticated` and `system:serviceaccounts`
contain tenants themselves.

Exempt a user, group or service account that creates pods itself, and for nobody else. To run a DaemonSet of your own that the
profile forbids, run it in a namespace that the profile does not select (`excludeNamespaces`), or name its namespace and the
checks under `exceptions`.",
    include_str!("exempts_tenants.bad.yaml"),
    include_str!("exempts_tenants.good.yaml"),
);

/// The findings in a profile.
pub(super) fn find(spec: &ToolSecurityProfileSpec) -> Vec<ExtensionFinding> {
    let risks = exempt_tenants(&spec.exemptions).into_iter();
    risks
        .map(|risk| ExtensionFinding { rule: &RULE, path: risk.path, message: risk.message, help: risk.help })
        .collect()
}
