//! The requests that policies and bindings match.

use k8s_openapi::{
    api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use palisade_api::{
    Stage, ToolSecurityProfileSpec,
    names::{self, Shape},
};

/// The label with the name of a namespace, which the API server keeps.
pub(crate) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// All requests for a shape, whatever the parameters are.
pub(crate) fn all_rules(shape: Shape) -> Vec<NamedRuleWithOperations> {
    match shape {
        Shape::Pods => {
            vec![rule("", &["CREATE", "UPDATE"], &["pods", "pods/ephemeralcontainers", "pods/resize"])]
        }
        Shape::Workloads => of_workloads(&["CREATE", "UPDATE"]),
    }
}

/// The requests that can remove a finalizer.
pub(crate) fn update_rules(shape: Shape) -> Vec<NamedRuleWithOperations> {
    match shape {
        Shape::Pods => vec![rule("", &["UPDATE"], &["pods"])],
        Shape::Workloads => of_workloads(&["UPDATE"]),
    }
}

/// The requests that cannot remove one. The subresources leave the metadata of a pod alone (`ResetObjectMetaForStatus`
/// in Kubernetes `pkg/registry/core/pod/strategy.go`).
pub(crate) fn other_rules(shape: Shape) -> Vec<NamedRuleWithOperations> {
    match shape {
        Shape::Pods => {
            vec![rule("", &["CREATE"], &["pods"]), rule("", &["UPDATE"], &["pods/ephemeralcontainers", "pods/resize"])]
        }
        Shape::Workloads => of_workloads(&["CREATE"]),
    }
}

fn of_workloads(operations: &[&str]) -> Vec<NamedRuleWithOperations> {
    vec![
        rule("", operations, &["podtemplates", "replicationcontrollers"]),
        rule("apps", operations, &["daemonsets", "deployments", "replicasets", "statefulsets"]),
        rule("batch", operations, &["cronjobs", "jobs"]),
    ]
}

/// The match constraints, with each default of the API server written out.
pub(crate) fn matching(namespaces: LabelSelector, rules: Vec<NamedRuleWithOperations>) -> MatchResources {
    MatchResources {
        match_policy: Some("Equivalent".to_owned()),
        namespace_selector: Some(namespaces),
        object_selector: Some(LabelSelector::default()),
        resource_rules: Some(rules),
        exclude_resource_rules: None,
    }
}

/// Operations on resources that a policy matches.
pub(crate) fn rule(group: &str, operations: &[&str], resources: &[&str]) -> NamedRuleWithOperations {
    let owned = |texts: &[&str]| Some(texts.iter().map(|&text| text.to_owned()).collect());
    NamedRuleWithOperations {
        api_groups: owned(&[group]),
        api_versions: owned(&["v1"]),
        operations: owned(operations),
        resources: owned(resources),
        scope: Some("Namespaced".to_owned()),
        resource_names: None,
    }
}

/// Namespaces with the label of a stage, or those without any. Each namespace is in one of the four; a value that is no
/// stage is in the strictest.
pub(crate) fn stage_selector(profile: &str, stage: Option<Stage>) -> LabelSelector {
    let requirement = |operator: &str, values: &[Stage]| LabelSelectorRequirement {
        key: names::stage_label(profile),
        operator: operator.to_owned(),
        values: (!values.is_empty()).then(|| values.iter().map(ToString::to_string).collect()),
    };
    let requirements = match stage {
        None => vec![requirement("DoesNotExist", &[])],
        Some(Stage::Deny) => vec![requirement("Exists", &[]), requirement("NotIn", &[Stage::Audit, Stage::Warn])],
        Some(stage) => vec![requirement("In", &[stage])],
    };
    LabelSelector { match_labels: None, match_expressions: Some(requirements) }
}

/// The profile's selector, which never selects the protected namespaces: if the API server cannot find a policy's
/// parameters, it denies all that the policy matches before it looks at bindings.
pub fn namespace_selector(spec: &ToolSecurityProfileSpec) -> LabelSelector {
    let mut expressions = spec.namespace_selector.match_expressions.clone().unwrap_or_default();
    expressions.push(other_than(spec.exclude_namespaces.iter().map(String::as_str)));
    let labels = spec.namespace_selector.match_labels.clone().filter(|labels| !labels.is_empty());
    LabelSelector { match_labels: labels, match_expressions: Some(expressions) }
}

/// Neither one of these namespaces nor a protected one.
pub(crate) fn other_than<'a>(names: impl IntoIterator<Item = &'a str>) -> LabelSelectorRequirement {
    let mut excluded: Vec<_> = names.into_iter().chain(names::PROTECTED_NAMESPACES).map(str::to_owned).collect();
    excluded.sort();
    excluded.dedup();
    LabelSelectorRequirement { key: NAME_LABEL.to_owned(), operator: "NotIn".to_owned(), values: Some(excluded) }
}
