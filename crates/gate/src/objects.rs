//! Checks of objects other than pods and workloads.

use std::collections::BTreeSet;

use palisade_admission::objects::Kinds;
use palisade_api::{
    CustomTarget, Diagnostic, ObjectKind, ToolSecurityParamsSpec,
    names::{self, Part},
    objects,
};
use palisade_cel::{Minor, schema::Kind};
use palisade_checks::{FixtureRequest, ObjectFixture};
use palisade_compiler::{Compiled, Custom, PolicyWithBindings};
use palisade_kube_json::{field_path::FieldPath, json::Change as _};
use serde_json::{Value as Json, json};

use crate::{
    Decision, Operation, ValidationRequest, Validator,
    place::POLICY,
    types::{BUILTIN, checking, kinds_of},
    validator::diagnostic,
};

/// Groups of Kubernetes whose names do not end with `.k8s.io`.
const GROUPS: [&str; 5] = ["", "apps", "autoscaling", "batch", "policy"];

/// The kinds in custom checks and settings that no API server has, or that are not namespaced.
pub(crate) fn unknown_kinds(compiled: &Compiled) -> Vec<Diagnostic> {
    let kinds = compiled.customs.iter().flat_map(|custom| {
        let kinds = custom.check.kinds.iter().enumerate();
        kinds.map(move |(index, kind)| (custom.path.child("kinds").index(index).child("resource"), kind))
    });
    let named =
        compiled.named_kinds.iter().map(|(path, kind)| (FieldPath::from(path.as_str()).child("resource"), kind));
    kinds.chain(named).filter_map(|(path, kind)| unknown(path, kind)).collect()
}

fn unknown(path: FieldPath, kind: &ObjectKind) -> Option<Diagnostic> {
    let ObjectKind { group, resource, .. } = kind;
    let mut served = BUILTIN.iter().flat_map(Kinds::resources).filter(|one| one.group == *group);
    let is_builtin = GROUPS.contains(&group.as_str()) || served.clone().next().is_some();
    let name = if group.is_empty() { resource.clone() } else { format!("{resource}.{group}") };
    match served.find(|one| one.plural == *resource) {
        Some(one) if !one.namespaced => Some(
            Diagnostic::new(path, format!("{name} are not namespaced"))
                .help("a profile evaluates only objects in the namespaces that it selects"),
        ),
        None if is_builtin => Some(
            Diagnostic::new(path, format!("Kubernetes has no resource {name}"))
                .help("write group and plural name as kubectl api-resources prints them"),
        ),
        _ => None,
    }
}

/// The errors in the expressions of a custom check by the schema of its kind, if that is built-in and the only one.
pub(crate) fn type_errors(compiled: &Compiled, custom: &Custom, oldest: Minor) -> Vec<Diagnostic> {
    let check = &custom.check;
    let [ObjectKind { group, versions, resource, subresources, .. }] = check.kinds.as_slice() else { return vec![] };
    let ([version], true, CustomTarget::Object) = (versions.as_slice(), subresources.is_empty(), check.target) else {
        return vec![];
    };
    let kinds: BTreeSet<_> = kinds_of(group, version, resource).into_iter().collect();
    let params = compiled
        .is_parameterized()
        .then(|| Kind::parse(&format!("{}/ToolSecurityParams", names::API_VERSION)))
        .flatten();
    let types = checking(oldest, &kinds, params.as_ref(), &[]);
    let message = check.message_expression.as_deref().map(|text| ("messageExpression", text));
    let mut found = Vec::new();
    for (field, text) in [("expression", check.expression.as_str())].into_iter().chain(message) {
        for (kind, issues) in types.issues(text) {
            for issue in issues {
                let mut one = diagnostic(custom.path.child(field).into(), &issue);
                one.message = format!("{} ({kind})", one.message);
                found.push(one);
            }
        }
    }
    found
}

/// The errors in a policy for objects.
pub(crate) fn diagnose(compiled: &Compiled, part: Part, pair: &PolicyWithBindings, oldest: Minor) -> Vec<Diagnostic> {
    let policy = match Validator::on(&pair.policy, oldest) {
        Ok(policy) => policy,
        Err(diagnostics) => return diagnostics,
    };
    let params = compiled.probes.params.as_ref().map(|spec| json!({"spec": spec}));
    let rules = pair.policy.spec.iter().filter_map(|spec| spec.match_constraints.as_ref());
    let rules = rules.flat_map(|matched| matched.resource_rules.iter().flatten());
    let mut found = probes(compiled, part, &policy, params.as_ref());
    // Rules with names are about probes.
    for rule in rules.filter(|rule| rule.resource_names.is_none()) {
        let first =
            |list: &Option<Vec<String>>| list.as_ref().and_then(|list| list.first().cloned()).unwrap_or_default();
        let (group, version) = (first(&rule.api_groups), first(&rule.api_versions));
        for resource in rule.resources.iter().flatten() {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            if !matches!(subresource, "" | "status") {
                continue;
            }
            // A binding evaluates updates without parameters, too.
            for params in [params.as_ref(), None] {
                found.extend(releases(&policy, params, [&group, &version, resource, subresource]));
            }
        }
    }
    for check in objects::ALL.iter().filter(|check| compiled.object_checks.contains(&check.id)) {
        for fixture in serde_saphyr::from_str::<Vec<ObjectFixture>>(check.fixtures).unwrap_or_default() {
            let Some(sent) = fixture.request(check, "tenant") else { continue };
            let FixtureRequest { group, resource, subresource, name, object, stored, .. } = &sent;
            let request = ValidationRequest {
                operation: match stored {
                    Some(_) => Operation::Update,
                    None if sent.is_connection() => Operation::Connect,
                    None => Operation::Create,
                },
                old_object: stored.as_ref().unwrap_or(&Json::Null),
                group: Some(group),
                resource: Some(resource),
                subresource,
                name: Some(name),
                params: params.as_ref(),
                ..ValidationRequest::create(object["kind"].as_str().unwrap_or_default(), object)
            };
            found.extend(policy.evaluate(&request).err());
        }
    }
    if pair.policy.spec.as_ref().is_some_and(|spec| spec.param_kind.is_some()) {
        found.extend(without_values(compiled, pair, &policy));
    }
    found
}

