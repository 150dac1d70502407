//! A schema that crashes kube-controller-manager.

use palisade_cel::{Minor, schema::Kind};
use palisade_manifest::Severity;
use serde_json::Value as Json;

use crate::{Category, Rule, cluster::Cluster, finding::Findings};

pub(super) static RULE: Rule = Rule {
    id: "crashes-controller-manager",
    severity: Severity::Warning,
    category: Category::Dangerous,
    precedes_extension: false,
    title: "A schema that crashes kube-controller-manager",
    why: "\
kube-controller-manager checks the types of a ValidatingAdmissionPolicy against the schemas of the kinds that it matches. It
panics on a schema with `additionalProperties: true`, and again after each restart
([kubernetes#135145](https://github.com/kubernetes/kubernetes/issues/135145)). Kubernetes 1.36 has the fix; the issue lists
the patch releases of earlier minor versions that have it. Write `x-kubernetes-preserve-unknown-fields: true` instead, or
upgrade before you apply the policy.",
    bad: include_str!("crashes_controller_manager.bad.yaml"),
    good: include_str!("crashes_controller_manager.good.yaml"),
};

/// The first minor version with the fix in all its releases.
const FIXED: Minor = Minor::V1_36;

pub(super) fn check(cluster: &Cluster<'_>, found: &mut Findings<'_>) {
    if cluster.minor >= FIXED {
        return;
    }
    for policy in cluster.policies.iter().filter(|policy| policy.item.kind.starts_with("Validating")) {
        let Some(check) = cluster.type_check(policy) else { continue };
        let params = policy.param_kind().and_then(|(version, kind)| Kind::parse(&format!("{version}/{kind}")));
        let matched = check.environments().map(|(kind, _)| (kind.clone(), "spec.matchConstraints"));
        for (kind, path) in matched.chain(params.map(|kind| (kind, "spec.paramKind"))) {
            let schema = cluster.schemas.of_kind(&kind);
            let Some(field) = schema.and_then(|schema| anything(schema, "")) else { continue };
            let kind = super::readable(&kind);
            let message = format!(
                "the schema of {kind} has additionalProperties: true at {field}: kube-controller-manager crashes on it in \
                 releases without the fix of kubernetes#135145"
            );
            let help = "write x-kubernetes-preserve-unknown-fields: true in the CRD, or upgrade first";
            found.advise(&policy.item, path, message, help);
        }
    }
}

/// The path of an object in a schema that may have any fields.
fn anything(schema: &Json, path: &str) -> Option<String> {
    if schema["type"] == "object" && schema["additionalProperties"] == true {
        return Some(if path.is_empty() { ".".to_owned() } else { path.to_owned() });
    }
    let properties = schema["properties"].as_object().into_iter().flatten();
    let properties = properties.map(|(name, property)| (property, format!("{path}.{name}")));
    let elements = [&schema["items"], &schema["additionalProperties"]].map(|inner| (inner, format!("{path}[]")));
    let mut inner = properties.chain(elements).filter(|(inner, _)| inner.is_object());
    inner.find_map(|(inner, path)| anything(inner, &path))
}
