//! The guard: a policy that requires the verb `assign` on a profile to change labels and annotations of namespaces that
//! the profile reads.
//!
//! It evaluates only changes of these keys. So it admits deletion, the removal of finalizers and every other update of
//! a namespace for all users, and does not call the authorizer for them.

use std::collections::BTreeSet;

use k8s_openapi::{
    api::admissionregistration::v1::{
        MatchCondition, MatchResources, NamedRuleWithOperations, ValidatingAdmissionPolicy,
        ValidatingAdmissionPolicyBinding, ValidatingAdmissionPolicyBindingSpec, ValidatingAdmissionPolicySpec,
        Validation, Variable,
    },
    apimachinery::pkg::apis::meta::v1::LabelSelector,
};
use palisade_api::{
    ToolSecurityProfile, ToolSecurityProfileSpec,
    names::{self, Part},
};
use palisade_checks::cel::{list, quote};

use crate::{
    ExpressionStyle,
    matching::{NAME_LABEL, matching, other_than, rule},
    metadata::{metadata, profile_name},
};

/// The policy and its binding; `None` if `guardSources` is false, or the profile reads no label or annotation that a
/// user could change.
pub(crate) fn objects(
    profile: &ToolSecurityProfile,
    style: ExpressionStyle,
) -> Option<(ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding)> {
    let kinds = guarded(&profile.spec);
    if !profile.spec.guard_sources || kinds.is_empty() {
        return None;
    }
    let name = names::policy(profile_name(profile), Part::Guard);
    let policy = ValidatingAdmissionPolicy {
        metadata: metadata(profile, name.clone()),
        spec: Some(spec(profile, &kinds, style)),
        status: None,
    };
    let binding = ValidatingAdmissionPolicyBinding {
        metadata: metadata(profile, name.clone()),
        spec: ValidatingAdmissionPolicyBindingSpec {
            policy_name: name,
            param_ref: None,
            match_resources: None,
            // A stage says what happens to pods. Who decides on it, and on parameters, is no question of a stage.
            validation_actions: vec!["Deny".to_owned()],
        },
    };
    Some((policy, binding))
}

/// Keys in the metadata of namespaces that a profile reads.
struct Read<'a> {
    /// The word for one of them: `label` or `annotation`.
    kind: &'static str,
    /// The field.
    field: &'static str,
    keys: BTreeSet<&'a str>,
}

/// The labels and annotations of namespaces that the profile reads and that a user could change.
fn guarded(spec: &ToolSecurityProfileSpec) -> Vec<Read<'_>> {
    let sources = || spec.parameters.iter().flat_map(|parameter| &parameter.sources);
    let of_templates = spec.generate.iter().filter_map(|template| template.namespace_selector.as_ref());
    let mut labels: BTreeSet<_> = sources().filter_map(|source| source.namespace_label.as_deref()).collect();
    for selector in [&spec.namespace_selector].into_iter().chain(of_templates) {
        labels.extend(selector.match_labels.iter().flat_map(|labels| labels.keys()).map(String::as_str));
        labels.extend(selector.match_expressions.iter().flatten().map(|one| one.key.as_str()));
    }
    // Every namespace has this one, and nobody can change it.
    labels.remove(NAME_LABEL);
    // manifests/confinement.yaml guards these, for all profiles, and lets a rollout of the controller set them.
    labels.retain(|label| !label.starts_with(names::STAGE_LABELS));
    let annotations = sources().filter_map(|source| source.namespace_annotation.as_deref()).collect();
    let all = [
        Read { kind: "label", field: "labels", keys: labels },
        Read { kind: "annotation", field: "annotations", keys: annotations },
    ];
    all.into_iter().filter(|one| !one.keys.is_empty()).collect()
}

/// With each default of the API server written out, as in the policies that evaluate.
fn spec(profile: &ToolSecurityProfile, kinds: &[Read<'_>], style: ExpressionStyle) -> ValidatingAdmissionPolicySpec {
    let name = profile_name(profile);
    let written = |lowered| style.expression("", lowered);
    let changed = kinds.iter().map(|one| {
        let Read { kind, field, keys } = one;
        format!(
            "{}.filter(key, {}).map(key, {} + key)",
            list(keys),
            differ(&format!("variables.{field}"), &format!("variables.former{field}")),
            quote(&format!("{kind} "))
        )
    });
    let mut variables = Vec::new();
    for Read { field, .. } in kinds {
        for (name, lowered) in [((*field).to_owned(), new(field)), (format!("former{field}"), former(field))] {
            variables.push(Variable { name, expression: written(lowered) });
        }
    }
    let changed = written(changed.collect::<Vec<_>>().join(" + "));
    variables.push(Variable { name: "changed".to_owned(), expression: changed });
    let changes = kinds
        .iter()
        .map(|one| format!("{}.exists(key, {})", list(&one.keys), differ(&new(one.field), &former(one.field))));
    // The authorizer comes last: a check may need a request to an external server.
    let allowed = format!(
        "variables.changed.size() == 0 || \
         authorizer.group({}).resource({}).name({}).check({}).allowed()",
        quote(names::GROUP),
        quote(names::PROFILES),
        quote(name),
        quote(names::ASSIGN)
    );
    // The API server also evaluates it if nothing is changed.
    let message = format!(
        "'changes ' + (variables.changed.size() > 1 ? variables.changed[0] + ' and others' : variables.changed.join()) \
         + ' of namespace ' + object.metadata.name + {}",
        quote(&format!(
            ", which ToolSecurityProfile {name} reads; this requires the verb {} on {}/{name}: ask an administrator to change \
             it or to grant the verb",
            names::ASSIGN,
            names::PROFILES
        ))
    );
    ValidatingAdmissionPolicySpec {
        failure_policy: Some("Fail".to_owned()),
        param_kind: None,
        match_constraints: Some(match_constraints(&profile.spec)),
        match_conditions: Some(vec![MatchCondition {
            name: "changes-a-source".to_owned(),
            expression: written(changes.collect::<Vec<_>>().join(" || ")),
        }]),
        variables: Some(variables),
        validations: Some(vec![Validation {
            expression: written(allowed),
            message: Some(format!("changes what ToolSecurityProfile {name} reads from the namespace")),
            message_expression: Some(written(message)),
            reason: Some("Forbidden".to_owned()),
        }]),
        audit_annotations: None,
    }
}

/// Namespaces that the profile could select. A namespace itself is matched by its own labels. The controller labels the
/// one for probes.
fn match_constraints(spec: &ToolSecurityProfileSpec) -> MatchResources {
    let excluded = spec.exclude_namespaces.iter().map(String::as_str).chain([names::PROBE_NAMESPACE]);
    let namespaces = LabelSelector { match_labels: None, match_expressions: Some(vec![other_than(excluded)]) };
    // Each of these can change labels and annotations.
    let resources = ["namespaces", "namespaces/finalize", "namespaces/status"];
    let rule = rule("", &["CREATE", "UPDATE"], &resources);
    matching(namespaces, vec![NamedRuleWithOperations { scope: Some("Cluster".to_owned()), ..rule }])
}

/// CEL of type map: the labels or annotations as they would be.
fn new(field: &str) -> String {
    format!("object.metadata.?{field}.orValue({{}})")
}

/// CEL of type map: the labels or annotations as they are; none in a new namespace.
fn former(field: &str) -> String {
    format!("(oldObject == null ? {{}} : oldObject.metadata.?{field}.orValue({{}}))")
}

/// CEL of type bool: `key` has another value, or is only in one of them. Absent is not the same as empty.
fn differ(new: &str, former: &str) -> String {
    format!("{new}[?key] != {former}[?key]")
}
