//! A version of the API that is not served.

use palisade_manifest::Severity;

use crate::{Category, Rule};

pub(super) static RULE: Rule = Rule {
    id: "not-served",
    severity: Severity::Error,
    category: Category::Rejected,
    title: "A version of the API that is not served",
    why: "\
The API server does not know this `apiVersion` and answers `no matches for kind`. ValidatingAdmissionPolicy is
`admissionregistration.k8s.io/v1` in all versions that are supported here; MutatingAdmissionPolicy is `v1` from
Kubernetes 1.36 on, and `v1beta1` in 1.34 and 1.35 where the cluster's admin turned it on.",
    bad: include_str!("not_served.bad.yaml"),
    good: include_str!("not_served.good.yaml"),
    check: |cluster, found| {
        for (item, _) in cluster.said.iter().filter(|(item, _)| item.kind.contains("AdmissionPolicy")) {
            let version = item.api_version().rsplit('/').next().unwrap_or_default();
            let served: &[&str] = match (item.kind.starts_with("Validating"), cluster.minor) {
                (true, _) | (false, 36..) => &["v1"],
                (false, 34..) => &["v1beta1"],
                (false, _) => &["v1alpha1"],
            };
            if !served.contains(&version) {
                let message = format!("Kubernetes 1.{} does not serve {} of {version}", cluster.minor, item.kind);
                found.advise(item, "apiVersion", message, &format!("write admissionregistration.k8s.io/{}", served[0]));
            }
        }
    },
};
