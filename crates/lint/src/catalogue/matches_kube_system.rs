//! A policy that can deny requests of the control plane in kube-system.

use palisade_admission::objects::Kinds;
use palisade_cel::Minor;
use palisade_manifest::Severity;

use super::{is_enforced, reaches};
use crate::{
    Category, Rule,
    cluster::Cluster,
    discovery,
    finding::Findings,
    policy::{Policy, ResourceRule},
    scenario::{self, Scenario},
};

pub(super) static RULE: Rule = Rule {
    id: "matches-kube-system",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A policy that can deny requests of the control plane in kube-system",
    why: "\
With `failurePolicy: Fail`, a failing expression or missing parameters also deny requests in `kube-system`. Controllers,
schedulers and nodes then stop working, possibly including the ones needed for the repair. The rule reports kinds and
operations that the control plane needs there, such as pods that controllers create and ReplicaSets that they scale. It does
not report kinds that only users and add-ons write. Exclude the namespace with a `namespaceSelector`, in the policy or in
each binding, or with a match condition that names it.",
    bad: include_str!("matches_kube_system.bad.yaml"),
    good: include_str!("matches_kube_system.good.yaml"),
};

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    let kinds = Kinds::builtin(cluster.minor);
    for policy in cluster.policies.iter().filter(|policy| is_enforced(cluster, policy)) {
        let guarded = ["kube-system", "request.namespace", "namespaceObject"].iter().any(|one| policy.mentions(one));
        if guarded || admits_all(policy) || !reaches(cluster, policy, "kube-system") {
            continue;
        }
        let rules = policy.rules();
        // The rule `fail-unscoped` is about policies that match everything.
        let scoped =
            rules.iter().filter(|rule| rule.scope != "Cluster" && rule.names.is_empty() && !rule.is_everything());
        let matched: Vec<_> = scoped.flat_map(|rule| written(&kinds, rule)).collect();
        if let Some(first) = matched.first() {
            let more = if matched.len() > 1 { format!(" and {} more", matched.len() - 1) } else { String::new() };
            found.advise(
                &policy.item,
                "spec.matchConstraints",
                format!(
                    "matches {first}{more} in kube-system, where a failing expression would stop the control plane"
                ),
                "add a namespaceSelector with kubernetes.io/metadata.name NotIn [kube-system, ...]",
            );
        }
    }
}

/// Whether the expressions show that the policy admits all requests in kube-system.
fn admits_all(policy: &Policy<'_>) -> bool {
    let rest = scenario::rest(policy, Scenario::KubeSystem);
    let has_no_more = policy.item.kind.starts_with("Validating") && policy.param_kind().is_none();
    rest.conditions.is_none() || has_no_more && rest.validations.is_empty()
}

/// The resources of a rule that the control plane writes in kube-system. Only built-in kinds in served versions count:
/// CRDs in the input add none.
fn written(kinds: &Kinds, rule: &ResourceRule) -> Vec<&'static str> {
    let is_served = |group: &str, resource: &str| {
        let plural = resource.split('/').next().unwrap_or_default();
        discovery::versions(kinds, group, plural)
            .any(|one| one.namespaced && rule.versions.iter().any(|version| *version == "*" || *version == one.version))
    };
    // The Deployment controller updates Deployments only to clear the annotation of a rollback that `apps/v1` does not have.
    let needless = ("apps", "deployments", "UPDATE");
    let is_matched = |row @ (group, resource, operations): &Write| {
        *row != needless
            && rule.covers(group, resource)
            && operations.split(' ').any(|operation| rule.on(operation))
            && is_served(group, resource)
    };
    control_plane_writes(kinds.minor()).filter(is_matched).map(|(_, resource, _)| resource).collect()
}

