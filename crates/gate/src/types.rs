//! Type checking against schemas: what the API server would warn about in `status.typeChecking`, and more: the API
//! server checks only validations and messages, this module checks each variable as well.

use std::{
    collections::BTreeSet,
    sync::{LazyLock, OnceLock},
};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use palisade_admission::objects::Kinds;
use palisade_api::{Diagnostic, Location, crd};
use palisade_cel::{
    Minor,
    schema::{Kind, Rule, Schemas, TypeCheck, kinds_to_check},
};

use crate::{place::in_spec, validator::diagnostic};

/// By minor, the schema of parameters, and those of the built-in kinds: later minors only add fields.
static SCHEMAS: [OnceLock<Schemas>; Minor::ALL.len()] = [const { OnceLock::new() }; Minor::ALL.len()];

fn schemas(minor: Minor) -> Schemas {
    let mut schemas = Schemas::builtin(minor).unwrap_or_default();
    schemas.add_crd(&serde_json::to_value(crd::params()).unwrap_or_default());
    schemas
}

/// The kinds of each supported minor, the oldest first.
pub(crate) static BUILTIN: LazyLock<Vec<Kinds>> = LazyLock::new(|| Minor::ALL.map(Kinds::builtin).into());

/// Type errors in a policy, by the schemas of the built-in kinds that it matches.
pub(crate) fn mistakes(policy: &ValidatingAdmissionPolicy, oldest: Minor) -> Vec<Diagnostic> {
    let Some(spec) = &policy.spec else { return vec![] };
    let rules = spec.match_constraints.iter().flat_map(|matched| matched.resource_rules.iter().flatten());
    let rules: Vec<_> = rules
        .map(|rule| Rule {
            groups: rule.api_groups.clone().unwrap_or_default(),
            versions: rule.api_versions.clone().unwrap_or_default(),
            resources: rule.resources.clone().unwrap_or_default(),
        })
        .collect();
    let kinds = kinds_to_check(&rules, kinds_of);
    let params = spec
        .param_kind
        .as_ref()
        .and_then(|kind| Kind::parse(&format!("{}/{}", kind.api_version.as_deref()?, kind.kind.as_deref()?)));
    let variables: Vec<_> =
        spec.variables.iter().flatten().map(|one| (one.name.clone(), one.expression.clone())).collect();
    let mut expressions: Vec<(Location, &str)> = Vec::new();
    for (index, (_, expression)) in variables.iter().enumerate() {
        expressions.push((in_spec(&format!("variables[{index}].expression")), expression));
    }
    for (index, validation) in spec.validations.iter().flatten().enumerate() {
        let at = |field: &str| in_spec(&format!("validations[{index}].{field}"));
        expressions.push((at("expression"), &validation.expression));
        expressions.extend(validation.message_expression.iter().map(|one| (at("messageExpression"), one.as_str())));
    }
    let check = checking(oldest, &kinds, params.as_ref(), &variables);
    let mut found = BTreeSet::new();
    let mut diagnostics = Vec::new();
    for (at, expression) in &expressions {
        for (kind, issues) in check.issues(expression) {
            for issue in issues.iter().filter(|issue| found.insert((at.clone(), issue.message.clone()))) {
                let mut diagnostic = diagnostic(at.clone(), issue);
                diagnostic.message = format!("{} ({kind})", diagnostic.message);
                diagnostics.push(diagnostic);
            }
        }
    }
    diagnostics
}

/// Checks expressions against the schemas of these kinds and of parameters.
pub(crate) fn checking(
    oldest: Minor,
    kinds: &BTreeSet<Kind>,
    params: Option<&Kind>,
    variables: &[(String, String)],
) -> TypeCheck {
    let schemas = SCHEMAS[oldest.index()].get_or_init(|| schemas(oldest));
    TypeCheck::new(oldest, schemas, kinds, params, variables)
}

/// The built-in kind of a resource.
pub(crate) fn kinds_of(group: &str, version: &str, resource: &str) -> Vec<Kind> {
    let found = BUILTIN[0].by_plural(group, version, resource);
    found.and_then(|one| Kind::parse(&format!("{}/{}", one.api_version(), one.kind))).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::PORTABLE;

    fn policy(variable: &str) -> ValidatingAdmissionPolicy {
        serde_json::from_value(json!({"spec": {
            "paramKind": {"apiVersion": "toolsecurity.dev/v1alpha1", "kind": "ToolSecurityParams"},
            "matchConstraints": {"resourceRules": [{
                "apiGroups": ["", "apps"], "apiVersions": ["v1"], "operations": ["CREATE"],
                "resources": ["pods", "pods/resize", "deployments"],
            }]},
            "variables": [{"name": "x", "expression": variable}],
            "validations": [{"expression": "variables.x == variables.x"}],
        }}))
        .unwrap()
    }

    #[test]
    fn field_missing_from_the_schema_is_an_error() {
        assert_eq!(mistakes(&policy("object.metadata.?labels.orValue({})"), PORTABLE), []);
        assert_eq!(mistakes(&policy("params.spec.integers['uid'] + 1"), PORTABLE), []);
        let found = mistakes(&policy("object.spec.hostNetwork"), PORTABLE);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].location.to_string().ends_with("variables[0].expression:1:12"), "{}", found[0]);
        assert!(found[0].message.ends_with("undefined field 'hostNetwork' (apps/v1, Kind=Deployment)"), "{}", found[0]);
        let found = mistakes(&policy("params.spec.integer['uid']"), PORTABLE);
        assert_eq!(found.len(), 1, "{found:?}");
        let found = mistakes(&policy("params.spec.strings['uid'] + 1"), PORTABLE);
        assert_eq!(found.len(), 1, "{found:?}");
    }
}
