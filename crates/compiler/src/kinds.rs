//! The kinds that custom checks with target Object and settings name: the errors in them.

use palisade_api::{CustomCheck, CustomTarget, Diagnostic, ObjectKind, ToolSecurityProfileSpec};
use palisade_kube_json::field_path::FieldPath;

use crate::LoweredObject;

/// The kinds that the settings name, with their paths.
pub(crate) fn of_settings(spec: &ToolSecurityProfileSpec) -> Vec<(String, ObjectKind)> {
    let rules = spec.metadata.rules.iter().flatten().enumerate();
    let kinds = rules.flat_map(|(rule, one)| {
        let kinds = one.kinds.iter().enumerate();
        kinds.map(move |(index, kind)| (format!("spec.metadata.rules[{rule}].kinds[{index}]"), kind.clone()))
    });
    kinds.collect()
}

/// The errors in the kinds of a check at this path: field, message, and advice.
pub(crate) fn mistakes(check: &CustomCheck, path: &FieldPath) -> Vec<(FieldPath, String, &'static str)> {
    let CustomCheck { target, kinds, .. } = check;
    let of_object = *target == CustomTarget::Object;
    if of_object == kinds.is_empty() {
        let (message, help) = if of_object {
            (
                "is required with target Object",
                "list the kinds to evaluate: [{group: networking.k8s.io, versions: [v1], resource: ingresses}]",
            )
        } else {
            ("is only allowed with target Object", "remove it, or set target: Object")
        };
        return vec![(path.child("kinds"), message.to_owned(), help)];
    }
    let kinds = kinds.iter().enumerate();
    kinds.flat_map(|(index, kind)| of_kind(kind, &path.child("kinds").index(index))).collect()
}

/// The errors in a kind at this path.
fn of_kind(kind: &ObjectKind, path: &FieldPath) -> Vec<(FieldPath, String, &'static str)> {
    let mut found = Vec::new();
    let mut say = |path: FieldPath, message: String, help| found.push((path, message, help));
    let ObjectKind { group, versions, resource, subresources, operations: _ } = kind;
    if !group.is_empty() && !group.split('.').all(is_label) {
        say(
            path.child("group"),
            format!("{group:?} is not an API group"),
            "write a group such as networking.k8s.io, or omit it for the core group",
        );
    }
    if versions.is_empty() {
        say(
            path.child("versions"),
            "must have at least one version".to_owned(),
            "kubectl api-resources lists versions",
        );
    }
    for (position, version) in versions.iter().enumerate().filter(|(_, version)| !is_label(version)) {
        say(
            path.child("versions").index(position),
            format!("{version:?} is not an API version"),
            "write a version such as v1",
        );
    }
    if !is_label(resource) {
        let help = "write the plural name in lower case, for example ingresses; list subresources in subresources";
        say(path.child("resource"), format!("{resource:?} is not the plural name of a kind"), help);
    }
    if (group.as_str(), resource.as_str()) == ("", "pods") {
        say(
            path.child("resource"),
            "must not be pods".to_owned(),
            "write a custom check with target: Pod, which also evaluates pod templates",
        );
    }
    for (position, name) in subresources.iter().enumerate().filter(|(_, name)| !is_label(name)) {
        say(
            path.child("subresources").index(position),
            format!("{name:?} is not a subresource"),
            "write a name such as status",
        );
    }
    found
}

/// Whether it is a DNS label: no wildcard, and no character with a meaning in rules of policies.
fn is_label(name: &str) -> bool {
    (1..=63).contains(&name.len())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && !name.starts_with('-')
        && !name.ends_with('-')
}

/// The errors in the kinds of all checks together.
///
/// One policy has all kinds. The API server converts a request only if no rule of the policy matches its version, so a
/// check with another version of the same kind would not see it.
pub(crate) fn contradictions(spec: &ToolSecurityProfileSpec, objects: &[LoweredObject]) -> Vec<Diagnostic> {
    let mut all = of_settings(spec);
    let mut found = Vec::new();
    for (path, kind) in &all {
        let mistakes = of_kind(kind, &FieldPath::from(path.as_str()));
        found.extend(mistakes.into_iter().map(|(path, message, help)| Diagnostic::new(path, message).help(help)));
    }
    let checks = spec.custom_checks.iter().enumerate();
    all.extend(checks.flat_map(|(check, one)| {
        let kinds = one.kinds.iter().enumerate();
        kinds.map(move |(index, kind)| (format!("spec.customChecks[{check}].kinds[{index}]"), kind.clone()))
    }));
    for (position, (path, kind)) in all.iter().enumerate() {
        let earlier = || all[..position].iter().filter(|(_, other)| stored_as(other) == stored_as(kind));
        if let Some((_, other)) = earlier().find(|(_, other)| other.group != kind.group) {
            let message = format!("another check evaluates {} in group {:?}", kind.resource, other.group);
            let help = "the API server serves the same objects in both groups: use one group in all checks";
            found.push(Diagnostic::new(format!("{path}.group"), message).help(help));
        } else if let Some((_, other)) = earlier().find(|(_, other)| !is_same(&other.versions, &kind.versions)) {
            let message =
                format!("another check evaluates {} in versions {}", kind.resource, other.versions.join(", "));
            let help =
                "list the same versions of a kind in all checks: the API server converts requests in other versions";
            found.push(Diagnostic::new(format!("{path}.versions"), message).help(help));
        } else if let Some((check, versions)) = built_in(kind, objects) {
            let message = format!("the check {check} evaluates {} in versions {versions}", kind.resource);
            let help = "list the same versions: the API server converts requests in other versions";
            found.push(Diagnostic::new(format!("{path}.versions"), message).help(help));
        }
    }
    found
}

/// A check of the catalogue that evaluates the kind in other versions, and these versions.
fn built_in(kind: &ObjectKind, objects: &[LoweredObject]) -> Option<(&'static str, String)> {
    let kinds = objects.iter().flat_map(|one| one.check.kinds.iter().map(|of| (one.check.id, of)));
    let mut kinds = kinds.filter(|(_, of)| (of.group, of.resource) == (kind.group.as_str(), kind.resource.as_str()));
    kinds.find_map(|(check, of)| {
        let versions: Vec<_> = of.versions.iter().map(|&version| version.to_owned()).collect();
        (!is_same(&versions, &kind.versions)).then(|| (check, versions.join(", ")))
    })
}

fn is_same(one: &[String], other: &[String]) -> bool {
    one.iter().all(|version| other.contains(version)) && other.iter().all(|version| one.contains(version))
}

/// The group and resource under which the API server stores objects: only events are in two groups.
fn stored_as(kind: &ObjectKind) -> (&str, &str) {
    match (kind.group.as_str(), kind.resource.as_str()) {
        ("events.k8s.io", "events") => ("", "events"),
        other => other,
    }
}
