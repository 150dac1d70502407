//! Match constraints of policies, and the frame of match conditions.

use std::collections::BTreeSet;

use palisade_cel::Minor;
use serde_json::Value as Json;

use crate::validation::{Checking, FieldError as Error, list, meta, names, part, text};

const OPERATIONS: [&str; 5] = ["*", "CONNECT", "CREATE", "DELETE", "UPDATE"];
const MUTATED: [&str; 4] = ["*", "CONNECT", "CREATE", "UPDATE"];
const SCOPES: [&str; 3] = ["*", "Cluster", "Namespaced"];

/// Checks `matchConstraints` or `matchResources`.
pub(super) fn match_resources(checking: &mut Checking<'_>, resources: &Json, field: &str) {
    match part(resources, "matchPolicy").and_then(Json::as_str) {
        None => checking.errors.push(Error::required(format!("{field}.matchPolicy"), "")),
        Some("Exact" | "Equivalent") => {}
        Some(other) => {
            let field = format!("{field}.matchPolicy");
            checking.errors.push(Error::not_supported(checking.minor, field, other, &["Equivalent", "Exact"]));
        }
    }
    meta::selector_of(checking, resources, "namespaceSelector", field);
    meta::selector_of(checking, resources, "objectSelector", field);
    for key in ["resourceRules", "excludeResourceRules"] {
        for (index, found) in list(resources, key).iter().enumerate() {
            rule(checking, found, &format!("{field}.{key}[{index}]"));
        }
    }
}

/// The texts of a list of an object.
pub(super) fn strings<'a>(of: &'a Json, key: &str) -> Vec<&'a str> {
    list(of, key).iter().map(|one| one.as_str().unwrap_or_default()).collect()
}

/// Checks a rule of a policy or of a webhook.
pub(super) fn rule(checking: &mut Checking<'_>, rule: &Json, field: &str) {
    let (minor, errors) = (checking.minor, &mut checking.errors);
    let mut seen = BTreeSet::new();
    for (index, name) in strings(rule, "resourceNames").into_iter().enumerate() {
        let field = format!("{field}.resourceNames[{index}]");
        errors.extend(names::path_segment(name).iter().map(|wrong| Error::invalid(&field, name, wrong)));
        if !seen.insert(name) {
            errors.push(Error::duplicate(field, name));
        }
    }
    let operations = strings(rule, "operations");
    let of = "admissionregistration.OperationType";
    required(minor, errors, (of, &operations), &format!("{field}.operations"), "operations");
    for (index, operation) in operations.iter().enumerate().filter(|(_, one)| !OPERATIONS.contains(one)) {
        errors.push(Error::not_supported(minor, format!("{field}.operations[{index}]"), operation, &OPERATIONS));
    }
    required(minor, errors, ("string", &strings(rule, "apiGroups")), &format!("{field}.apiGroups"), "API groups");
    let versions = strings(rule, "apiVersions");
    required(minor, errors, ("string", &versions), &format!("{field}.apiVersions"), "API versions");
    for (index, _) in versions.iter().enumerate().filter(|(_, version)| version.is_empty()) {
        errors.push(Error::required(format!("{field}.apiVersions[{index}]"), ""));
    }
    resources(minor, errors, &strings(rule, "resources"), &format!("{field}.resources"));
    if let Some(scope) = part(rule, "scope").and_then(Json::as_str).filter(|scope| !SCOPES.contains(scope)) {
        errors.push(Error::not_supported(minor, format!("{field}.scope"), scope, &SCOPES));
    }
}

/// Checks that a list is not empty and that a wildcard is its only element. The list has the Go type of its elements.
fn required(minor: Minor, errors: &mut Vec<Error>, (of, found): (&str, &[&str]), field: &str, what: &str) {
    if found.is_empty() {
        errors.push(Error::required(field, ""));
    }
    if found.len() > 1 && found.contains(&"*") {
        let detail = format!("if '*' is present, must not specify other {what}");
        errors.push(Error::invalid_list(minor, field, (of, found), &detail));
    }
}