/// A group, a resource and operations, separated by spaces.
type Write = (&'static str, &'static str, &'static str);

/// The objects that controllers, schedulers, nodes and the API server itself write in namespaces, in a minor.
pub fn control_plane_writes(minor: Minor) -> impl Iterator<Item = Write> {
    let later = LATER_WRITES.iter().filter(move |(since, _)| *since <= minor).map(|(_, row)| row);
    WRITES.iter().chain(later).copied()
}

/// The rows of all minors, according to the bootstrap roles (`plugin/pkg/auth/authorizer/rbac/bootstrappolicy`:
/// `controller_policy.go`, `policy.go`, `namespace_policy.go`). The list omits Leases, which have a separate rule; the
/// objects of the garbage collector and the namespace controller, which have permission to write everything; and scales,
/// which need a `HorizontalPodAutoscaler` that a user creates.
const WRITES: &[Write] = &[
    ("", "pods", "CREATE UPDATE DELETE"),
    ("", "pods/binding", "CREATE"),
    ("", "pods/eviction", "CREATE"),
    ("", "pods/status", "UPDATE"),
    ("", "bindings", "CREATE"),
    ("", "configmaps", "CREATE UPDATE"),
    ("", "endpoints", "CREATE UPDATE DELETE"),
    ("", "events", "CREATE UPDATE"),
    ("", "persistentvolumeclaims", "CREATE UPDATE DELETE"),
    ("", "persistentvolumeclaims/status", "UPDATE"),
    ("", "replicationcontrollers", "UPDATE"),
    ("", "replicationcontrollers/status", "UPDATE"),
    ("", "resourcequotas/status", "UPDATE"),
    ("", "secrets", "CREATE UPDATE DELETE"),
    ("", "serviceaccounts", "CREATE UPDATE"),
    ("", "serviceaccounts/token", "CREATE"),
    ("", "services/status", "UPDATE"),
    ("apps", "controllerrevisions", "CREATE UPDATE DELETE"),
    ("apps", "daemonsets/status", "UPDATE"),
    ("apps", "deployments", "UPDATE"),
    ("apps", "deployments/status", "UPDATE"),
    ("apps", "replicasets", "CREATE UPDATE DELETE"),
    ("apps", "replicasets/status", "UPDATE"),
    ("apps", "statefulsets/status", "UPDATE"),
    ("autoscaling", "horizontalpodautoscalers/status", "UPDATE"),
    ("batch", "cronjobs", "UPDATE"),
    ("batch", "cronjobs/status", "UPDATE"),
    ("batch", "jobs", "CREATE UPDATE DELETE"),
    ("batch", "jobs/status", "UPDATE"),
    ("discovery.k8s.io", "endpointslices", "CREATE UPDATE DELETE"),
    ("events.k8s.io", "events", "CREATE UPDATE"),
    ("policy", "poddisruptionbudgets/status", "UPDATE"),
    ("rbac.authorization.k8s.io", "rolebindings", "CREATE UPDATE"),
    ("rbac.authorization.k8s.io", "roles", "CREATE UPDATE"),
];

/// Rows with the first minor whose roles have them, in `testdata/controller-roles.yaml` and `testdata/cluster-roles.yaml`
/// of that directory.
const LATER_WRITES: &[(Minor, Write)] = &[
    // `system:controller:resource-claim-controller`, `system:kube-scheduler`.
    (Minor::V1_34, ("resource.k8s.io", "resourceclaims", "CREATE UPDATE DELETE")),
    (Minor::V1_34, ("resource.k8s.io", "resourceclaims/status", "UPDATE")),
    (Minor::V1_36, ("resource.k8s.io", "resourceclaims/binding", "UPDATE")),
    // `system:node` creates them, `system:controller:podcertificaterequestcleaner` deletes them.
    (Minor::V1_37, ("certificates.k8s.io", "podcertificaterequests", "CREATE DELETE")),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_depend_on_the_minor() {
        for (minor, later) in [
            (Minor::V1_33, &[][..]),
            (Minor::V1_34, &["resourceclaims", "resourceclaims/status"]),
            (Minor::V1_35, &["resourceclaims", "resourceclaims/status"]),
            (Minor::V1_36, &["resourceclaims", "resourceclaims/status", "resourceclaims/binding"]),
            (
                Minor::V1_37,
                &["resourceclaims", "resourceclaims/status", "resourceclaims/binding", "podcertificaterequests"],
            ),
        ] {
            let resources: Vec<_> = control_plane_writes(minor).map(|(_, resource, _)| resource).collect();
            assert_eq!(resources[..WRITES.len()], WRITES.iter().map(|(_, resource, _)| *resource).collect::<Vec<_>>());
            assert_eq!(&resources[WRITES.len()..], later, "{minor}");
        }
    }
}
