//! Whether a policy or binding matches a request (apiserver `pkg/admission/plugin/policy/matching` and
//! `pkg/admission/plugin/webhook/predicates`).

use k8s_openapi::{
    api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations},
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use palisade_cel::schema::Kind;
use palisade_kube_json::selector::{self, is_empty, labels};

use super::{Cluster, Operation, PolicyKind, Request, ResourceId, namespace::NAME_LABEL, refusal::MatchError};

/// As what a policy sees a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Matched {
    pub kind: Kind,
    pub resource: ResourceId,
}

/// Resources that no policy intercepts: policies themselves (apiserver `policy/generic/plugin.go`), and reviews whose
/// interception may break a cluster (`pkg/kubeapiserver/admission/exclusion`).
const EXCLUDED: &[(&str, &[&str])] = &[
    (
        "admissionregistration.k8s.io",
        &[
            "validatingadmissionpolicies",
            "validatingadmissionpolicybindings",
            "mutatingadmissionpolicies",
            "mutatingadmissionpolicybindings",
        ],
    ),
    ("authentication.k8s.io", &["selfsubjectreviews", "tokenreviews"]),
    (
        "authorization.k8s.io",
        &["localsubjectaccessreviews", "selfsubjectaccessreviews", "selfsubjectrulesreviews", "subjectaccessreviews"],
    ),
];

/// How a request was matched by what a policy or a binding says of requests (`matchConstraints`, `matchResources`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// The kind of the policy.
    pub kind: PolicyKind,
    /// The policy.
    pub policy: String,
    /// The binding; none for the policy's own `matchConstraints`.
    pub binding: Option<String>,
    /// Whether it matched. None if that is not known.
    pub matched: Option<bool>,
    /// Which of `resourceRules` fit, by their index.
    pub rules: Vec<usize>,
    /// Which of `excludeResourceRules` fit.
    pub excludes: Vec<usize>,
    /// Whether `namespaceSelector` selects it, if there is one.
    pub namespace_selector: Option<bool>,
    /// Whether `objectSelector` selects it, if there is one.
    pub object_selector: Option<bool>,
}

/// Whether policies never see requests for this resource.
pub(crate) fn is_excluded(resource: &ResourceId) -> bool {
    EXCLUDED.iter().any(|(group, resources)| *group == resource.group && resources.contains(&&*resource.resource))
}

/// Whether `matched` (of a policy or a binding) fits, and as what. Nothing given fits all.
pub(crate) fn matches(
    matched: Option<&MatchResources>,
    request: &Request,
    cluster: &Cluster,
) -> Result<Option<Matched>, MatchError> {
    let exact = || Matched { kind: request.kind.clone(), resource: request.resource.clone() };
    let Some(matched) = matched else { return Ok(Some(exact())) };
    let namespace = namespace_matches(matched.namespace_selector.as_ref(), request, cluster);
    if namespace == Ok(false) || !object_matches(matched.object_selector.as_ref(), request) {
        return Ok(None);
    }
    let equivalent = matched.match_policy.as_deref() != Some("Exact");
    let fits = |rules: &[NamedRuleWithOperations]| rules_match(rules, equivalent, request, cluster);
    if fits(matched.exclude_resource_rules.as_deref().unwrap_or_default()).is_some() {
        return Ok(None);
    }
    let found = match matched.resource_rules.as_deref() {
        None | Some([]) => Some(exact()),
        Some(rules) => fits(rules),
    };
    // What is unknown about a namespace only matters for a request that the rules are about.
    match (found, namespace) {
        (Some(_), Err(error)) => Err(error),
        (found, _) => Ok(found),
    }
}

/// How a request matches a policy or its binding, part by part.
pub(crate) fn trace(
    (kind, policy, binding): (PolicyKind, &str, Option<&str>),
    matched: Option<&MatchResources>,
    request: &Request,
    cluster: &Cluster,
) -> Trace {
    let result = matches(matched, request, cluster);
    let equivalent = matched.is_some_and(|matched| matched.match_policy.as_deref() != Some("Exact"));
    let fitting = |rules: Option<&Vec<NamedRuleWithOperations>>| {
        let fits = |rule: &NamedRuleWithOperations| {
            rules_match(std::slice::from_ref(rule), equivalent, request, cluster).is_some()
        };
        let rules = rules.map_or(&[][..], Vec::as_slice).iter().enumerate();
        rules.filter(|(_, rule)| fits(rule)).map(|(index, _)| index).collect()
    };
    let selector =
        |of: fn(&MatchResources) -> Option<&LabelSelector>| matched.and_then(of).filter(|selector| !is_empty(selector));
    let of_namespace = selector(|matched| matched.namespace_selector.as_ref());
    let of_object = selector(|matched| matched.object_selector.as_ref());
    Trace {
        kind,
        policy: policy.to_owned(),
        binding: binding.map(str::to_owned),
        matched: result.ok().map(|found| found.is_some()),
        rules: fitting(matched.and_then(|matched| matched.resource_rules.as_ref())),
        excludes: fitting(matched.and_then(|matched| matched.exclude_resource_rules.as_ref())),
        namespace_selector: of_namespace.and_then(|one| namespace_matches(Some(one), request, cluster).ok()),
        object_selector: of_object.map(|one| object_matches(Some(one), request)),
    }
}

