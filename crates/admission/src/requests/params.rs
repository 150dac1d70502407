//! The parameters that a binding has for a request (`CollectParams` in apiserver
//! `pkg/admission/plugin/policy/generic/policy_dispatcher.go`).

use k8s_openapi::api::admissionregistration::v1::{ParamKind, ParamRef};
use palisade_cel::schema::Kind;
use palisade_kube_json::selector;

use super::{Cluster, cluster::Stored, refusal::MatchError};

/// The kind of a policy's parameters, and whether they live in namespaces.
#[derive(Clone, Debug)]
pub(crate) struct ParamScope {
    pub kind: Kind,
    pub namespaced: bool,
}

/// Finds the kind of a policy's parameters.
///
/// # Errors
/// There is no such kind; the API server reports that before it looks at any binding.
pub(crate) fn scope(param_kind: Option<&ParamKind>, cluster: &Cluster) -> Result<Option<ParamScope>, MatchError> {
    let Some(param_kind) = param_kind else { return Ok(None) };
    let api_version = param_kind.api_version.as_deref().unwrap_or_default();
    let kind = param_kind.kind.as_deref().unwrap_or_default();
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let kind = Kind { group: group.into(), version: version.into(), kind: kind.into() };
    match cluster.is_namespaced(&kind) {
        Some(namespaced) => Ok(Some(ParamScope { kind, namespaced })),
        None => Err(MatchError::Configuration(format!("failed to find resource referenced by paramKind: '{kind}'"))),
    }
}

/// The parameters to evaluate with, one after the other. The API server's order is random; here it is that of their
/// namespaces and names. A missing one is `null` in expressions.
pub(crate) fn collect<'a>(
    scope: Option<&ParamScope>,
    reference: Option<&ParamRef>,
    namespace: &str,
    cluster: &'a Cluster,
) -> Result<Vec<Option<&'a Stored>>, MatchError> {
    let (Some(scope), Some(reference)) = (scope, reference) else { return Ok(vec![None]) };
    let configuration = |text: &str| Err(MatchError::Configuration(text.to_owned()));
    let asked = reference.namespace.as_deref().unwrap_or_default();
    let of = match (scope.namespaced, asked) {
        (true, "") if namespace.is_empty() => {
            return configuration(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources",
            );
        }
        (true, "") => namespace,
        (true, asked) => asked,
        (false, "") => "",
        (false, _) => return configuration("paramRef.namespace must not be provided for a cluster-scoped `paramKind`"),
    };
    let stored =
        cluster.stored(&scope.kind.group, &scope.kind.kind).filter(|one| !scope.namespaced || one.namespace == of);
    let found: Vec<_> = match (reference.name.as_deref().unwrap_or_default(), &reference.selector) {
        ("", Some(selector)) => {
            stored.filter(|one| selector::matches(selector, &selector::labels(&one.object))).map(Some).collect()
        }
        ("", None) => return configuration("one of name or selector must be provided"),
        (name, _) => stored.filter(|one| one.name == name).map(Some).collect(),
    };
    if found.is_empty() && reference.parameter_not_found_action.as_deref() == Some("Deny") {
        return configuration("no params found for policy binding with `Deny` parameterNotFoundAction");
    }
    Ok(found)
}
