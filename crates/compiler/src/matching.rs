//! The requests that policies and bindings match.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations},
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement},
};
use palisade_api::{ObjectKind, Stage, ToolSecurityProfileSpec, names};
use palisade_checks::ObjectResource;

use crate::metadata::PROBE_NAMES;

/// The label with the name of a namespace, which the API server keeps.
pub(crate) const NAME_LABEL: &str = "kubernetes.io/metadata.name";

/// The requests for a resource, or for a subresource, that a check evaluates.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct EvaluatedResource {
    pub group: String,
    pub versions: Vec<String>,
    /// As in rules of policies: `deployments`, or `deployments/scale`.
    pub resource: String,
    /// As in rules of policies: `CREATE`, `UPDATE`, `CONNECT`.
    pub operations: BTreeSet<&'static str>,
}

impl EvaluatedResource {
    /// Those of a kind in a custom check.
    pub fn of(kind: &ObjectKind) -> impl Iterator<Item = Self> {
        kind.resources().into_iter().map(|resource| Self {
            group: kind.group.clone(),
            versions: kind.versions.clone(),
            resource,
            operations: kind.operations().map(<&str>::from).collect(),
        })
    }

    /// Whether the requests include one that updates objects and can remove a finalizer.
    pub fn is_updated(&self) -> bool {
        self.operations.contains(UPDATE)
    }
}

impl From<&ObjectResource> for EvaluatedResource {
    fn from(of: &ObjectResource) -> Self {
        Self {
            group: of.group.to_owned(),
            versions: of.versions.iter().map(|&version| version.to_owned()).collect(),
            resource: of.path(),
            operations: of.operations.iter().copied().collect(),
        }
    }
}

/// The operation that can remove a finalizer.
const UPDATE: &str = "UPDATE";

/// The subresource whose updates change the metadata of some kinds.
pub(crate) const STATUS: &str = "status";

/// Kinds of the catalogue whose metadata a request for the subresource `status` can change: the API server keeps only the
/// spec (`PrepareForUpdate` of the strategies for the status in Kubernetes `pkg/registry`). Of a custom resource, it keeps
/// everything else.
pub(crate) const METADATA_BY_STATUS: [(&str, &str); 3] =
    [("", "persistentvolumeclaims"), ("", "services"), ("networking.k8s.io", "ingresses")];

/// Whether updates of a resource can change metadata, including finalizers: of an object, or of the status of some kinds. The
/// controllers of load balancers remove their finalizers by the status of a Service.
fn changes_metadata(group: &str, resource: &str) -> bool {
    !resource.contains('/') || is_status_with_metadata(group, resource)
}

/// Whether a resource is the subresource `status` of a kind whose metadata it can change.
pub(crate) fn is_status_with_metadata(group: &str, resource: &str) -> bool {
    let status = resource.split_once('/').filter(|(_, subresource)| *subresource == STATUS);
    status.is_some_and(|(resource, _)| METADATA_BY_STATUS.contains(&(group, resource)))
}

/// The requests that a policy matches.
#[derive(Clone, Debug, Default)]
pub(crate) struct RequestRules {
    /// All of them, whatever the parameters are.
    pub all: Vec<NamedRuleWithOperations>,
    /// The requests that can remove a finalizer.
    pub updates: Vec<NamedRuleWithOperations>,
    /// The requests that cannot remove one.
    pub others: Vec<NamedRuleWithOperations>,
}

impl RequestRules {
    /// Requests for pods. The subresources leave the metadata of a pod alone (`ResetObjectMetaForStatus` in Kubernetes
    /// `pkg/registry/core/pod/strategy.go`).
    pub fn of_pods() -> Self {
        let subresources = ["pods/ephemeralcontainers", "pods/resize"];
        Self {
            all: vec![rule("", &["CREATE", "UPDATE"], &["pods", subresources[0], subresources[1]])],
            updates: vec![rule("", &["UPDATE"], &["pods"])],
            others: vec![rule("", &["CREATE"], &["pods"]), rule("", &["UPDATE"], &subresources)],
        }
    }

    /// Requests for workloads.
    pub fn of_workloads() -> Self {
        Self {
            all: of_workloads(&["CREATE", "UPDATE"]),
            updates: of_workloads(&["UPDATE"]),
            others: of_workloads(&["CREATE"]),
        }
    }

    /// Requests for these resources. A resource has the same versions wherever it is.
    pub fn of_resources<'a>(resources: impl IntoIterator<Item = &'a EvaluatedResource>) -> Self {
        let mut matched = BTreeMap::<_, (&[String], BTreeSet<&str>)>::new();
        for EvaluatedResource { group, versions, resource, operations } in resources {
            let one = matched.entry((group.as_str(), resource.as_str()));
            one.or_insert((versions, BTreeSet::new())).1.extend(operations);
        }
        // One rule for resources of a group with the same versions and operations.
        let rules = |is_matched: &dyn Fn(&str, &str, &str) -> bool| {
            let mut grouped = BTreeMap::<_, Vec<&str>>::new();
            for ((group, resource), (versions, operations)) in &matched {
                let operations: Vec<&str> =
                    operations.iter().copied().filter(|operation| is_matched(group, resource, operation)).collect();
                if !operations.is_empty() {
                    grouped.entry((*group, *versions, operations)).or_default().push(resource);
                }
            }
            let rules = grouped.into_iter().map(|((group, versions, operations), resources)| NamedRuleWithOperations {
                api_versions: Some(versions.to_vec()),
                ..rule(group, &operations, &resources)
            });
            rules.collect()
        };
        let removes_finalizers =
            |group: &str, resource: &str, operation: &str| operation == UPDATE && changes_metadata(group, resource);
        Self {
            all: rules(&|_, _, _| true),
            updates: rules(&removes_finalizers),
            others: rules(&|group, resource, operation| !removes_finalizers(group, resource, operation)),
        }
    }
}

impl RequestRules {
    /// The same, and the creation of the probes of a policy for objects.
    pub fn with_probes(mut self) -> Self {
        let names = PROBE_NAMES.map(str::to_owned).to_vec();
        let probe = NamedRuleWithOperations { resource_names: Some(names), ..rule("", &["CREATE"], &["podtemplates"]) };
        self.all.push(probe.clone());
        self.others.push(probe);
        self
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
