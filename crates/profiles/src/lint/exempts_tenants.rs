//! The rule about exemptions that free tenants from a profile.

use palisade_api::ToolSecurityProfileSpec;
use palisade_compiler::exempt_tenants;
use palisade_lint::{Category, ExtensionFinding, Rule};
use palisade_manifest::Severity;

pub(super) static RULE: Rule = Rule::plugged(
    "exempts-tenants",
    Severity::Warning,
    Category::Dangerous,
    "Exemptions that apply to tenants",
    "\
An exemption applies to the user that sends a request. A pod of a DaemonSet, Job or ReplicaSet is not created by the author
of the workload, but by a controller with a service account in `kube-system`. Therefore an exemption of
`daemon-set-controller` exempts every user with permission to create a DaemonSet: a tenant can create a DaemonSet with a
privileged container, and the profile does not evaluate its pods. The group `system:serviceaccounts:kube-system` contains all
of these controllers; `system:authenticated` and `system:serviceaccounts` contain tenants.

Exempt only a user, group or service account that creates pods directly, and not on behalf of others. To run an administrative
DaemonSet that the profile forbids, use a namespace that the profile does not select (`excludeNamespaces`), or list its
namespace and the checks in `exceptions`.",
    include_str!("exempts_tenants.bad.yaml"),
    include_str!("exempts_tenants.good.yaml"),
);

/// The findings in a profile.
pub(super) fn find(spec: &ToolSecurityProfileSpec) -> Vec<ExtensionFinding> {
    let risks = exempt_tenants(&spec.exemptions).into_iter();
    risks
        .map(|risk| ExtensionFinding {
            rule: &RULE,
            path: risk.location.to_string(),
            message: risk.message,
            help: risk.help,
        })
        .collect()
}