fn namespace_matches(
    selector: Option<&LabelSelector>,
    request: &Request,
    cluster: &Cluster,
) -> Result<bool, MatchError> {
    let is_namespace = request.resource.resource == "namespaces";
    let Some(selector) = selector.filter(|selector| !is_empty(selector)) else { return Ok(true) };
    if request.namespace.is_empty() && !is_namespace {
        return Ok(true);
    }
    let itself = is_namespace
        && request.subresource.is_empty()
        && matches!(request.operation, Operation::Create | Operation::Update);
    let namespace = if itself { request.object.as_ref() } else { cluster.namespace(&request.namespace) };
    match namespace {
        Some(namespace) => Ok(selector::matches(selector, &labels(namespace))),
        // The API server sets this label on each namespace.
        None if keys(selector).all(|key| key == NAME_LABEL) => {
            let name = [(NAME_LABEL.to_owned(), request.namespace.clone())].into();
            Ok(selector::matches(selector, &name))
        }
        None => Err(unknown_namespace(&request.namespace)),
    }
}

/// The labels that a selector asks for.
fn keys(selector: &LabelSelector) -> impl Iterator<Item = &str> {
    let of_expressions = selector.match_expressions.iter().flatten().map(|expression| expression.key.as_str());
    selector.match_labels.iter().flatten().map(|(key, _)| key.as_str()).chain(of_expressions)
}

/// The message for an unknown namespace.
pub(crate) fn unknown_namespace(name: &str) -> MatchError {
    MatchError::NoVerdict(format!(
        "the labels of namespace {name:?} are not known; add the Namespace to the cluster's files"
    ))
}

fn object_matches(selector: Option<&LabelSelector>, request: &Request) -> bool {
    let Some(selector) = selector.filter(|selector| !is_empty(selector)) else { return true };
    // The options of a connection have no metadata.
    let object = request.object.as_ref().filter(|_| request.operation != Operation::Connect);
    [object, request.old_object.as_ref()]
        .into_iter()
        .flatten()
        .any(|object| selector::matches(selector, &labels(object)))
}

fn rules_match(
    rules: &[NamedRuleWithOperations],
    equivalent: bool,
    request: &Request,
    cluster: &Cluster,
) -> Option<Matched> {
    if rules.iter().any(|rule| rule_matches(rule, request, &request.resource)) {
        return Some(Matched { kind: request.kind.clone(), resource: request.resource.clone() });
    }
    if !equivalent || rules.is_empty() {
        return None;
    }
    let equivalents = cluster.equivalents(&request.resource, &request.subresource);
    for rule in rules {
        let other = equivalents.iter().find(|(one, _)| *one != request.resource && rule_matches(rule, request, one));
        if let Some((resource, kind)) = other {
            return Some(Matched { kind: kind.clone(), resource: resource.clone() });
        }
    }
    None
}

fn rule_matches(rule: &NamedRuleWithOperations, request: &Request, resource: &ResourceId) -> bool {
    let has =
        |items: &Option<Vec<String>>, wanted: &str| items.iter().flatten().any(|item| item == "*" || item == wanted);
    let is_namespace = *resource == ResourceId::new("", "v1", "namespaces");
    let in_scope = match rule.scope.as_deref() {
        Some("Namespaced") => !is_namespace && !request.namespace.is_empty(),
        Some("Cluster") => is_namespace || request.namespace.is_empty(),
        _ => true,
    };
    let names = rule.resource_names.as_deref().unwrap_or_default();
    in_scope
        && has(&rule.operations, request.operation.name())
        && has(&rule.api_groups, &resource.group)
        && has(&rule.api_versions, &resource.version)
        && rule.resources.iter().flatten().any(|one| {
            let (of, sub) = one.split_once('/').unwrap_or((one, ""));
            (of == "*" || of == resource.resource) && (sub == "*" || sub == request.subresource)
        })
        && (names.is_empty() || names.contains(&request.name))
}
