//! From settings to a policy and a binding.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchResources, NamedRuleWithOperations, ParamKind, ParamRef, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
        Validation, Variable,
    },
    apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference},
};
use kube::Resource;
use palisade_api::{
    Diagnostic, ParameterName, ParameterType, Settings, Stage, ToolSecurityProfile, ToolSecurityProfileSpec, catalogue,
    names,
};
use palisade_checks::{Finding, Lowering, Over, Rule};

use crate::Bundle;

/// The rules that the settings ask for, by the ids of their checks, and the mistakes in the settings.
pub(crate) fn lower(
    settings: &Settings,
    parameters: &BTreeMap<ParameterName, ParameterType>,
) -> (Vec<(&'static str, Rule)>, Vec<Diagnostic>) {
    let mut cx = Lowering::new(parameters);
    let rules =
        catalogue::ALL.iter().filter_map(|check| Some((check.id, (check.compile)(settings, &mut cx)?))).collect();
    (rules, cx.finish())
}

/// The policy and the binding.
pub(crate) fn bundle(profile: &ToolSecurityProfile, rules: &[(&'static str, Rule)], parameterized: bool) -> Bundle {
    let name = profile.metadata.name.clone().unwrap_or_default();
    let metadata = metadata(profile, &name);
    let policy_name = names::pods_policy(&name);
    Bundle {
        policy: ValidatingAdmissionPolicy {
            metadata: metadata.clone(),
            spec: Some(policy_spec(&name, &profile.spec, rules, parameterized)),
            status: None,
        },
        binding: ValidatingAdmissionPolicyBinding {
            metadata,
            spec: ValidatingAdmissionPolicyBindingSpec {
                policy_name,
                param_ref: parameterized.then(|| param_ref(&name, profile.spec.enforcement.pods)),
                match_resources: None,
                validation_actions: actions(profile.spec.enforcement.pods),
            },
        },
    }
}

/// The owner reference to a profile that exists in a cluster.
pub fn owner_reference(profile: &ToolSecurityProfile) -> Option<OwnerReference> {
    profile.controller_owner_ref(&())
}

/// The labels of all that is made for a profile.
pub(crate) fn labels(profile: &str) -> BTreeMap<String, String> {
    [(names::MANAGED_BY_LABEL, names::MANAGED_BY), (names::PROFILE_LABEL, profile)]
        .map(|(key, value)| (key.to_owned(), value.to_owned()))
        .into()
}

fn metadata(profile: &ToolSecurityProfile, name: &str) -> ObjectMeta {
    let parameters: Vec<_> =
        profile.spec.parameters.iter().map(|parameter| format!("{}:{}", parameter.name, parameter.type_)).collect();
    let mut annotations = BTreeMap::from([(names::PARAMETERS_ANNOTATION.to_owned(), parameters.join(","))]);
    if let Some(generation) = profile.metadata.generation {
        annotations.insert(names::GENERATION_ANNOTATION.to_owned(), generation.to_string());
    }
    ObjectMeta {
        name: Some(names::pods_policy(name)),
        labels: Some(labels(name)),
        annotations: Some(annotations),
        owner_references: owner_reference(profile).map(|owner| vec![owner]),
        ..ObjectMeta::default()
    }
}

/// Where the parameters are: under the profile's name in the namespace of the pod.
///
/// A namespace without them is denied. In the other stages it must be let through: the API server denies what
/// it cannot configure, whatever the binding's actions are.
fn param_ref(profile: &str, stage: Stage) -> ParamRef {
    let not_found = if stage == Stage::Deny { "Deny" } else { "Allow" };
    ParamRef {
        name: Some(names::params(profile)),
        parameter_not_found_action: Some(not_found.to_owned()),
        ..ParamRef::default()
    }
}

fn actions(stage: Stage) -> Vec<String> {
    let actions: &[&str] = match stage {
        Stage::Deny => &["Deny"],
        Stage::Warn => &["Warn", "Audit"],
        Stage::Audit => &["Audit"],
    };
    actions.iter().map(|&action| action.to_owned()).collect()
}

/// The spec, with each default of the API server written out, so that what is read back can be compared with
/// what was written.
fn policy_spec(
    profile: &str,
    spec: &ToolSecurityProfileSpec,
    rules: &[(&'static str, Rule)],
    parameterized: bool,
) -> ValidatingAdmissionPolicySpec {
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        param_kind: parameterized.then(|| ParamKind {
            api_version: Some(names::API_VERSION.to_owned()),
            kind: Some("ToolSecurityParams".to_owned()),
        }),
        match_constraints: Some(MatchResources {
            match_policy: Some("Equivalent".to_owned()),
            namespace_selector: Some(namespace_selector(spec)),
            object_selector: Some(LabelSelector::default()),
            resource_rules: Some(vec![NamedRuleWithOperations {
                api_groups: Some(vec![String::new()]),
                api_versions: Some(vec!["v1".to_owned()]),
                operations: Some(vec!["CREATE".to_owned(), "UPDATE".to_owned()]),
                resources: Some(vec!["pods".to_owned(), "pods/ephemeralcontainers".to_owned()]),
                scope: Some("Namespaced".to_owned()),
                resource_names: None,
            }]),
            exclude_resource_rules: None,
        }),
        match_conditions: None,
        variables: Some(variables(profile, rules, parameterized)),
        validations: Some(vec![Validation {
            expression: "variables.violations.size() == 0".to_owned(),
            message: Some(format!("violates ToolSecurityProfile {profile}")),
            // The API server drops a message that is longer than 5 KiB (bytes) or has line breaks.
            message_expression: Some(
                "bytes(variables.message).size() <= 5120 ? variables.message : variables.message.substring(0, \
                 bytes(variables.message).size() == variables.message.size() ? 5090 : 1270) + ' ... (truncated)'"
                    .to_owned(),
            ),
            reason: Some("Forbidden".to_owned()),
        }]),
        audit_annotations: None,
    }
}

/// The profile's selector, and never the protected namespaces: the API server denies what a policy selects
/// when it cannot find the policy's parameters, before it looks at bindings.
fn namespace_selector(spec: &ToolSecurityProfileSpec) -> LabelSelector {
    let mut excluded: Vec<_> = names::PROTECTED_NAMESPACES.iter().map(|&name| name.to_owned()).collect();
    excluded.extend(spec.exclude_namespaces.iter().cloned());
    excluded.sort();
    excluded.dedup();
    let mut expressions = spec.namespace_selector.match_expressions.clone().unwrap_or_default();
    expressions.push(LabelSelectorRequirement {
        key: "kubernetes.io/metadata.name".to_owned(),
        operator: "NotIn".to_owned(),
        values: Some(excluded),
    });
    let labels = spec.namespace_selector.match_labels.clone().filter(|labels| !labels.is_empty());
    LabelSelector { match_labels: labels, match_expressions: Some(expressions) }
}

/// What the expressions are built of, first to last.
fn variables(profile: &str, rules: &[(&'static str, Rule)], parameterized: bool) -> Vec<Variable> {
    let mut all = vec![
        ("exempt", exempt(profile)),
        ("spec", "object.spec".to_owned()),
        ("podSecurityContext", "variables.spec.?securityContext.orValue({})".to_owned()),
        (
            "containers",
            "variables.spec.containers + variables.spec.?initContainers.orValue([]) \
             + variables.spec.?ephemeralContainers.orValue([])"
                .to_owned(),
        ),
        ("volumes", "variables.spec.?volumes.orValue([])".to_owned()),
        ("annotations", "object.metadata.?annotations.orValue({})".to_owned()),
    ];
    for (id, rule) in rules {
        all.extend(rule.variables.iter().cloned());
        let findings: Vec<_> = rule.findings.iter().map(|finding| violations(id, finding)).collect();
        all.push((id, findings.join(" + ")));
    }
    let found: Vec<_> = rules.iter().map(|(id, _)| format!("variables.{id}")).collect();
    let found = if found.is_empty() { "[]".to_owned() } else { found.join(" + ") };
    let judged = if parameterized {
        format!("params.spec.problem != '' ? ['[parameters] namespace: ' + params.spec.problem] : {found}")
    } else {
        found
    };
    all.push(("violations", format!("variables.exempt ? [] : {judged}")));
    all.push((
        "message",
        format!(
            "(string(variables.violations.size()) + (variables.violations.size() == 1 ? ' violation' : ' violations') \
             + ' of ToolSecurityProfile {profile}: ' + variables.violations.join('; ')).replace('\\n', ' ')"
        ),
    ));
    all.into_iter().map(|(name, expression)| Variable { name: name.to_owned(), expression }).collect()
}

/// CEL of type bool: whether a request is none of the profile's business.
///
/// A running pod may be labelled, annotated and released from finalizers whatever it violates: only a changed
/// spec is judged, and a new ephemeral container is one. In the namespace for probes, where profiles with the
/// same selector meet, a pod asks about one profile and says which.
fn exempt(profile: &str) -> String {
    format!(
        "(request.operation == 'UPDATE' && object.spec == oldObject.spec) || (request.namespace == '{}' \
         && object.metadata.?labels[?'{}'].orValue('') != '{profile}')",
        names::PROBE_NAMESPACE,
        names::PROFILE_LABEL,
    )
}

/// CEL of type list(string): the violations that a finding finds.
fn violations(id: &str, finding: &Finding) -> String {
    let Finding { over, violated, says } = finding;
    // Most texts begin with a literal; the prefix is written into it.
    let after = |prefix: &str| match says.strip_prefix('\'') {
        Some(rest) => format!("{prefix}{rest}"),
        None => format!("{prefix}' + {says}"),
    };
    match over {
        Over::Pod => format!("({violated} ? [{}] : [])", after(&format!("'[{id}] pod: "))),
        Over::Containers => {
            format!("variables.containers.map(c, {violated}, '[{id}] container \"' + c.name + {})", after("'\": "))
        }
        Over::Volumes => of_volumes("volumes", id, violated, &after("'\": ")),
        Over::List(list) => of_volumes(list, id, violated, &after("'\": ")),
    }
}

fn of_volumes(list: &str, id: &str, violated: &str, says: &str) -> String {
    format!("variables.{list}.map(v, {violated}, '[{id}] volume \"' + v.name + {says})")
}