fn resources(minor: Minor, errors: &mut Vec<Error>, resources: &[&str], field: &str) {
    if resources.is_empty() {
        errors.push(Error::required(field, ""));
    }
    let (mut any_subresource, mut any_resource) = (BTreeSet::new(), BTreeSet::new());
    // Only the last resource without a subresource counts, as in the API server.
    let mut plain = false;
    for (index, resource) in resources.iter().enumerate() {
        let at = format!("{field}[{index}]");
        if resource.is_empty() {
            errors.push(Error::required(at, ""));
            continue;
        }
        let Some((of, subresource)) = resource.split_once('/') else {
            plain = *resource != "*";
            continue;
        };
        if any_subresource.contains(of) {
            let detail = format!("if '{of}/*' is present, must not specify {resource}");
            errors.push(Error::invalid(&at, resource, &detail));
        }
        if any_resource.contains(subresource) {
            let detail = format!("if '*/{subresource}' is present, must not specify {resource}");
            errors.push(Error::invalid(&at, resource, &detail));
        }
        if subresource == "*" {
            any_subresource.insert(of);
        }
        if of == "*" {
            any_resource.insert(subresource);
        }
    }
    let all = ("string", resources);
    if resources.len() > 1 && resources.contains(&"*/*") {
        errors.push(Error::invalid_list(minor, field, all, "if '*/*' is present, must not specify other resources"));
    }
    if resources.contains(&"*") && plain {
        let detail = "if '*' is present, must not specify other resources without subresources";
        errors.push(Error::invalid_list(minor, field, all, detail));
    }
}

/// A mutation cannot match deletions.
pub(super) fn no_deletion(checking: &mut Checking<'_>, resources: &Json, field: &str) {
    for operation in list(resources, "resourceRules").iter().flat_map(|rule| strings(rule, "operations")) {
        if !MUTATED.contains(&operation) {
            checking.errors.push(Error::not_supported(
                checking.minor,
                format!("{field}.resourceRules.operations"),
                operation,
                &MUTATED,
            ));
        }
    }
}

/// Checks `paramKind`.
pub(super) fn param_kind(checking: &mut Checking<'_>, kind: &Json, field: &str) {
    let errors = &mut checking.errors;
    let at = format!("{field}.apiVersion");
    let api_version = text(kind, "apiVersion");
    match api_version.split('/').collect::<Vec<_>>()[..] {
        [""] => errors.push(Error::required(at, "")),
        ["", ""] => errors.push(Error::invalid(at, api_version, "version must be specified")),
        [version] => version_of(errors, &at, api_version, version),
        [group, version] => {
            let wrong = if group.is_empty() { vec![] } else { names::subdomain(group) };
            if !wrong.is_empty() {
                errors.push(Error::invalid(&at, group, &wrong.join(",")));
            }
            version_of(errors, &at, api_version, version);
        }
        _ => errors.push(Error::invalid(at, api_version, &format!("unexpected GroupVersion string: {api_version}"))),
    }
    let kind = text(kind, "kind");
    let wrong = names::label_1035(&kind.to_lowercase());
    if kind.is_empty() {
        errors.push(Error::required(format!("{field}.kind"), ""));
    } else if !wrong.is_empty() {
        let detail = format!("may have mixed case, but should otherwise match: {}", wrong.join(","));
        errors.push(Error::invalid(format!("{field}.kind"), kind, &detail));
    }
}

fn version_of(errors: &mut Vec<Error>, field: &str, api_version: &str, version: &str) {
    let wrong = names::label_1035(version);
    if version.is_empty() {
        errors.push(Error::invalid(field, api_version, "version must be specified"));
    } else if !wrong.is_empty() {
        errors.push(Error::invalid(field, version, &wrong.join(",")));
    }
}