/// The probes get their verdicts: they show nothing otherwise.
fn probes(compiled: &Compiled, part: Part, policy: &Validator, params: Option<&Json>) -> Vec<Diagnostic> {
    let Some(question) = compiled.probes.question(part) else { return Vec::new() };
    let verdict = |object: &Json| {
        let created = ValidationRequest::create("PodTemplate", object);
        policy.evaluate(&ValidationRequest { namespace: names::PROBE_NAMESPACE, params, ..created })
    };
    let mut found = Vec::new();
    // Only creation is probed: an update can remove a finalizer.
    let mut finalized = question.violating.clone();
    *finalized.at_mut(&["metadata", "finalizers"]) = json!(["example.com/a"]);
    let released = ValidationRequest {
        operation: Operation::Update,
        namespace: names::PROBE_NAMESPACE,
        old_object: &finalized,
        params,
        ..ValidationRequest::create("PodTemplate", &question.violating)
    };
    let verdicts = [
        (verdict(&question.compliant), false),
        (verdict(&question.violating), true),
        (policy.evaluate(&released), false),
    ];
    for (verdict, is_denied) in verdicts {
        match verdict {
            Ok(decision) if (decision != Decision::Admit) == is_denied => {}
            Ok(decision) => {
                found.push(Diagnostic::new(POLICY, format!("a probe has the wrong verdict: {decision:?}")));
            }
            Err(diagnostic) => found.push(diagnostic),
        }
    }
    found
}

/// A new object of a kind with nothing but a name. No API server may accept it; none of its fields matters here.
fn empty(kind: &str, api_version: &str) -> Json {
    json!({
        "apiVersion": api_version, "kind": kind,
        "metadata": {"name": "object", "namespace": "tenant", "creationTimestamp": "2026-01-01T00:00:00Z"},
    })
}

/// An update that only removes finalizers is never denied: otherwise a namespace could not be deleted.
fn releases(
    policy: &Validator,
    params: Option<&Json>,
    [group, version, resource, subresource]: [&str; 4],
) -> Option<Diagnostic> {
    let kind = kinds_of(group, version, resource).pop().map_or_else(|| "Object".to_owned(), |kind| kind.kind);
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let object = empty(&kind, &api_version);
    let mut finalized = object.clone();
    *finalized.at_mut(&["metadata", "finalizers"]) = json!(["example.com/a"]);
    let request = ValidationRequest {
        operation: Operation::Update,
        old_object: &finalized,
        resource: Some(resource),
        subresource,
        params,
        ..ValidationRequest::create(&kind, &object)
    };
    match policy.evaluate(&request) {
        Ok(Decision::Admit) => None,
        Ok(Decision::Deny { message, .. }) => Some(Diagnostic::new(
            POLICY,
            format!("an update of {resource} that only removes a finalizer is denied: {message}"),
        )),
        Err(diagnostic) => Some(diagnostic),
    }
}

/// A namespace with a missing or malformed parameter denies the objects that a check with parameters evaluates.
fn without_values(compiled: &Compiled, pair: &PolicyWithBindings, policy: &Validator) -> Option<Diagnostic> {
    let params = json!({"spec": ToolSecurityParamsSpec::denying("a problem")});
    let made: BTreeSet<_> =
        pair.policy.spec.iter().flat_map(|spec| spec.variables.iter().flatten()).map(|one| one.name.clone()).collect();
    let is_of_policy = |custom: &&Custom| made.contains(&custom.variable()) && custom.mentions_params();
    compiled.customs.iter().filter(is_of_policy).find_map(|custom| {
        let ObjectKind { group, versions, resource, subresources, .. } = custom.check.kinds.first()?;
        let version = versions.first()?;
        let api_version = if group.is_empty() { version.clone() } else { format!("{group}/{version}") };
        let object = empty("Object", &api_version);
        let operation = match custom.check.kinds[0].operations().next()? {
            palisade_api::ObjectOperation::Create => Operation::Create,
            palisade_api::ObjectOperation::Update => return None,
        };
        let request = ValidationRequest {
            operation,
            resource: Some(resource),
            subresource: subresources.first().map_or("", String::as_str),
            params: Some(&params),
            ..ValidationRequest::create("Object", &object)
        };
        match policy.evaluate(&request) {
            Ok(Decision::Deny { message, .. }) if message.contains("a problem") => None,
            Ok(decision) => Some(Diagnostic::new(
                POLICY,
                format!("a namespace with a problem in its parameters does not deny {resource} for it: {decision:?}"),
            )),
            Err(diagnostic) => Some(diagnostic),
        }
    })
}
